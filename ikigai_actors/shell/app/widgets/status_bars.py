"""The bars around the prompt, as lines of text. Pure: a snapshot in, lines out."""

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from ikigai_actors.providers.base import Usage
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.shell.app.snapshot import Snapshot
from ikigai_actors.shell.app.widgets.approval_bar import Question
from ikigai_actors.shell.text.budgets import budget_text
from ikigai_actors.shell.text.harmless import one_line

_NAME = 17
"""The most columns of a name."""

_MOST = 20
"""The most columns that the agent's place leaves free for its state."""

KEYS = "F1 keys"

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

LONG = 1.0
"""Seconds after which a command is shown as in progress."""


def upper(snapshot: Snapshot | None, width: int, default: str = "") -> Text:
    """The line above the prompt: the agent's place in the tree, its state, its unread mail and its model.

    In a narrow window only the place and the state stay.

    Args:
        snapshot: the moment to show; None before the first one, which gives an empty rule.
        width: columns of the line.
        default: the name for the model of an agent that has set none; empty when it is not known.
    """
    if snapshot is None:
        return Text("─" * width, "dim")
    place = Text("─ ", "dim")
    for sign, record in (("↑", snapshot.parent), ("←", snapshot.previous)):
        place.append(*_neighbour(sign, record))
    place.append(f"[{_short(snapshot.current)}]", "bold")
    place.append(" ")
    place.append(*_neighbour("→", snapshot.following))
    place.append(f"↓{snapshot.children}", "" if snapshot.children else "dim")
    facts = [snapshot.state]
    if snapshot.current.unread:
        facts.append(f"{snapshot.current.unread} unread")
    facts.append(snapshot.model or default or "default model")
    return _filled(place, [one_line(fact) for fact in facts], width)


def lower(snapshot: Snapshot | None, database: str, provider: str, width: int, progress: str = "") -> Text:
    """The last line: calls that wait for the person, tokens and their cost, the budget, the provider, the database.

    Args:
        snapshot: the moment to show; None before the first one.
        database: the location of the database; a long one is cut at its beginning.
        provider: the name of the default provider; a snapshot of an attached system names its host instead.
        width: columns of the line.
        progress: the command in progress, from `progress_text`.
    """
    if snapshot is None:
        return Text(" starting …", "dim")
    left = Text(" ")
    if progress:
        left.append(f"{progress} · ", "bold")
    if waiting := len(snapshot.questions):
        left.append(f"{waiting} to approve (F2)", "bold")
        left.append(" · ")
    own, everybody = _spent(snapshot.tokens, snapshot.cost), _spent(snapshot.all_tokens, snapshot.all_cost)
    left.append(f"tokens {own}, all {everybody}", "dim")
    limited = f" · budget {budget_text(snapshot.budget)}" if snapshot.budget is not None else ""
    if cell_len(left.plain) + cell_len(limited) + cell_len(KEYS) < width:
        left.append(limited, "dim")
    rest = width - cell_len(left.plain) - cell_len(KEYS) - 2
    provider, database = one_line(snapshot.attached or provider), one_line(database)
    who = f" · {provider} · " if provider else " · "
    told = who + database
    if cell_len(told) > rest:  # the end of a path says most
        room = max(0, rest - cell_len(who) - 1)
        told = f"{who}…{database[-room:] if room else ''}"
    left.append(set_cell_size(told, max(0, rest)), "dim")
    left.append(f" {KEYS}", "dim")
    return left


def question(snapshot: Snapshot) -> Question | None:
    """The question to ask now: of the current agent, else the first; None without one."""
    open_ones = list(snapshot.questions.items())
    if not open_ones:
        return None
    number, call = next((pair for pair in open_ones if pair[1].agent == snapshot.current.uuid), open_ones[0])
    who = "" if call.agent == snapshot.current.uuid else f"{snapshot.names[call.agent]}: "
    return Question(number, who, call)


def progress_text(doing: tuple[str, float] | None) -> str:
    """The name and the seconds of a command that takes long, after a spinner; empty for a short command or None."""
    if doing is None or doing[1] < LONG:
        return ""
    what, seconds = doing
    return f"{SPINNER[int(seconds * 4) % len(SPINNER)]} {_cut(one_line(what), 24)} {seconds:.0f} s"


def tokens(usage: Usage) -> str:
    """The tokens in, cached ones too, and the tokens out, such as ``12k+340``."""
    taken = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    return f"{token_count(taken)}+{token_count(usage.output_tokens)}"


def dollars(cost: float | None) -> str:
    """A cost in dollars as text; empty when it is not known."""
    if cost is None:
        return ""
    return f"${cost:,.2f}" if cost >= 0.1 or not cost else f"${cost:.4f}"


def _spent(usage: Usage | None, cost: float | None) -> str:
    if usage is None:
        return "…"
    return f"{tokens(usage)} {dollars(cost)}".rstrip()


def token_count(number: int) -> str:
    """A number of tokens as text, such as ``12k``."""
    if number < 10_000:
        return str(number)
    return f"{number / 1_000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _short(record: AgentRecord) -> str:
    return _cut(one_line(record.short), _NAME)


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1).rstrip()}…"


def _neighbour(sign: str, record: AgentRecord | None) -> tuple[str, str]:
    return (f"{sign}{_short(record)} ", "") if record is not None else (f"{sign} ", "dim")


def _filled(place: Text, facts: list[str], width: int) -> Text:
    """Put the place on the left, the facts on the right, and a rule between them.

    Facts that do not fit are left out, the last one first; the place leaves room for the first fact.
    """
    least = min(cell_len(facts[0]) + 2, _MOST) + 3
    if place.cell_len > width - least:
        place.truncate(max(0, width - least), overflow="ellipsis")
    room, told = width - place.cell_len - 3, " · ".join(facts)
    while cell_len(told) > room and len(facts) > 1:
        facts = facts[:-1]
        told = f"{' · '.join(facts)} …"
    shown = _cut(told, max(0, room)) if room > 1 else ""
    place.append(" " + "─" * max(1, width - place.cell_len - cell_len(shown) - 3) + " ", "dim")
    place.append(shown, "italic" if shown else "")
    place.append(" ")
    place.truncate(width)
    return place
