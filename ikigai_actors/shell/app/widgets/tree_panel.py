"""The tree panel shows the agents, live, beside the transcript. Choosing one goes there."""

from dataclasses import replace
from functools import partial
from time import time

from rich.cells import cell_len
from rich.text import Text
from textual import events

from ikigai_actors.reach.snapshots import Snapshot, Wish
from ikigai_actors.records.agents.lists import MOST_LISTED
from ikigai_actors.records.hosts.liveness import LATELY
from ikigai_actors.shell.app.agent_rows import agent_rows, colour_of
from ikigai_actors.shell.app.theme import Palette
from ikigai_actors.shell.app.tree_rows import TreeRow, TreeView, tree_rows
from ikigai_actors.shell.app.widgets.agent_list import AgentList, Doings
from ikigai_actors.shell.app.widgets.key_line import Keys
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.words import counted, duration

SIGN, LEVEL = 2, 3
"""The width of the sign before a name, and of one level of the tree."""

_NAME = 14
"""The fewest columns for a name, with the depth of an agent below the last level; a narrow window has fewer."""

Arranged = tuple[TreeView, list[TreeRow]]
"""The rows of a tree, with the view they were made for."""


class TreePanel(AgentList):
    """The tree of agents.

    If the tree covers the transcript, letters are commands. Beside the transcript, letters are text for the visible
    prompt, and commands need Alt.
    """

    DEFAULT_CSS = """
    TreePanel { width: 38; max-width: 45%; height: 100%; dock: left; border-right: solid $edge; padding-left: 1; }
    TreePanel .keys { padding: 0; }
    """

    KEYS: Keys = (
        ("←→", "fold"), ("/", "filter"), ("k", "kill"), ("s", "stop"), ("p", "prompt"), ("c", "continue"),
        ("b", "budget"), ("Space", "mark"), ("Enter", "open"), ("Esc", "back"),
    )  # fmt: skip
    BESIDE: Keys = (
        ("←→", "fold"), ("^F", "filter"), ("Alt+K", "kill"), ("Alt+S", "stop"), ("Alt+P", "prompt"),
        ("Alt+C", "continue"), ("Alt+B", "budget"), ("Enter", "open"), ("Esc", "back"),
    )  # fmt: skip
    """The keys while the tree is beside the transcript."""

    MARGIN = 0

    def __init__(self, doings: Doings) -> None:
        super().__init__(doings, Rows(lambda row: row.agent.uuid, self._row, whole=_name_end), id="tree")
        self._view = TreeView()
        self._found = ""  # the filter of the rows in sight
        self._asked_for = False  # whether the cursor has still to go to the current agent
        self.covers = False
        """Whether the tree covers the transcript."""
        self._opened: dict[str, int] = {}  # how many children are listed of whom the person has opened
        self.actions |= {
            "left": partial(self._fold, True), "right": partial(self._fold, False),
            "b": self._show_budget,
        }  # fmt: skip

    @property
    def has_keyboard(self) -> bool:
        """Return whether the tree has the focus, so that keys go to it."""
        return self.display and self.has_pseudo_class("focus-within")

    @property
    def keys(self) -> Keys:
        """Return the keys for the last line, which differ while the tree is beside the transcript."""
        return self.KEYS if self.covers else self.BESIDE

    def takes(self, event: events.Event) -> bool:
        """Return whether an event is for the tree.

        Beside the transcript, typed text is not for the tree, unless the tree asks a question.
        """
        text = isinstance(event, events.Key) and event.is_printable
        return self.has_keyboard and (self.covers or self.asks or not text)

    def take_key(self, event: events.Event) -> bool:
        """Handle a key for the rows; return whether it was handled. Beside the transcript, commands need Alt."""
        if self.covers or self.asks or not isinstance(event, events.Key):
            return super().take_key(event)
        if event.key.startswith("alt+") and (action := self.actions.get(event.key.removeprefix("alt+"))) is not None:
            action()
            return True
        return not event.is_printable and super().take_key(event)

    def open(self) -> None:
        """Show the tree with the cursor at the current agent, and focus it."""
        self.display, self._asked_for = True, True
        self.rows.focus()

    def prepare(self, snapshot: Snapshot) -> Arranged:
        """Return the arranged rows of a snapshot. Slow, so call it on another thread."""
        view = replace(self._view, current=snapshot.current.uuid)
        return view, tree_rows(agent_rows(snapshot, int(time() * 1_000)), view, snapshot.hidden)

    def update_from(self, snapshot: Snapshot, arranged: Arranged) -> None:
        """Show the tree of a snapshot; without the focus, the cursor goes to the current agent."""
        self.snapshot, (view, rows) = snapshot, arranged
        self.tell_rest(snapshot)
        if view == replace(self._view, current=view.current):
            here = self._asked_for or not self.has_keyboard
            first = next((row.agent.uuid for row in rows if row.wanted), "") if view.wanted != self._found else ""
            self.rows.show(rows, first or (view.current if here else None))
            self._asked_for, self._found = False, view.wanted

    @property
    def wish(self) -> Wish:
        return Wish(True, self._view.wanted, dict(self._opened), self.marked)

    def want(self, text: str) -> None:
        self._look(replace(self._view, wanted=text))

    def on_resize(self, event: events.Resize) -> None:
        """Draw as many levels as fit into the new width."""
        levels = max(1, (event.size.width - 1 - SIGN - _NAME) // LEVEL)
        if levels != self._view.deepest:
            self._look(replace(self._view, deepest=levels))
        self.paint()

    def _look(self, view: TreeView) -> None:
        self._view = view
        self._doings.look()
        if (snapshot := self.snapshot) is not None:
            self._doings.later(lambda: self.prepare(snapshot), partial(self.update_from, snapshot))

    def _fold(self, fold: bool) -> None:
        """Fold or unfold the branch at the cursor; if Left has nothing to fold, go to the agent above."""
        row = self.rows.item
        if not isinstance(row, TreeRow):
            return
        if fold and (row.folded or not row.below):
            self.rows.go_to(row.parent)
        elif not fold and row.hidden and not row.folded:
            self._open_more(row.agent.uuid)
        elif row.below:
            self._look(replace(self._view, folds={**self._view.folds, row.agent.uuid: fold}))

    def _open_more(self, uuid: str) -> None:
        """List more of the children of an agent."""
        listed = self.snapshot.listed if self.snapshot is not None else ()
        shown = sum(record.living and record.supervisor_uuid == uuid for record in listed)
        self._opened[uuid] = self._opened.get(uuid, shown) + MOST_LISTED
        self._doings.look()

    def _show_budget(self) -> None:
        if (uuid := self.rows.key) is not None:
            self._doings.press(f"/budget {uuid}")

    def _row(self, row: TreeRow) -> Text:
        here = self.snapshot is not None and row.agent.uuid == self.snapshot.current.uuid
        return tree_line(row, here, row.agent.uuid in self.marked, self.colours)


def tree_line(row: TreeRow, current: bool, marked: bool, colours: Palette) -> Text:
    """Return the row of one agent: sign, name, number of folded agents, unread mail, and the rate of its answer."""
    agent = row.agent
    text = (
        Text()
        .append(row.branch, colours.line)
        .append(f"{agent.activity.sign} ", colour_of(agent.activity.kind, colours))
    )
    name = colours.ink if row.wanted else colours.past
    if marked:
        text.append("✓ ", f"bold {colours.accent}")
    text.append(one_line(agent.name), f"bold {colours.accent if marked else name}" if current or marked else name)
    if current:
        text.append(" ‹", f"bold {colours.accent}")
    if row.folded:
        text.append(f" ▸ {row.below.agents:,}", colours.past)
        if row.below.waiting:
            text.append(f", {row.below.waiting:,} for you", colours.waits)
        if row.below.working:
            text.append(f", {row.below.working:,} working", colours.accent)
    if row.hidden:
        text.append(f" ▸ {row.hidden:,} more", colours.past)
    if agent.record.unread:
        text.append(f"  {counted(agent.record.unread, 'mail')}", colours.ink)
    if agent.rate:
        text.append(f"  {agent.rate:.0f}/s", colours.past)
    elif agent.silent >= LATELY:
        text.append(f"  {duration(agent.silent)}", colours.past)
    return text


def _name_end(row: TreeRow) -> int:
    """Return the number of columns of a line up to the end of the name."""
    return cell_len(row.branch) + SIGN + cell_len(one_line(row.agent.name))
