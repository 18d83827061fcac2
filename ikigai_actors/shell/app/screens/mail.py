"""The mail screen lists the mailbox of one agent. Opening a mail marks it as read."""

from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from ikigai_actors.records.mail.mail import A_PERSON, Mail, preview
from ikigai_actors.shell.app.agent_page import Later
from ikigai_actors.shell.app.transcript.pieces import tidy
from ikigai_actors.shell.app.widgets.key_line import KeyLine
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.verbs.text.harmless import harmless
from ikigai_actors.verbs.text.naming import named

LATEST = 500
"""The most mails in the list."""


class MailScreen(Screen[None]):
    """The screen of one agent's mails, the newest first."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,q,f5", "dismiss", "Back"),
        Binding("d", "delete", "Delete"),
        Binding("r", "read", "Reload"),
    ]

    DEFAULT_CSS = """
    MailScreen #head { padding: 0 1; }
    MailScreen VerticalScroll { height: 1fr; border-top: solid $edge; padding: 0 1; }
    """

    def __init__(self, agent: AgentRef, later: Later) -> None:
        super().__init__()
        self._agent, self._later = agent, later
        self._head, self._body = Static(id="head"), Static(id="body", markup=False)
        self._rows = Rows(lambda mail: str(mail.id), self._row)
        self._names: dict[str | None, str] = {None: A_PERSON}

    def compose(self) -> ComposeResult:
        """Lay out the head, the rows, the open mail and the keys."""
        yield self._head
        yield self._rows
        with VerticalScroll(can_focus=False):
            yield self._body
        yield KeyLine((("Enter", "opens"), ("d", "deletes"), ("r", "reloads"), ("Esc", "back")))

    def on_mount(self) -> None:
        """Read the mailbox for the first time."""
        self.action_read()

    def action_read(self) -> None:
        """Read the mailbox again."""
        self._later(self._read, self._show)

    def action_delete(self) -> None:
        """Delete the mail at the cursor, for good."""
        if (key := self._rows.key) is not None:
            number = int(key)
            self._later(lambda: self._agent.delete_mail(number), lambda _: self.action_read())

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Open the chosen mail."""
        number = int(event.key)
        self._later(lambda: self._agent.open_mail(number), self._open)

    def _read(self) -> tuple[str, list[Mail], dict[str | None, str]]:
        mails = self._agent.mails(None, LATEST)
        senders = {mail.sender for mail in mails if mail.sender is not None}
        names: dict[str | None, str] = {None: A_PERSON}
        names |= {uuid: self._agent.system.handle(uuid).record.short for uuid in senders}
        return named(self._agent), mails[::-1], names

    def _show(self, box: tuple[str, list[Mail], dict[str | None, str]]) -> None:
        name, mails, self._names = box
        unread = sum(mail.read_at is None for mail in mails)
        self._head.update(Text(f"Mail of {name}: {len(mails)}, {unread} unread", "bold"))
        self._rows.show(mails)
        if not mails:
            self._body.update("Mail that other agents, programs or you send to this agent comes here: /send ID TEXT.")

    def _open(self, mail: Mail) -> None:
        head = f"mail {mail.id} from {self._names.get(mail.sender, A_PERSON)}\n\n"
        self._body.update(Text(head, "bold").append(tidy(mail.body), "not bold"))
        self.action_read()

    def _row(self, mail: Mail) -> Text:
        star = "*" if mail.read_at is None else " "
        text = f" {star}{mail.id:>5}  {self._names.get(mail.sender, '?'):<16}  {harmless(preview(mail.body))}"
        return Text(text, "bold" if mail.read_at is None else "")
