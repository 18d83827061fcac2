"""When timers are due: arithmetic of calendars and zones. Nothing here reads a clock or the database.

A schedule has the five fields of cron, and a zone whose clocks it means. Where these are put forward, what is due in
the hour that is left out is due right behind it; where they are put back, what is due in the hour that comes twice is
due once, the first time. What is due in every hour, or every few minutes, is due in each of them. The next time follows
from the one before, and not from when somebody looked, so no schedule drifts.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ikigai_actors.arguments import check_seconds, check_type, shown
from ikigai_actors.errors import BadInput

FARTHEST_TIME = 10 * 366 * 86_400
"""How far ahead a timer may be due, in seconds: ten years."""

MOST_COUNTED = 1_000
"""So many missed times are counted; then it is said that there were more."""

NOTED_DELAY = 60_000
"""From so many milliseconds on it is said when a timer was due."""

EXAMPLE = '"0 9 * * 1-5"'

_POINTS = 130
"""So many times of a schedule show the shortest distance of two: those of two full hours, and one more."""

_TWO_YEARS = 2 * 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class Appointment:
    """When a timer fires."""

    due_at: int
    """The first time, in milliseconds since 1970."""
    schedule: str | None
    """The five fields; None when it fires once."""
    zone: str
    """The name of the zone whose clocks are meant, and are shown."""


class Passed(NamedTuple):
    """What a schedule says about a time that is over."""

    times: int
    """How many were due since: at least 1, and at most `MOST_COUNTED` + 1, which means more."""
    due_at: int | None
    """When it is due again; None for never."""


def appointment(
    now: int,
    *,
    at: object = None,
    after: object = None,
    every: object = None,
    zone: object = None,
    least: int = 60,
) -> Appointment:
    """When a timer is to fire. Raises `BadInput`.

    Args:
        now: the time, in milliseconds since 1970.
        at: a `datetime`, or a text as ``2026-11-26 09:00`` or ``09:00``; without an offset the clocks of ``zone``.
        after: seconds from now on.
        every: five fields, as of cron.
        zone: an IANA name; None for the zone of this machine.
        least: the least seconds between two times of a schedule.
    """
    given = [name for name, value in (("at", at), ("after", after), ("every", every)) if value is not None]
    if len(given) != 1:
        raise BadInput(f"Expected one of at, after and every; got {' and '.join(given) or 'none of them'}.")
    name = local_zone() if zone is None else check_type(zone, str, "zone", "the name of a time zone")
    clocks = _zone(name)
    if every is not None:
        schedule = _check_schedule(every, least)
        due = next_time(schedule, name, now)
        if due is None:
            raise BadInput(f"Expected a schedule that is due some day; {shown(every)} never is.")
        return Appointment(due, schedule, name)
    if after is not None:
        return Appointment(now + round(check_seconds(after, "after", most=FARTHEST_TIME) * 1000), None, name)
    due = _moment(at, clocks, now)
    if not now < due <= now + FARTHEST_TIME * 1000:
        raise BadInput(
            f"Expected at to be a time to come, within ten years; got {shown(at)}. It is {clock_time(now, name)} now."
        )
    return Appointment(due, None, name)


def next_time(schedule: str, zone: str, after: int) -> int | None:
    """When a schedule is due next behind a time, in milliseconds since 1970; None for never."""
    return next(_times(schedule, _zone(zone), after), None)


def passed(schedule: str, zone: str, due: int, now: int) -> Passed:
    """What became of a schedule that was due at a time, and is looked at now."""
    count = 1
    for following in _times(schedule, _zone(zone), due):
        if following > now:
            return Passed(count, following)
        count += 1
        if count > MOST_COUNTED:
            return Passed(count, next_time(schedule, zone, now))
    return Passed(count, None)


def clock_time(at: int, zone: str) -> str:
    """A time in milliseconds since 1970, as the clocks of a zone show it."""
    return f"{datetime.fromtimestamp(at / 1000, _zone(zone)):%Y-%m-%d %H:%M}"


def with_delay(body: str, missed: int, since: int | None, due: int, now: int, zone: str) -> str:
    """The text that a timer fires.

    Args:
        body: what it says.
        missed: how often it was due before without a firing.
        since: the first of these times.
        due: when this firing was due, where none was missed.
        now: when it fires.
        zone: for the clocks that are shown.
    """
    if missed and since is not None:
        counted = f"{missed:,}" if missed <= MOST_COUNTED else f"more than {MOST_COUNTED:,}"
        often = "once" if missed == 1 else f"{counted} times"
        return f"{body}\n\n(Missed {often} since {clock_time(since, zone)}, {zone}.)"
    return f"{body}\n\n(This was due at {clock_time(due, zone)}, {zone}.)" if now - due >= NOTED_DELAY else body


def local_zone() -> str:
    """The name of this machine's time zone; UTC where it does not tell."""
    told = os.environ.get("TZ", "").removeprefix(":") or os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
    try:
        _zone(told)
    except BadInput:
        return "UTC"
    return told


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise BadInput(
            f"Expected zone to be the name of a time zone, such as Europe/Berlin; got {shown(name)}. A machine that "
            "knows no zones, as most with Windows, needs the package tzdata."
        ) from None


def _times(schedule: str, zone: tzinfo, after: int) -> Iterator[int]:
    """The times of a schedule behind a time, in order; all in milliseconds since 1970."""
    for time in CronSim(schedule, datetime.fromtimestamp(after / 1000, zone)):
        yield round(time.timestamp() * 1000)


def check_stored(schedule: str, zone: str) -> None:
    """Check the form of a schedule that was accepted once. Raises `BadInput`."""
    _zone(zone)
    _read_schedule(schedule)


def _check_schedule(every: object, least: int) -> str:
    text = check_type(every, str, "every", f"five fields as of cron, such as {EXAMPLE}")
    schedule = _read_schedule(text)
    times = islice(_times(schedule, UTC, 0), _POINTS)
    first = takewhile(lambda time: time < _TWO_YEARS, times)
    if any(later - earlier < least * 1000 for earlier, later in pairwise(first)):
        raise BadInput(f"Expected times at least {least // 60} minutes apart; {schedule!r} has some that are closer.")
    return schedule


def _read_schedule(text: str) -> str:
    """The five fields, each separated by one space. Raises `BadInput`."""
    fields = text.split()
    try:
        if len(fields) != 5:  # a sixth would be seconds
            raise CronSimError("Wrong number of fields")
        schedule = " ".join(fields)
        CronSim(schedule, datetime.fromtimestamp(0, UTC))
    except CronSimError as error:
        raise BadInput(
            f"Expected every to be five fields as of cron (minute, hour, day, month, weekday), such as {EXAMPLE}; got "
            f"{shown(text)}: {str(error).lower()}."
        ) from None
    return schedule


def _moment(at: object, zone: ZoneInfo, now: int) -> int:
    """A moment that was given, in milliseconds since 1970."""
    moment = at
    if isinstance(at, str):
        try:
            moment = datetime.fromisoformat(at.strip())
        except ValueError:
            moment = _next_at(at.strip(), zone, now)
    if not isinstance(moment, datetime):
        raise BadInput(f"Expected at to be a time, such as 2026-11-26 09:00 or 09:00; got {shown(at)}.")
    return round((moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).timestamp() * 1000)


def _next_at(text: str, zone: ZoneInfo, now: int) -> datetime | None:
    """The next time at which clocks show this; None when they never do."""
    try:
        wanted = datetime.strptime(text, "%H:%M")
    except ValueError:
        return None
    today = datetime.fromtimestamp(now / 1000, zone)
    first = today.replace(hour=wanted.hour, minute=wanted.minute, second=0, microsecond=0)
    return first if first > today else first + timedelta(days=1)
