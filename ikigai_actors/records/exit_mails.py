"""The mail that tells of deaths: one for each, or, where many die in one transaction, one that sums them up. Pure.

Who waits for an agent looks at its status, so no wait needs a mail. What an agent has found out comes in its own words:
the mail that sums up is of the topmost agent that died, and begins with what the mail of its death alone would say.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.records.mail import preview
from supervisors.causes import Cause

MOST_SINGLE = 20
"""So many deaths of one transaction are told of singly; of more a survivor gets one mail."""

TOPMOST_NAMED = 20
"""So many agents are named in a mail that sums up: the topmost."""


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


class ExitMail(NamedTuple):
    """A mail of kind ``exit``."""

    recipient: str
    sender: str
    """The agent that died, or the topmost of those that did."""
    body: str


def exit_mails(
    dead: Mapping[str, End],
    hearers: Mapping[str, Sequence[str]],
    supervisors: Mapping[str, str | None],
    names: Mapping[str, str],
) -> list[ExitMail]:
    """The mails that tell of the deaths of one transaction.

    Args:
        dead: why each agent dies, leaves first.
        hearers: who hears of each: the nearest survivor above it, and those that monitor it.
        supervisors: who supervised each.
        names: what people call each.
    """
    mails: list[ExitMail] = []
    heard: dict[str, list[str]] = {}
    for uuid in dead:
        for hearer in hearers[uuid]:
            heard.setdefault(hearer, []).append(uuid)
    for hearer, uuids in heard.items():
        if len(uuids) > MOST_SINGLE:
            mails.append(_summed_up(hearer, uuids, dead, supervisors, names))
        else:
            mails += [ExitMail(hearer, uuid, dead[uuid].text) for uuid in uuids]
    return mails


def _summed_up(
    hearer: str,
    uuids: Sequence[str],
    dead: Mapping[str, End],
    supervisors: Mapping[str, str | None],
    names: Mapping[str, str],
) -> ExitMail:
    from_the_top = uuids[::-1]
    top = [uuid for uuid in from_the_top if supervisors[uuid] not in dead]
    first = next((uuid for uuid in top if dead[uuid].cause is not Cause.ORPHANED), from_the_top[0])
    causes = Counter(dead[uuid].cause.value for uuid in uuids)
    counted = ", ".join(f"{count:,} {cause}" for cause, count in sorted(causes.items()))
    below = [uuid for uuid in [*top, *(one for one in from_the_top if one not in set(top))] if uuid != first]
    lines = [f"{names[uuid]}: {preview(dead[uuid].text)}" for uuid in below[:TOPMOST_NAMED]]
    more = f"\n({len(below) - TOPMOST_NAMED:,} more)" if len(below) > TOPMOST_NAMED else ""
    told = f"{len(uuids):,} agents died at once: {counted}. Beside {names[first]}, from the top:"
    return ExitMail(hearer, first, "\n".join([f"{dead[first].text}\n", told, *lines]) + more)
