"""The mail about deaths: one for each, or, where many die in one transaction, one that sums them up. Pure.

A wait for an agent looks at its status, so no wait needs a mail. What an agent has found out comes in its own words:
the mail that sums up is of the topmost agent that died, and begins with what the mail of its death alone would say.
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
"""Up to this many deaths of one transaction have a mail each; of more a survivor gets one mail."""

TOPMOST_NAMED = 20
"""How many agents a mail that sums up names: the topmost."""


@dataclass(frozen=True, slots=True)
class End:
    """Why an agent dies."""

    cause: Cause
    reason: str
    """For people. The result of an agent that exited."""
    sender: str | None = None
    """The agent that ended it."""

    @property
    def text(self) -> str:
        """The result of an agent that exited, else how it died."""
        return self.reason if self.cause is Cause.EXITED else f"{self.cause}: {self.reason}"


_CAUSE = attrgetter("cause")


class ExitMail(NamedTuple):
    """A mail of kind ``exit``."""

    recipient: str
    sender: str
    """The agent that died, or the topmost of those that did."""
    body: str


def exit_mails(
    dead: Mapping[str, End],
    told: Mapping[str, Sequence[str]],
    supervisors: Mapping[str, str | None],
    called: Callable[[str], str],
) -> list[ExitMail]:
    """The mails about the deaths of one transaction.

    Args:
        dead: why each agent dies, leaves first.
        told: of whose deaths each survivor hears, leaves first: the nearest above them, and those that monitor them.
        supervisors: those of the agents that die, and maybe of others.
        called: gives what people call an agent that dies.
    """
    mails: list[ExitMail] = []
    for hearer, uuids in told.items():
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
    below = (uuid for uuid in chain(top, (one for one in from_the_top if one not in top)) if uuid != first)
    lines = [f"{called(uuid)}: {preview(dead[uuid].text)}" for uuid in islice(below, TOPMOST_NAMED)]
    unnamed = len(uuids) - 1 - len(lines)
    more = f"\n({unnamed:,} more)" if unnamed else ""
    told = f"{len(uuids):,} agents died at once: {counted}. Beside {called(first)}, from the top:"
    return ExitMail(hearer, first, "\n".join([f"{dead[first].text}\n", told, *lines]) + more)
