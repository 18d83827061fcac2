"""The mail about deaths: one for each death, or a summary when many die in one transaction. Pure.

Waits check the status of an agent, so they do not need this mail. The result of an agent must not be lost: a summary
comes from the topmost agent that died, and begins with the text of its own mail.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple

from ikigai_actors.records.mail.mail import preview
from supervisors.causes import Cause

MOST_SINGLE = 20
"""The most deaths of one transaction that have a mail each. If there are more, each survivor gets one summary."""

TOPMOST_NAMED = 20
"""The most agents that a summary names: the topmost."""


@dataclass(frozen=True, slots=True)
class End:
    """The cause of an agent's death."""

    cause: Cause
    reason: str
    """The reason for people; for an agent that exited, its result."""
    sender: str | None = None
    """The agent that ended it; None for a person or the runtime."""

    @property
    def text(self) -> str:
        """Return the result of an agent that exited, else a description of its death."""
        return self.reason if self.cause is Cause.EXITED else f"{self.cause}: {self.reason}"


_CAUSE = attrgetter("cause")


class ExitMail(NamedTuple):
    """A mail of kind ``exit``, which reports one death or several."""

    recipient: str
    sender: str
    """The agent that died, or the topmost of several."""
    body: str


def exit_mails(
    dead: Mapping[str, End],
    hearers: Mapping[str, Sequence[str]],
    supervisors: Mapping[str, str | None],
    called: Callable[[str], str],
) -> list[ExitMail]:
    """Return the mails about the deaths of one transaction.

    Args:
        dead: the cause of each death, leaves first.
        hearers: for each survivor, the deaths about which it gets mail, leaves first: of agents below, or monitored.
        supervisors: the supervisors of the agents that die, and maybe of others.
        called: returns the name of a dying agent for people.
    """
    mails: list[ExitMail] = []
    for hearer, uuids in hearers.items():
        if len(uuids) > MOST_SINGLE:
            mails.append(_summed_up(hearer, uuids, dead, supervisors, called))
        else:
            mails += [ExitMail(hearer, uuid, dead[uuid].text) for uuid in uuids]
    return mails


def _summed_up(
    hearer: str,
    uuids: Sequence[str],
    dead: Mapping[str, End],
    supervisors: Mapping[str, str | None],
    called: Callable[[str], str],
) -> ExitMail:
    from_the_top = uuids[::-1]
    top = dict.fromkeys(uuid for uuid in from_the_top if supervisors[uuid] not in dead)
    first = next((uuid for uuid in top if dead[uuid].cause is not Cause.ORPHANED), from_the_top[0])
    causes = Counter(map(_CAUSE, map(dead.__getitem__, uuids)))
    counted = ", ".join(f"{count:,} {cause}" for cause, count in sorted(causes.items()))
    below = (uuid for uuid in chain(top, (name for name in from_the_top if name not in top)) if uuid != first)
    lines = [f"{called(uuid)}: {preview(dead[uuid].text)}" for uuid in islice(below, TOPMOST_NAMED)]
    unnamed = len(uuids) - 1 - len(lines)
    more = f"\n({unnamed:,} more)" if unnamed else ""
    summary = f"{len(uuids):,} agents died at once: {counted}. Beside {called(first)}, from the top:"
    return ExitMail(hearer, first, "\n".join([f"{dead[first].text}\n", summary, *lines]) + more)
