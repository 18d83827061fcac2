"""The checks of fsck for timers."""

from collections.abc import Iterator, Mapping

from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.mail.mail import NOTICE, PROMPT
from ikigai_actors.records.mail.schedules import check_stored
from ikigai_actors.records.mail.timers import Timer, every_timer
from ikigai_actors.store.base import Transaction


def check_timers(tx: Transaction, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return the faults of timers; ``records`` are all agents, by uuid."""
    for timer in every_timer(tx):
        for wrong in _wrong(timer, records):
            yield Violation(Invariant.TIMER, timer.agent_uuid, f"expected timer {timer.id} {wrong}")


def _wrong(timer: Timer, records: Mapping[str, AgentRecord]) -> Iterator[str]:
    record = records.get(timer.agent_uuid)
    if record is None or not record.living:
        yield "to be of a living agent"
        return
    if timer.id > record.timed:
        yield f"to have a number up to {record.timed}"
    if timer.latest > record.mailed:
        yield f"to have fired mail {record.mailed} at the latest; it names mail {timer.latest}"
    if timer.sender is not None and timer.sender not in records:
        yield f"to be of an agent or of a person; it is of {timer.sender!r}, and there is no such agent"
    if (timer.missed > 0) != (timer.since is not None):
        yield f"to say since when {timer.missed} times were missed, if any were"
    if timer.schedule is not None:
        try:
            check_stored(timer.schedule, timer.zone)
        except BadInput as error:
            yield f"to have a schedule: {error}"
        if timer.fires_as not in (NOTICE, PROMPT):
            yield f"to fire a notice or a prompt again and again; it fires {timer.fires_as}"
