"""The lines around the prompt. Pure: facts in, lines out. Parts that do not fit are left out."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual.content import Content

from ikigai_actors.reach.snapshots import Snapshot
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.shell.app.theme import Palette
from ikigai_actors.shell.first_picture import SCREENS, STARTING
from ikigai_actors.verbs.text.budgets import short_budget
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.words import activity, counted, duration, in_thousands, money

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

LONG = 1.0
"""Seconds after which a command is shown as being in progress."""

_NAME = 18
"""The most columns of a name on a line."""

_SHOWN_WAY = 2
"""The number of agents above the current one that are named."""


class Underway(NamedTuple):
    """The present activity of the shown agent: its state, the seconds of its turn, and the rate of its answer."""

    state: str
    seconds: float | None = None
    """Seconds since the turn of the agent began; None if unknown."""
    answering: bool = False
    """Whether text of the agent's answer arrives."""
    rate: float = 0.0
    """Tokens per second, approximately."""
    answered: bool = False
    """Whether the approval box has the focus: then that box names the keys."""


def work_line(work: Underway | None, after: str, waiting: int, spin: int, width: int, colours: Palette) -> Text:
    """Return the line above the prompt: activity, duration, rate, and how to stop it.

    Args:
        work: the present activity; None for none.
        after: the duration and cost of the last turn, shown while there is no activity.
        waiting: the number of the person's texts that wait for the agent.
        spin: the frame of the spinner; any number.
        width: columns of the line.
        colours: the palette.
    """
    line = Text(f" {after}" if after else "", colours.past) if work is None else _working(work, spin, colours)
    right = f"{waiting} waiting · Up takes back " if waiting else ""
    if right and line.cell_len + len(right) < width:
        line.append(" " * (width - line.cell_len - len(right))).append(right, colours.past)
    line.truncate(width, overflow="ellipsis")
    return line


def command_line(what: str, seconds: float, spin: int, width: int, colours: Palette) -> Text:
    """Return the line above the prompt while a command takes long."""
    line = Text().append(f" {SPINNER[spin % len(SPINNER)]} ", f"bold {colours.accent}")
    line.append(one_line(what), colours.ink).append(f" · {duration(seconds)}", colours.past)
    line.truncate(width, overflow="ellipsis")
    return line


_WAYS_ON = {
    "asks": [("F2", "answers")],
    "interrupted": [("/resume", "goes on")],
    "stopped": [("/signal CONT", "goes on")],
    "dead": [],
}
"""The actions that a person can take, for each state in which the agent does nothing by itself."""


def _working(work: Underway, spin: int, colours: Palette) -> Text:
    kind, word = activity(work.state, work.answering)
    rests = kind in _WAYS_ON
    colour = colours.past if kind == "dead" else colours.waits if rests or kind == "budget" else colours.accent
    sign = activity(work.state).sign if rests else SPINNER[spin % len(SPINNER)]
    line = Text().append(f" {sign} ", f"bold {colour}")
    line.append(one_line(word), colours.ink if colour == colours.accent else colour)
    facts = [] if work.seconds is None or kind in ("dead", "stopped") else [duration(work.seconds)]
    facts += [f"{work.rate:.0f} tokens/s"] if work.rate >= 1 else []
    line.append("".join(f" · {fact}" for fact in facts), colours.past)
    for key, what in () if work.answered and kind == "asks" else _WAYS_ON.get(kind, [("Esc", "interrupts")]):
        line.append(" · ", colours.past).append(key, colours.accent).append(f" {what}", colours.past)
    return line


def way(snapshot: Snapshot | None, colours: Palette) -> Text:
    """Return the path to the current agent, as ``… ▸ lead ▸ buyer``."""
    if snapshot is None:
        return Text(STARTING, colours.past)
    above = snapshot.above
    line = Text("… ▸ " if len(above) > _SHOWN_WAY else "", colours.past)
    for record in reversed(above[:_SHOWN_WAY]):
        line.append(f"{short(record)} ▸ ", colours.past)
    return line.append(short(snapshot.current), f"bold {colours.ink}")


def facts(snapshot: Snapshot | None, model: str, arrived: int = 0) -> list[str]:
    """Return the texts at the right end of the prompt's border, least important first.

    Args:
        snapshot: the present snapshot; None before the first one.
        model: the name of the model of agents without a set model, in this process.
        arrived: approximate tokens of the arriving answer, which the service has not counted yet.
    """
    if snapshot is None:
        return []
    if snapshot.attached:
        model = ""
    budget = "" if snapshot.budget is None else f"budget {short_budget(snapshot.budget)[0]}"
    return [snapshot.attached, budget, snapshot.model or model, spent(snapshot, arrived)]


def spent(snapshot: Snapshot, arrived: int = 0) -> str:
    """Return tokens and money as ``1.2k in · 340 out · $0.0042``; empty while they are being summed up.

    With tokens of an answer on its way, in tens: ``1.2k in · ~360 out · $0.0042``. Where services have not counted all
    that is paid for, ``1.2k in · 340 out · up to $0.0093``, and without a price ``up to 9.3k tokens``.
    """
    if (usage := snapshot.tokens) is None:
        return ""
    taken = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    tens = arrived // 10 * 10
    about = "~" if tens else ""
    parts = [f"{in_thousands(taken)} in", f"{about}{in_thousands(usage.output_tokens + tens)} out"]
    if snapshot.cost is not None:
        parts.append(f"{'up to ' if snapshot.is_most else ''}{money(snapshot.cost)}")
    elif snapshot.is_most:
        parts.append(f"up to {in_thousands(snapshot.current.spent_tokens)} tokens")
    return " · ".join(parts)


_TRIES = (
    ("Our shop sells tea.", "say something"),
    ('/fork "You buy in Assam." --name buyer', "a child that knows all of it"),
    ("F3 tree   F4 agents   F1 keys", "look around"),
)


def welcome(width: int, colours: Palette) -> Text:
    """Return the text for first-time users: what the program is, and what to try."""
    text = Text("Every agent is a process: it has a mailbox and a log, forks, and outlives kill -9. Try:", colours.ink)
    room = max(cell_len(what) for what, _ in _TRIES) + 3
    for what, why in _TRIES:
        text.append(f"\n  {what}", colours.accent)
        if room + cell_len(why) + 2 <= width:
            text.append(" " * (room - cell_len(what)) + why, colours.past)
    return text


def lower_edge(busy: bool, outputs: int) -> str:
    """Return the lower border of the prompt: the effect of Enter, and outputs sent with the next prompt."""
    along = f"{counted(outputs, 'output')} with your next prompt · Ctrl+U drops" if outputs else ""
    return along or ("Enter steers · Alt+Enter queues" if busy else "")


def placeholder(name: str | None, width: int) -> Content:
    """Return the text of an empty prompt for an agent of this name; without commands in a narrow window."""
    asks = f"Ask {one_line(name) if name else 'anything'}"
    whole = f"{asks}, or / for commands"
    text = Text(whole if cell_len(whole) < width else asks)
    text.truncate(max(1, width - 1), overflow="ellipsis")
    return Content(text.plain)


def edge(left: Text, right: Sequence[str], width: int, colours: Palette) -> Text:
    """Return a border with a text at the left and facts at the right.

    When the facts do not all fit, the first ones are left out.
    """
    kept = [one_line(fact) for fact in right if fact]
    left.truncate(max(1, width), overflow="ellipsis")
    while kept and left.cell_len + Text(" · ".join(kept)).cell_len + 6 > width:
        kept = kept[1:]
    if kept:
        shown = Text(" · ".join(kept), colours.past)
        left.append(f" {'─' * (width - left.cell_len - shown.cell_len - 2)} ", colours.line).append_text(shown)
    return left


def foot(snapshot: Snapshot | None, width: int, colours: Palette, below: bool = False) -> Text:
    """Return the last line: new text and mail, the neighbours, and the keys of the screens.

    Parts that do not fit are left out, the last ones first. ``below``: whether new text is below the visible part.
    """
    new = [("^End", "new text below")] if below else []
    first, *others = [_key(*hint, colours) for hint in (*new, *_near(snapshot)) if hint[1]] or [Text()]
    left, screens = Text(" ").append_text(first), [_key(*screen, colours) for screen in SCREENS]
    while screens and left.cell_len + sum(text.cell_len for text in screens) > width:
        screens.pop(0)
    room = width - sum(text.cell_len for text in screens)
    for text in others:
        if left.cell_len + text.cell_len <= room:
            left.append_text(text)
    left.truncate(room, pad=True)
    return Text().join([left, *screens])


_READING = (("↑↓", "piece"), ("Enter", "opens"), ("Space", "folds"), ("/", "finds"), ("Esc", "prompt"))


def reading(width: int, colours: Palette) -> Text:
    """Return the last line while a person reads the transcript: the keys of the transcript."""
    line = Text(" ").append_text(Text().join(_key(*hint, colours) for hint in _READING))
    line.truncate(width, overflow="ellipsis")
    return line


def _near(snapshot: Snapshot | None) -> Iterable[tuple[str, str]]:
    """Yield the keys that lead to new mail and to the neighbours, each with its target as text, empty for none."""
    if snapshot is None:
        return
    mail, below = snapshot.current.unread, snapshot.children
    yield "F5", f"{mail} new mail" if mail else ""
    yield "^↑", short(snapshot.parent) if snapshot.parent is not None else ""
    yield "^↓", f"{below} below" if below else ""
    yield "^←", short(snapshot.previous) if snapshot.previous is not None else ""
    yield "^→", short(snapshot.following) if snapshot.following is not None else ""


def _key(key: str, what: str, colours: Palette) -> Text:
    return Text().append(key, colours.accent).append(f" {what}  ", colours.past)


def short(record: AgentRecord) -> str:
    """Return the name of an agent, cut to a few columns."""
    name = Text(one_line(record.short))
    name.truncate(_NAME, overflow="ellipsis")
    return name.plain
