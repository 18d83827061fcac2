"""Numbers and states as text for people, the same on all screens. Pure."""

from typing import NamedTuple

from ikigai_actors.agent.turn.state import HOSTLESS, IN_A_TURN, WAITS_FOR, Phase, asks_person, lacks_program
from supervisors.signals import Status

SIGNS = {
    "idle": "○",
    "thinking": "◐",
    "answering": "●",
    "tool": "▶",
    "waiting": "◇",
    "asks": "?",
    "budget": "$",
    "interrupted": "‖",
    "stopped": "‖",
    "dead": "×",
}
"""The sign of each kind of state: one column wide, and available in most fonts."""

RUNS, SUMMARISING = "runs ", "summarising "
"""The beginnings of states that name running tools, or the number of messages being summarised."""


class Activity(NamedTuple):
    """A state of an agent as text for people, with the kind of the state."""

    kind: str
    """The kind of state, a key of `SIGNS`."""
    word: str

    @property
    def sign(self) -> str:
        """Return the sign that shows the kind of the state."""
        return SIGNS[self.kind]


_ACTIVITIES = {
    Phase.WAITING_FOR_MODEL: Activity("thinking", "thinking"),
    IN_A_TURN: Activity("thinking", "in a turn"),
    Phase.COMPACTING: Activity("thinking", "summarising"),
    Phase.MERGING: Activity("thinking", "merging"),
    Phase.RUNNING_TOOLS: Activity("tool", "running tools"),
    Phase.WAITING_FOR_APPROVAL: Activity("asks", "asks you"),
    Phase.WAITING_FOR_SERVICE: Activity("waiting", "waits for its service"),
    Phase.WAITING_FOR_BATCH: Activity("waiting", "waits for its batch"),
    Phase.WAITING_FOR_BUDGET: Activity("budget", "waits for budget"),
    Phase.INTERRUPTED: Activity("interrupted", "interrupted"),
    HOSTLESS: Activity("interrupted", HOSTLESS),
    Phase.UNLOADED: Activity("idle", "idle"),
    Status.STOPPED: Activity("stopped", "stopped"),
    Status.TERMINATING: Activity("stopped", "ending"),
    Status.DEAD: Activity("dead", "dead"),
}


def activity(state: str, answering: bool = False) -> Activity:
    """Convert a state of the system to text for people; ``answering``: whether text of the answer is arriving."""
    if answering and state in (Phase.WAITING_FOR_MODEL, IN_A_TURN):
        return Activity("answering", "answering")
    if (known := _ACTIVITIES.get(state)) is not None:
        return known
    if asks_person(state):
        return Activity("asks", f"asks {state.removeprefix(Phase.WAITING_FOR_APPROVAL).removeprefix(' by ')}")
    if state.startswith(RUNS):
        return Activity("tool", f"running {state.removeprefix(RUNS)}")
    if state.startswith(SUMMARISING):
        return Activity("thinking", state)
    return Activity("waiting" if state.startswith(WAITS_FOR) or lacks_program(state) else "idle", state)


def duration(seconds: float) -> str:
    """Return a time in its largest fitting unit: ``12 s``, ``3 min``, ``5 h``, ``2 d``; at least ``0 s``."""
    whole = max(0, int(seconds))
    for most, unit, name in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if whole < most:
            return f"{whole // unit} {name}"
    return f"{whole // 86_400} d"


def in_thousands(number: int) -> str:
    """Return a large number in short form: ``690``, ``1.2k``, ``41k``, ``1.3M``."""
    if number < 1_000:
        return str(number)
    if number < 9_950:
        return f"{number / 1_000:.1f}k"
    return f"{number / 1_000:.0f}k" if number < 999_500 else f"{number / 1_000_000:.1f}M"


def took(seconds: float, tokens: int) -> str:
    """Return the duration and tokens of a turn as text: ``12 s · 340 out``."""
    return f"{duration(seconds)} · {in_thousands(tokens)} out" if tokens else duration(seconds)


def money(dollars: float) -> str:
    """Return dollars with as many decimal places as matter: ``$1.24``, ``$0.075``, ``$0.0042``."""
    if not dollars or dollars >= 0.0995:
        return f"${dollars:,.2f}"
    if dollars < 0.00005:
        return "<$0.0001"
    return f"${dollars:.3f}" if dollars >= 0.00995 else f"${dollars:.4f}"


def counted(number: int, what: str) -> str:
    """Return a number with its noun: ``1 mail``, ``1,200 mails``; for nouns with a plural in s."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
