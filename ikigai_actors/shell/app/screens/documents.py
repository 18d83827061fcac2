"""The document screen lists the documents that all agents share. Opening one shows it with its versions."""

from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from ikigai_actors.records.documents import Document, DocumentVersion
from ikigai_actors.shell.app.agent_page import Later
from ikigai_actors.shell.app.theme import palette
from ikigai_actors.shell.app.transcript.code_block import ThemedMarkdown
from ikigai_actors.shell.app.transcript.layout import HUGE
from ikigai_actors.shell.app.transcript.pieces import tidy
from ikigai_actors.shell.app.widgets.key_line import KeyLine
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.system.handles.ref import System
from ikigai_actors.verbs.text.harmless import one_line

_KEYS = (("Enter", "opens"), ("Tab", "scrolls it"), ("r", "reloads"), ("Esc", "back"), ("/doc write", "changes one"))


class DocumentScreen(Screen[None]):
    """The screen of the documents, by path."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,q,f6", "dismiss", "Back"),
        Binding("r", "read", "Reload"),
        Binding("tab", "turn", "Scroll"),
    ]

    DEFAULT_CSS = """
    DocumentScreen #head { padding: 0 1; }
    DocumentScreen VerticalScroll { height: 2fr; border-top: solid $edge; padding: 0 1; }
    """

    def __init__(self, system: System, later: Later, path: str | None = None) -> None:
        """Make the screen; it opens the document at ``path``, if given."""
        super().__init__()
        self._wanted = path
        self._system, self._later = system, later
        self._head, self._body = Static(id="head"), Static(id="body", markup=False)
        self._rows = Rows(lambda document: document.path, self._row)

    def compose(self) -> ComposeResult:
        """Lay out the head, the rows, the open document and the keys."""
        yield self._head
        yield self._rows
        with VerticalScroll():
            yield self._body
        yield KeyLine(_KEYS)

    def on_mount(self) -> None:
        """Read the list of documents for the first time."""
        self.action_read()

    def action_read(self) -> None:
        """Read the list of documents again."""
        self._later(lambda: list(self._system.documents.list()), self._show)

    def action_turn(self) -> None:
        """Move the focus from the list to the document, or back."""
        self.focus_next()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Open the chosen document."""
        path = event.key
        self._later(lambda: self._read(path), self._open)

    def _read(self, path: str) -> tuple[Document, list[str]]:
        documents = self._system.documents
        return documents.read(path), [self._described(version) for version in documents.log(path)]

    def _described(self, version: DocumentVersion) -> str:
        author = self._system.handle(version.author).record.short if version.author is not None else None
        return version.to_person(author)

    def _show(self, documents: list[DocumentVersion]) -> None:
        self._head.update(Text(f"Documents: {len(documents)}", "bold"))
        self._rows.show(documents, self._wanted)
        if not documents:
            self._body.update("What agents write for all to read comes here: /doc write PATH TEXT writes a document.")
        if self._wanted is not None:
            self._wanted = None
            self._rows.action_choose()

    def _open(self, page: tuple[Document, list[str]]) -> None:
        from rich.console import Group

        document, versions = page
        body, colours = tidy(document.body), palette(self.app.current_theme)
        shown = Text(body) if len(body) > HUGE else ThemedMarkdown(body, colours)
        log = Text("\n" + "\n".join(map(one_line, versions)), "dim")
        self._body.update(Group(Text(one_line(document.path), "bold"), Text(), shown, log))

    def _row(self, document: DocumentVersion) -> Text:
        return Text(f" {one_line(document.path)}  ").append(f"version {document.version}", "dim")
