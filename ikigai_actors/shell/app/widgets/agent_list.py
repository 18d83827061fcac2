"""A list of agents with its keys, the same in the tree and on the screen of agents.

The keys act on the agent at the cursor, or on the marked agents. Below the rows is one line: the keys, a question
before agents are killed, or an input for a filter or a prompt.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from ikigai_actors.reach.snapshots import Snapshot, Wish
from ikigai_actors.shell.app.agent_rows import below
from ikigai_actors.shell.app.theme import Palette, palette
from ikigai_actors.shell.app.widgets.key_line import Keys, key_line
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.words import counted

FILTER_KEYS: Keys = (("Enter", "keeps"), ("↑↓", "move"), ("Esc", "shows all"))

PROMPT_KEYS: Keys = (("Enter", "sends"), ("Esc", "drops it"))
"""The keys of the input line while it takes a prompt."""


class Doings(NamedTuple):
    """The functions by which a list of agents acts: they run commands, prompt agents, and ask for a new snapshot."""

    press: Callable[[str], None]
    """Runs a slash command, with its answer as a notice."""
    say: Callable[[str, str], None]
    """Prompts an agent, by uuid."""
    later: Callable[[Callable[[], Any], Callable[[Any], None]], None]
    """Runs the first function on another thread, then the second with its result on this thread."""
    look: Callable[[], None] = lambda: None
    """Asks for a new snapshot, after the list's wish has changed."""


class _Question(NamedTuple):
    """A question before agents are killed."""

    uuids: tuple[str, ...]
    text: str
    answers: Mapping[str, tuple[str, str | None]]
    """For each key its words, and the options of the command; None keeps them."""


class AgentList(Vertical):
    """A widget with agents as rows, and below them the keys, a question, or an input line."""

    DEFAULT_CSS = """
    AgentList .keys { height: auto; max-height: 4; padding: 0 1; }
    AgentList .rest { height: auto; max-height: 2; display: none; padding: 0 1; color: $past; }
    AgentList .entry { height: 1; display: none; padding: 0 1; background: $surface; }
    AgentList .entry Static { width: auto; color: $accent; text-style: bold; }
    AgentList .entry Input { width: 1fr; height: 1; border: none; padding: 0 1; }
    AgentList .entry Input { background: $surface; background-tint: 0%; }
    """

    KEYS: Keys = ()
    """The keys that the last line of the list shows, the most useful first."""

    MARGIN = 2
    """The columns of the margins of the last line."""

    @dataclass
    class Left(Message):
        """The event that Escape was pressed while there was nothing to cancel."""

    def __init__(self, doings: Doings, rows: Rows, id: str | None = None) -> None:  # noqa: A002 - Textual names it so
        super().__init__(id=id)
        self.rows = rows
        self.snapshot: Snapshot | None = None
        """The snapshot that is shown, with the agents of the list; None before the first."""
        self.marked: frozenset[str] = frozenset()
        """The agents that are marked, by uuid."""
        self._doings = doings
        self._keys, self._label, self._input = Static(classes="keys"), Static(), Input(compact=True)
        self._rest = Static(classes="rest")
        self._entry = Horizontal(self._label, self._input, classes="entry")
        self._question: _Question | None = None
        self._wanted = ""  # the filter, as it was typed
        self._entering = False  # whether the entry has the keyboard
        self._prompted = ""  # the agent for which a prompt is entered; empty while a filter is
        self.actions: dict[str, Callable[[], None]] = {
            "s": lambda: self._signal("STOP"), "c": lambda: self._signal("CONT"), "k": self._ask, "p": self._prompt,
            "slash": self._filter, "ctrl+f": self._filter, "space": self._mark,
        }  # fmt: skip
        """The keys of the list, beside those of `Rows`."""

    def compose(self) -> ComposeResult:
        """Lay out the rows, the entry and the keys."""
        yield self.rows
        yield self._rest
        yield self._entry
        yield self._keys

    @property
    def colours(self) -> Palette:
        """Return the palette of the theme."""
        return palette(self.app.current_theme)

    def want(self, text: str) -> None:
        """Show only agents whose name, state or host contain this lower-case text; all for an empty text."""
        raise NotImplementedError("each kind of list arranges its own rows")

    @property
    def wish(self) -> Wish:
        """Return the selection of agents for the next snapshot. A system may have too many agents to show all."""
        raise NotImplementedError("each kind of list shows others")

    def tell_rest(self, snapshot: Snapshot) -> None:
        """Show how many agents are not in the list."""
        text = rest_line(snapshot)
        self._rest.display = bool(text)
        self._rest.update(text)

    @property
    def keys(self) -> Keys:
        """Return the keys that the last line of the list shows now, with their effects."""
        return self.KEYS

    def paint(self) -> None:
        """Draw the line below the rows: the keys or a question."""
        question, colours = self._question, self.colours
        if question is None:
            keys = self.keys if not self._entering else PROMPT_KEYS if self._prompted else FILTER_KEYS
            self._keys.update(key_line(keys, self.size.width - self.MARGIN, colours))
            return
        text = Text(f"{question.text}  ", f"bold {colours.waits}")
        for key, (what, _) in question.answers.items():
            text.append(key, f"bold {colours.waits}").append(f" {what}  ", colours.ink)
        self._keys.update(text)

    @property
    def asks(self) -> bool:
        """Return whether the list asks a question that the next key answers."""
        return self._question is not None

    def take_key(self, event: events.Event) -> bool:
        """Handle a key for the rows; return whether it was handled.

        The application calls the method before it passes the key on. In a queue, a later key could overtake an earlier
        one, and the letters of a filter would act as commands, for example to kill an agent.
        """
        if not isinstance(event, events.Key):
            return False
        if self._question is not None and (event.is_printable or event.key == "enter"):
            self._answer(self._question, event.key)
            return True
        action = self.actions.get(event.key) or self.rows.actions.get(event.key)
        if action is not None:
            action()
        return action is not None

    def on_key(self, event: events.Key) -> None:
        """Handle a key that neither the rows nor the input has handled."""
        if event.key == "escape":
            taken = self._take_back()
        elif self._input.has_focus and event.key in ("up", "down"):
            taken = True
            self.rows.action_move(1 if event.key == "down" else -1)
        else:
            return
        if taken:
            event.stop()
            event.prevent_default()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter the list while a person types."""
        event.stop()
        if not self._prompted:
            self._wanted = event.value
            self.want(event.value.strip().casefold())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send a prompt, or return to the rows; a filter remains."""
        event.stop()
        if self._prompted and (text := event.value.strip()):
            self._doings.say(self._prompted, text)
        self._end_entry()

    def _take_back(self) -> bool:
        """Cancel the latest of a question, an input, a filter and marks; return whether there was any to cancel."""
        if self._question is not None:
            self._question = None
            self.paint()
        elif self._prompted:
            self._end_entry()
        elif self._entry.display:
            self._wanted = ""
            self._end_entry()
            self.want("")
        elif self.marked:
            self.marked = frozenset()
            self.rows.refresh()
        else:
            self.post_message(self.Left())
        return True

    def _enter(self, label: str, placeholder: str, value: str = "") -> None:
        """Show the input line with a text that can be edited."""
        self._label.update(label)
        self._input.placeholder = placeholder
        with self._input.prevent(Input.Changed):
            self._input.value = value
        self._entry.display = True

    def _end_entry(self) -> None:
        """Return the focus to the rows. A filter stays visible, and is shown again after a prompt."""
        self._prompted, self._entering = "", False
        self.rows.focus()
        self.paint()
        if self._wanted:
            self._enter("/", "", self._wanted)
        else:
            self._entry.display = False

    def _filter(self) -> None:
        self._enter("/", "name, state or host", self._wanted)
        self._take_keyboard()

    def _prompt(self) -> None:
        if (key := self.rows.key) is not None:
            self._prompted = key
            self._enter(f"{self._called(key)} ›", "a prompt, or / for a command")
            self._take_keyboard()

    def _take_keyboard(self) -> None:
        self._entering = True
        self.screen.set_focus(self._input)  # at once: the next key is for it
        self.paint()

    def _mark(self) -> None:
        if (key := self.rows.key) is not None:
            self.marked ^= {key}
            self.rows.action_move(1)
            self._doings.look()

    def _chosen(self) -> tuple[str, ...]:
        """Return the uuids of the agents on which keys act: the living marked ones, else the one at the cursor."""
        records = self.snapshot.listed if self.snapshot is not None and self.marked else ()
        if marked := tuple(record.uuid for record in records if record.living and record.uuid in self.marked):
            return marked
        return () if (key := self.rows.key) is None else (key,)

    def _signal(self, name: str) -> None:
        for uuid in self._chosen():
            self._doings.press(f"/signal {name} {uuid}")

    def _ask(self) -> None:
        if (uuids := self._chosen()) and self.snapshot is not None:
            more = below(self.snapshot.listed, uuids) if not self.snapshot.rest else None
            who = self._called(uuids[0]) if len(uuids) == 1 else counted(len(uuids), "agent")
            self._question = kill_question(uuids, who, more)
            self.paint()

    def _answer(self, question: _Question, key: str) -> None:
        if (answer := question.answers.get(key)) is None:
            return  # a key that answers nothing
        self._question = None
        if (options := answer[1]) is not None:
            for uuid in question.uuids:
                self._doings.press(f"/kill {uuid}{options}")
            self.marked = frozenset()
        self.paint()

    def _called(self, uuid: str) -> str:
        return one_line(self.snapshot.names.get(uuid, uuid) if self.snapshot is not None else uuid)


def rest_line(snapshot: Snapshot) -> str:
    """Return how many living agents are not in a list, and how to find them; empty if all agents are in the list."""
    if not snapshot.rest:
        return ""
    if snapshot.wish is not None and snapshot.wish.text:
        return "and more of this name: give more letters" if snapshot.is_cut else ""
    return f"and {snapshot.rest:,} more: / searches"


def kill_question(uuids: tuple[str, ...], who: str, more: int | None) -> _Question:
    """Return the question before agents are killed; ``more`` is the number of agents below them, None if unknown."""
    if more == 0:
        return _Question(uuids, f"Kill {who}?", {"y": ("kill", ""), "n": ("keep", None)})
    only = "only it" if len(uuids) == 1 else "only them"
    answers = {"y": ("all", " --cascade"), "o": (only, ""), "n": ("keep", None)}
    return _Question(uuids, f"Kill {who} and {'all' if more is None else f'{more:,}'} below?", answers)
