"""Waits of a turn for a process that has the hooks which its setting ``hooks`` names. Pure.

A process without such a hook denies nothing at once: the old hosts of a rolling deploy would deny what the new ones can
ask about. The turn waits, and a ``hook`` message says for which hooks and until when. The process that goes on with the
turn reads that: it asks the hooks, or waits for the rest of the time without them. After it, what the hooks decide on
is denied for the rest of the turn.
"""

from collections.abc import Iterable, Sequence

from ikigai_actors.agent.turn.service_waits import ServiceWait
from ikigai_actors.agent.turn.state import AwaitService, Phase, State, Step
from ikigai_actors.agent.turn.steps import PendingMessage, advance, messages_of
from ikigai_actors.records.budgets.amounts import Held
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind, Message

LONGEST_HOOK_WAIT = 600
"""The seconds that a turn waits for a process with a hook that its own process lacks, before it is denied."""
LACKING, UNTIL = "lacking", "until"
"""Keys of the data of ``hook`` messages: the hooks that are waited for, and the time at which the wait is over."""


def waited_until(turn: Iterable[Message]) -> int:
    """Return the time at which the wait of a turn for missing hooks ends; 0 if the turn has not waited.

    In milliseconds since 1970.
    """
    for message in turn:
        if message.kind == Kind.HOOK and LACKING in message.data:
            return int(message.data[UNTIL])
    return 0


def await_hooks(state: State, names: Sequence[str], until: int, now: int) -> Step:
    """Let the turn wait for a process that has the hooks ``names``. The reserved cost is freed meanwhile.

    ``until``: the end of the wait that has begun already, as `waited_until` returns it.
    """
    wait = ServiceWait(f"hook {', '.join(names)}", until or now + LONGEST_HOOK_WAIT * 1_000, lacks_hooks=True)
    begins: PendingMessage = (
        Kind.HOOK, f"waits for a process with {wait.service}", {LACKING: list(names), UNTIL: wait.until}
    )  # fmt: skip
    messages = messages_of(state.uuid, state.head, now, () if until else (begins,))
    if state.phase is Phase.RUNNING_TOOLS:
        after = advance(state, messages, service_wait=wait)
    else:
        request = state.request + 1
        after = advance(state, messages, phase=Phase.WAITING_FOR_SERVICE, request=request, service_wait=wait, hold=None)
    unit = LogUnit(state.uuid, messages) if messages or isinstance(state.hold, Held) else None
    return Step(after, unit, (AwaitService(after.request, wait.until),))
