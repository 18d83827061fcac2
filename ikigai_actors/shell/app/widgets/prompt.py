"""The prompt: where a person types, one for each agent.

Enter submits; Ctrl+J makes a new line. Up in the first line and Down in the last one go through the entries that were
submitted before. A large paste is in the text as one token, ``[pasted 1.0 MB]``, and is submitted whole: in full it
would block the keyboard for seconds. Control characters of a paste are spelled out, since the widget would send them to
the terminal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.binding import BindingsMap
from textual.geometry import Size
from textual.message import Message
from textual.widgets import TextArea

from ikigai_actors.shell.app.input_history import Recall
from ikigai_actors.shell.app.widgets.command_menu import CommandMenu
from ikigai_actors.shell.person_command import typed_command
from ikigai_actors.verbs.text.harmless import harmless
from ikigai_actors.verbs.text.mentions import is_command

LARGE = 10_000
"""Pastes up to this many characters are inserted as text."""

_EDITING = BindingsMap(TextArea.BINDINGS).key_to_bindings


class PromptBox(TextArea):
    """The input box of one agent."""

    DEFAULT_CSS = """
    PromptBox { height: auto; max-height: 8; border: none; padding: 0; background: $background; }
    PromptBox:focus { border: none; }
    PromptBox > .text-area--placeholder { color: $past; }
    """

    @dataclass
    class Submitted(Message):
        """Enter was pressed in the prompt: the application shall run the text, of one line or several."""

        prompt: "PromptBox"
        text: str
        queued: bool = False
        """Whether the text waits for the end of the turn in progress."""
        along: Sequence[str] = ()
        """Outputs of earlier commands to send with the text."""

    class Edits(Message):
        """F9 was pressed: the application shall open the text in an editor."""

    class Copies(Message):
        """The event that Ctrl+Y was pressed in an empty prompt, which copies the latest answer."""

    class TakesBack(Message):
        """Up was pressed in an empty prompt while texts wait for the agent."""

    @dataclass
    class Left(Message):
        """The person ends the application: by Ctrl-D in an empty prompt, or by Ctrl-C.

        The message comes after earlier submissions.
        """

        status: int = 0
        """The exit status."""

    def __init__(self, recall: Recall, menu: CommandMenu) -> None:
        super().__init__(compact=True, highlight_cursor_line=False, tab_behavior="focus")
        self._recall, self._menu = recall, menu
        self.recalled = False
        """Whether the text was submitted before, and is unchanged; the menu offers nothing for it."""
        self.waiting = False
        """Whether texts of the person wait for the agent."""
        self.along: list[str] = []
        """The outputs of the person's commands, which go along with the next prompt."""
        self._pasted: dict[str, str] = {}
        self._wrapped = Size()

    def on_resize(self, event: events.Resize) -> None:
        """Record the size for which the text of the prompt was wrapped."""
        self._wrapped = event.size

    def tick(self) -> None:
        """Wrap the text for the size that the prompt has: Textual sends none to a widget painted before its layout."""
        if self.outer_size != self._wrapped:
            self.post_message(events.Resize(self.outer_size, self.virtual_size))

    @property
    def whole(self) -> str:
        """Return the text, with pastes in place of their tokens."""
        text = self.text
        for token, pasted in self._pasted.items():
            text = text.replace(token, pasted, 1)
        return text

    def become(self, text: str) -> None:
        """Replace the text, after making it harmless, and move the cursor to its end."""
        self.text = harmless(text)
        self.move_cursor(self.document.end)

    def put_back(self, text: str) -> None:
        """Put a submitted text back into the prompt, before the text that was typed since."""
        self.become(f"{text}\n{self.text}" if self.text else text)

    def paste(self, pasted: str) -> None:
        """Insert a text in place of the selection, after making it harmless; a large one as a token."""
        text = harmless(pasted.replace("\r\n", "\n").replace("\r", "\n"))
        if len(text) > LARGE:
            token = f"[pasted {_size(len(text))}]"
            if token in self._pasted:
                token = f"[pasted {_size(len(text))}, {len(self._pasted) + 1}]"
            self._pasted[token] = text
            text = token
        self.replace(text, *self.selection, maintain_selection_offset=False)

    async def _on_key(self, event: events.Key) -> None:
        """Handle the prompt's own keys, and those that `TextArea` binds.

        Textual's bindings are not used, because a bound key goes to the application first, so later keys overtake the
        bound key.
        """
        actions = {
            "enter": self._submit,
            "alt+enter": lambda: self._submit(queued=True),
            "ctrl+j": self._make_line,
            "ctrl+d": self._delete_or_leave,
            "tab": self._take,
            "escape": self._close_menu,
            "ctrl+u": self._clear,
            "ctrl+y": self._copy_answer,
            "f9": self._edit,
            "ctrl+underscore": self._undo,
            "up": self._earlier,
            "down": self._later,
        }
        action = actions.get(event.key)
        self.recalled = self.recalled and event.key in ("up", "down")
        if action is None or not action():
            event.prevent_default()  # Textual calls the handler of `TextArea` too
            await super()._on_key(event)
            if (bindings := _EDITING.get(event.key)) is None or not await self.app.run_action(bindings[0].action, self):
                return
        event.prevent_default()
        event.stop()

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert a paste, and stop the event: `TextArea` and the screen would insert it again."""
        event.prevent_default()
        event.stop()
        self.paste(event.text)

    def _make_line(self) -> bool:
        self.insert("\n")
        return True

    def _delete_or_leave(self) -> bool:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.Left())
        return True

    def _submit(self, queued: bool = False) -> bool:
        if (choice := self._menu.meant(self.text)) is not None:
            self.become(choice.line)
            if choice.line.endswith(" "):
                return True
        self._menu.close()
        whole = self.whole
        self._pasted.clear()
        self.text = ""
        if whole.strip():
            self._recall.remember(whole)
            along: list[str] = []
            if not (is_command(whole) or typed_command(whole)):
                along, self.along = self.along, along
            self.post_message(self.Submitted(self, whole, queued, along))
        return True

    def _take(self) -> bool:
        if (choice := self._menu.fitting(self.text)) is not None:
            self.become(choice.line)
        return True

    def _close_menu(self) -> bool:
        was_open = bool(self._menu.display)
        self._menu.close(self.text)
        return was_open

    def _moved(self, by: int) -> bool:
        if self._menu.display:
            self._menu.move(by)
        return bool(self._menu.display)

    def _copy_answer(self) -> bool:
        if not self.text:
            self.post_message(self.Copies())
        return not self.text

    def _edit(self) -> bool:
        self._menu.close()
        self.post_message(self.Edits())
        return True

    def _clear(self) -> bool:
        """Clear the line before the cursor; if it is empty, the whole text; then the outputs to be sent with it."""
        if not self.text and self.along:
            self.along = []
            self.post_message(self.Changed(self))
            return True
        if self.cursor_location[1] or not self.text:
            return False
        self.clear()
        return True

    def _undo(self) -> bool:
        self.action_undo()  # `TextArea` binds undo to Ctrl+Z, which suspends here
        return True

    def _earlier(self) -> bool:
        if self._moved(-1):
            return True
        if self.waiting and not self.text:
            self.post_message(self.TakesBack())
            return True
        return self.cursor_location[0] == 0 and self._go_to(self._recall.earlier(self.text))

    def _later(self) -> bool:
        return self._moved(1) or (
            self.cursor_location[0] == self.document.line_count - 1 and self._go_to(self._recall.later())
        )

    def _go_to(self, text: str | None) -> bool:
        if text is not None:
            self.recalled = True
            self.become(text)
        return text is not None


def _size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB" if count >= 1_000_000 else f"{count / 1_000:.0f} KB"
