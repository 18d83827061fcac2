"""The approval box shows the whole call that waits for the person, and takes the keys that answer it.

A question of the shown agent takes the keyboard by itself when the prompt is empty and no key came for a while. A
question of another agent waits for F2. A letter decides only if the box has had the keyboard for a moment, and no other
key follows the letter for a moment; else the letter is the beginning of a text, and goes to the prompt with the keys
that follow. Enter right after a letter decides at once. An answer that also holds for later calls (`a`) must be
confirmed. Keys answer only after all lines were visible.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.shell.app.theme import DARK, Palette
from ikigai_actors.verbs.text.call_page import CallPart, always_option, always_words, call_page, visible
from ikigai_actors.verbs.text.words import counted

QUIET = 1.0
"""Seconds without a key, after which a question takes the keyboard."""

KEYS_WAIT = 0.4
"""Seconds after getting the focus during which no key answers."""

ALONE = 0.4
"""Seconds without another key after which a letter counts as an answer."""

_A_KEY = 7
"""The width of a key in columns, including the blanks around it."""

_MARKS = {CallPart.OLD: "- ", CallPart.NEW: "+ ", CallPart.SAME: "  "}


class Question(NamedTuple):
    """A call that waits for the person's approval, as the approval box shows it."""

    number: int
    who: str
    """The name of the agent that asks."""
    call: PendingCall
    place: int = 1
    """The number of the question among all open ones, from 1."""
    of: int = 1
    text: str | None = None
    """The text of the file that the call edits; None if unknown."""

    @property
    def reach(self) -> str:
        """Return how far an approval may reach: ``tool``, ``exact``, or empty for this call alone."""
        return self.call.always[-1] if self.call.always else ""

    @property
    def rule(self) -> str:
        """Return a slash command that makes a rule for similar calls; the person edits it before it is sent."""
        arguments = self.call.input
        subject = arguments.get("command") if self.call.tool == "bash" else arguments.get("file_path")
        pattern = f" {shlex.quote(subject)}" if isinstance(subject, str) and "\n" not in subject else ""
        return f"/rules --of {shlex.quote(self.who)} add allow {shlex.quote(self.call.tool)}{pattern}"

    def command(self, key: str) -> str:
        """Return the slash command that answers in the same way as a key."""
        always = always_option(self.call) if key == "a" else ""
        return f"/{'deny' if key in 'nt' else 'approve'} {self.number}{always}"


def keys_of(question: Question, width: int) -> list[tuple[str, str]]:
    """Return the keys that answer a question, with their effects; shorter in a narrow window."""
    what = always_words(question.call)
    ways: list[tuple[str, ...]] = [
        ("run once", "no", "why not", f"always {what} for {question.who} and below"),
        ("run once", "no", "why not", f"always {what} here and below"),
        ("run", "no", "why not", "always"),
    ]
    if not what:
        ways = [way[:3] for way in ways]
    fitting = (way for way in ways if sum(cell_len(hint) + _A_KEY for hint in way) <= width)
    return [*zip("ynta", next(fitting, ways[-1]), strict=False)]


def answer_line(question: Question, width: int, keyboard: bool, colours: Palette) -> Text:
    """Return the line with the keys that answer."""
    line = Text()
    for key, what in keys_of(question, width):
        line.append(f" {key} ", f"bold reverse {colours.waits}" if keyboard else f"bold {colours.waits}")
        line.append(f" {what}   ", colours.ink if keyboard else colours.past)
    line.rstrip()
    return line


def always_line(question: Question, width: int, keyboard: bool, colours: Palette) -> Text:
    """Return the line that asks for confirmation of an answer that also holds for later calls."""
    what = dict(keys_of(question, width)).get("a", "always")
    line = Text(f"{what}? ", colours.waits)
    for key, answer in (("y", "yes"), ("n", "no")):
        line.append(f" {key} ", f"bold reverse {colours.waits}").append(f" {answer}   ", colours.ink)
    line.rstrip()
    line.truncate(width, overflow="ellipsis")
    return line


def foot_of(question: Question, below: int, width: int, keyboard: bool) -> str:
    """Return the lower border of the box: lines still to read, number of the question, and how to postpone it."""
    way = "r rule · Esc later" if keyboard else "F2 answers"
    more = counted(below, "more line") if below else ""
    shows = f"{more} below: y shows them" if more and keyboard else more
    place = f"{question.place} of {question.of}" if question.of > 1 else ""
    tab = "Tab next" if place and keyboard else ""
    ways = [" · ".join(filter(None, facts)) for facts in ((place, shows, tab, way), (place, shows, way), (place, more))]
    return next((way for way in ways if cell_len(way) + 6 <= width), ways[-1])


def folded(call: PendingCall, width: int, text: str | None = None) -> list[tuple[str, CallPart]]:
    """Return all lines of a call, wrapped to this width; ``text`` is the present text of the file that it edits."""
    return [
        (f"{mark if place == 0 else ' ' * len(mark)}{part}", line.part)
        for line in call_page(call, text)
        for mark in (_MARKS.get(line.part, ""),)
        for place, part in enumerate(chop_cells(line.text, max(2, width - len(mark))) or [""])
    ]


class _Letter(NamedTuple):
    """A letter that counts as an answer if no other key follows."""

    key: str
    question: Question
    at: float


class CallText(ScrollView):
    """The scrolling lines of a call in the approval box."""

    DEFAULT_CSS = """
    CallText { height: auto; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[tuple[str, CallPart]] = []
        self._colours = DARK

    @property
    def below(self) -> int:
        """Return the number of lines below the visible ones."""
        return max(0, len(self._lines) - self.scroll_offset.y - self.size.height)

    def show(self, lines: list[tuple[str, CallPart]], colours: Palette, most: int) -> None:
        """Show the lines of a call in at most ``most`` rows."""
        anew = lines != self._lines
        self._lines, self._colours = lines, colours
        self.styles.height = min(len(lines), max(1, most))
        self.virtual_size = Size(self.size.width, len(lines))
        if anew:
            self.scroll_home(animate=False, immediate=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render one line of the window."""
        at, colours = y + self.scroll_offset.y, self._colours
        text, part = self._lines[at] if at < len(self._lines) else ("", CallPart.TEXT)
        styles = {CallPart.OLD: colours.failed, CallPart.NEW: colours.accent, CallPart.SAME: colours.past}
        strip = Strip([Segment(text, Style(color=styles.get(part, colours.ink)))])
        return strip.adjust_cell_length(self.size.width).apply_style(self.rich_style)


class ApprovalBox(Vertical, can_focus=True):
    """The approval box; hidden while there is no question."""

    DEFAULT_CSS = """
    ApprovalBox {
        height: auto; display: none; padding: 0 1;
        border: round $warning 60%; border-subtitle-color: $past;
    }
    ApprovalBox:focus { border: round $warning; }
    ApprovalBox #answers { height: 1; margin-top: 1; }
    """

    BINDINGS: ClassVar[list[Any]] = [
        Binding("y", "answer('y')", "Run it once"),
        Binding("n", "answer('n')", "Do not run it"),
        Binding("t", "answer('t')", "Do not run it, and say why"),
        Binding("a", "answer('a')", "Run it, and always"),
        Binding("r", "answer('r')", "Write a rule for it"),
        Binding("tab", "next", "The next question"),
        Binding("up", "up", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("space", "page(1)", show=False),
        Binding("home", "scroll(-1000000)", show=False),
        Binding("end", "scroll(1000000)", show=False),
    ]

    @dataclass
    class Answered(Message):
        """A key has answered a question: ``y``, ``n``, ``t`` or ``a``; ``r`` begins to write a rule."""

        question: Question
        key: str

    @dataclass
    class Passed(Message):
        """The event that the person wants the next question."""

        question: Question

    class Above(Message):
        """Up was pressed at the first line of the call; the screen handles the key as in an empty prompt."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Make the box; ``clock`` returns monotonic seconds."""
        super().__init__()
        self._clock = clock
        self._call, self._answers = CallText(), Static(id="answers")
        self._call.can_focus = False
        self._question: Question | None = None
        self._since: float | None = None  # when keys began to be for the box; None while they are not
        self._answered = 0  # the number of the latest question that was answered
        self._letter: _Letter | None = None  # what was typed a moment ago
        self._always = False  # whether it is asked once more if the answer holds for later calls
        self._colours = DARK

    def compose(self) -> ComposeResult:
        """Lay out the call, and below it the keys, which stay visible."""
        yield self._call
        yield self._answers

    @property
    def number(self) -> int:
        """Return the number of the shown question; 0 without one."""
        return self._question.number if self._question is not None else 0

    def takes(self, event: events.Event) -> bool:
        """Return whether an event is a key of the box; other text is for the prompt."""
        question = self._question
        if not isinstance(event, events.Key) or question is None or self._letter is not None or not self._listens:
            return False
        return event.key in {*dict(keys_of(question, 0)), "r", "space"} and question.number != self._answered

    @property
    def agent(self) -> str:
        """Return the uuid of the agent whose call is shown; empty without a question."""
        return self._question.call.agent if self._question is not None else ""

    @property
    def _listens(self) -> bool:
        """Return whether a key that is pressed now counts as an answer."""
        return self._since is not None and self._clock() - self._since >= KEYS_WAIT

    def take_key(self, event: events.Event) -> bool:
        """Handle a key of the box; return True if it was handled."""
        if isinstance(event, events.Key) and event.key == "space":
            self.action_page(1)
        elif isinstance(event, events.Key):
            self.action_answer(event.key)
        return True

    def followed_by(self, event: events.Event) -> str:
        """Cancel a typed letter that another event follows; return the letter, or "" when the box has no letter.

        After Enter the letter decides at once. Escape, which leaves the box, discards the letter.
        """
        letter, self._letter = self._letter, None
        if letter is None:
            return ""
        if isinstance(event, events.Key) and event.key == "enter":
            self._decide(letter)
            return ""
        if isinstance(event, events.Paste) or (isinstance(event, events.Key) and event.is_printable):
            return letter.key
        return ""

    def tick(self) -> None:
        """Let a letter count as an answer after the time without another key."""
        if self._letter is not None and self._clock() - self._letter.at >= ALONE:
            letter, self._letter = self._letter, None
            self._decide(letter)

    def ask(self, question: Question | None, colours: Palette, room: Size) -> None:
        """Show a question; None hides the box.

        Args:
            question: the question.
            colours: the palette.
            room: columns and rows of the talk: of these the call takes half at most.
        """
        before, self._question, self._colours = self._question, question, colours
        self.display = question is not None
        if question is None:
            return
        if before is None or (before.number, before.text) != (question.number, question.text):
            self._always = False
            self._begin()
        width = room.width - 5
        self._call.show(folded(question.call, width, question.text), colours, room.height // 2)
        title = Text(question.who, f"bold {colours.ink}").append(" wants to run ", colours.ink)
        title.append(visible(question.call.tool), f"bold {colours.waits}")
        if question.call.former:
            title.append(" · the tool has changed since you were asked", colours.waits)
        title.truncate(max(4, room.width - 6), overflow="ellipsis")
        self.border_title = Content.from_rich_text(title)
        self._show_keys()
        self.call_after_refresh(self._show_keys)  # how many lines are below is known then

    def watch_has_focus(self, has_focus: bool) -> None:
        """Accept keys soon after getting the focus; leave them to the prompt after losing it."""
        super().watch_has_focus(has_focus)
        self._always = False
        self._begin()
        self._show_keys()

    def action_answer(self, key: str) -> None:
        """Take a letter as an answer if no key follows. If lines are not visible yet, show them instead."""
        question = self._question
        if question is None or not self._listens:
            return
        if key in ("y", "a") and self._call.below:
            self.action_page(1)
            self._begin()
        elif key == "r" or key in dict(keys_of(question, 0)):
            self._letter = _Letter(key, question, self._clock())

    def _decide(self, letter: _Letter) -> None:
        key, question = letter.key, letter.question
        if self._question is None or question.call != self._question.call:
            return
        if self._always and key != "y":
            self._always = False
            self._show_keys()
            return
        if key == "a":
            self._always = True
            self._begin()
            self._show_keys()
            return
        if key != "r":
            self._answered = question.number
        self.post_message(self.Answered(question, "a" if self._always else key))
        self._always = False

    def action_next(self) -> None:
        """Go to the next question."""
        if self._question is not None and self._question.of > 1:
            self.post_message(self.Passed(self._question))

    def action_up(self) -> None:
        """Scroll up by a line; at the first line, handle the key as in an empty prompt."""
        if self._call.scroll_offset.y:
            self.action_scroll(-1)
        else:
            self.post_message(self.Above())

    def action_scroll(self, by: int) -> None:
        """Scroll the call by lines."""
        self._call.scroll_relative(y=by, animate=False, immediate=True)
        self._show_keys()

    def action_page(self, by: int) -> None:
        """Scroll the call by a window, less a line: up for -1, down for 1."""
        self.action_scroll(by * max(1, self._call.size.height - 1))

    def _begin(self) -> None:
        self._since, self._letter = self._clock() if self.has_focus else None, None

    def _show_keys(self) -> None:
        question, keyboard = self._question, self.has_focus
        if question is None:
            return
        width = self.size.width or 80
        line = always_line if self._always else answer_line
        self._answers.update(line(question, width, keyboard, self._colours), layout=False)
        self.border_subtitle = Content(foot_of(question, self._call.below, width, keyboard))
