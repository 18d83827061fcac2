"""Computes when timers are due, with calendars and time zones. It reads neither a clock nor the database.

A schedule is a period, such as ``36h``, or has the five fields of cron and a time zone. When the zone's clocks are set
forward, times in the skipped hour are due directly after it. When they are set back, times in the repeated hour are due
once, the first time. Hourly or more frequent schedules are due in both. The next time follows from the one before, and
not from when somebody looked, so no schedule drifts.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import count, islice, pairwise, takewhile
from typing import Any, NamedTuple

from ikigai_actors.arguments import check_count, check_seconds, check_type, is_span, parse_span, shown
from ikigai_actors.errors import BadInput

FARTHEST_TIME = 10 * 366 * 86_400
"""The most seconds that a timer may be ahead: ten years."""

MOST_COUNTED = 1_000
"""The most missed times that are counted exactly."""

NOTED_DELAY = 60_000
"""The delay, in milliseconds, from which on the text of a firing says when the timer was due."""

EXAMPLE = '"0 9 * * 1-5"'

_LEAST_APART = 60
"""The least seconds between two times of a schedule; no five fields have any that are closer."""

_MOST_TOLD = 1_000
"""The most upcoming times that are shown at once."""

_DAY = 86_400_000

_CALENDARS = 28 * 366 * _DAY
"""The length of a calendar cycle in milliseconds: within it each day of a month falls on each weekday."""


@dataclass(frozen=True, slots=True)
class Appointment:
    """The time or times at which a timer fires."""

    due_at: int
    """The first time, in milliseconds since 1970."""
    schedule: str | None
    """The five fields of cron, or a period; None if it fires once."""
    zone: str
    """The name of the time zone."""

    def times(self, most: object) -> list[datetime]:
        """Return the times at which the timer fires, in its zone, the first time first; at most ``most``.

        Raises `BadInput`.
        """
        clocks = _zone(self.zone)
        following = _times(self.schedule, clocks, self.due_at) if self.schedule is not None else iter(())
        further = islice(following, check_count(most, "count", least=1, most=_MOST_TOLD) - 1)
        return [datetime.fromtimestamp(at / 1000, clocks) for at in (self.due_at, *further)]


class Passed(NamedTuple):
    """The state of a schedule whose time has come: how often it was due, and when it is due next."""

    times: int
    """How many times it was due since: at least 1, and at most `MOST_COUNTED` + 1, which means more."""
    due_at: int | None
    """The next time, in milliseconds since 1970; None for never."""


def times(at: object = None, after: object = None, zone: object = None, every: object = None) -> dict[str, Any]:
    """Return the time arguments of a call as one dict, in the form of `KeyedCall.arguments`."""
    options = {"at": at, "after": after, "zone": zone, "every": every}
    return {name: str(option) for name, option in options.items() if option is not None}


def appointment(
    now: int,
    *,
    at: object = None,
    after: object = None,
    every: object = None,
    zone: object = None,
    least: int = _LEAST_APART,
) -> Appointment:
    """Return when a timer with these arguments fires. Raises `BadInput`.

    Args:
        now: the time, in milliseconds since 1970.
        at: a `datetime`, or a text such as ``2026-11-26 09:00`` or ``09:00``; without an offset, a time in ``zone``.
        after: seconds from now.
        every: five fields of cron, or a period such as ``36h``.
        zone: an IANA name; None for the zone of this machine.
        least: the least seconds between two times of a schedule.
    """
    names = [name for name, value in (("at", at), ("after", after), ("every", every)) if value is not None]
    if len(names) != 1:
        raise BadInput(f"Expected one of at, after and every; got {' and '.join(names) or 'none of them'}.")
    name = local_zone() if zone is None else check_type(zone, str, "zone", "the name of a time zone")
    clocks = _zone(name)
    if every is not None:
        schedule = _check_schedule(every, least)
        due = next_time(schedule, name, now)
        if due is None:
            raise BadInput(f"Expected a schedule that fires; {shown(every)} never does.")
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
    """Return when a schedule is due next after a time, in milliseconds since 1970; None for never."""
    return next(_times(schedule, _zone(zone), after), None)


def passed(schedule: str, zone: str, due: int, now: int) -> Passed:
    """Return the state, at ``now``, of a schedule that was due at a time."""
    if (step := _step(schedule)) is not None:
        times = (now - due) // step + 1
        return Passed(min(times, MOST_COUNTED + 1), due + times * step)
    times = 1
    for following in _times(schedule, _zone(zone), due):
        if following > now:
            return Passed(times, following)
        times += 1
        if times > MOST_COUNTED:
            return Passed(times, next_time(schedule, zone, now))
    return Passed(times, None)


def clock_time(at: int, zone: str) -> str:
    """Format a time in milliseconds since 1970 as the clocks of a zone show it."""
    return f"{datetime.fromtimestamp(at / 1000, _zone(zone)):%Y-%m-%d %H:%M}"


def with_delay(body: str, missed: int, since: int | None, due: int, now: int, zone: str) -> str:
    """Return the text that a timer sends, with a note about missed times or a delay.

    Args:
        body: the text of the timer.
        missed: how many times it was due before without firing.
        since: the first of these times; None for none.
        due: the time when this firing was due, if none was missed.
        now: the time of the firing.
        zone: the time zone for the note.
    """
    if missed and since is not None:
        often = "once" if missed == 1 else f"{missed_text(missed)} times"
        return f"{body}\n\n(Missed {often} since {clock_time(since, zone)}, {zone}.)"
    return f"{body}\n\n(This was due at {clock_time(due, zone)}, {zone}.)" if now - due >= NOTED_DELAY else body


def missed_text(missed: int) -> str:
    """Return how many times were missed, in words."""
    return f"{missed:,}" if missed <= MOST_COUNTED else f"more than {MOST_COUNTED:,}"


def local_zone() -> str:
    """Return the name of this machine's time zone; UTC if it is unknown."""
    zone = os.environ.get("TZ", "").removeprefix(":") or os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
    try:
        _zone(zone)
    except BadInput:
        return "UTC"
    return zone


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # only a timer waits for it: it reads how Python was built

    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise BadInput(
            f"Expected zone to be the name of a time zone, such as Europe/Berlin; got {shown(name)}. A machine that "
            "knows no zones, as most with Windows, needs the package tzdata."
        ) from None


def _times(schedule: str, zone: tzinfo, after: int) -> Iterator[int]:
    """Iterate over the times of a schedule after a time; all are milliseconds since 1970.

    If clocks are set back, the five fields mean the first pass of the repeated hour. A time whose first pass is over is
    left out.
    """
    from cronsim import CronSim

    if (step := _step(schedule)) is not None:
        yield from count(after + step, step)
    for time in CronSim(schedule, datetime.fromtimestamp(after / 1000, zone)):
        if (due := round(time.timestamp() * 1000)) > after:
            yield due


def _step(schedule: str) -> int | None:
    """Return the milliseconds between two times of a periodic schedule; None for a schedule of five fields."""
    return None if " " in schedule else parse_span(schedule)


def check_stored(schedule: str, zone: str) -> None:
    """Check the form of a stored schedule. Raises `BadInput`."""
    _zone(zone)
    _read_schedule(schedule)


def _check_schedule(every: object, least: int) -> str:
    text = check_type(
        every, str, "every", f"five fields as of cron, such as {EXAMPLE}, or a length of time such as 36h"
    )
    schedule = _read_schedule(text)
    if (closest := _closest(schedule, least * 1000)) < max(least, _LEAST_APART) * 1000:
        raise BadInput(
            f"Expected times at least {_told(max(least, _LEAST_APART))} apart; {schedule!r} has some that are "
            f"{_told(closest // 1000)} apart."
        )
    if (step := _step(schedule)) is not None:
        check_seconds(step / 1000, "every", most=FARTHEST_TIME)
    return schedule


def _told(seconds: int) -> str:
    whole, unit = (seconds // 60, "minute") if seconds % 60 == 0 else (seconds, "second")
    return f"{whole} {unit}{'' if whole == 1 else 's'}"


def _closest(schedule: str, least: int) -> int:
    """Return the least milliseconds between two times of a schedule, or ``least`` if that is smaller; at most a day.

    Five fields mean the same times on each of their days. So one day shows all distances except the one over midnight,
    which counts if two of the days follow each other.
    """
    if (step := _step(schedule)) is not None:
        return step
    first = next_time(schedule, "UTC", 0)
    if least <= _LEAST_APART * 1000 or first is None:
        return least
    day = [first, *takewhile(lambda time: time // _DAY == first // _DAY, _times(schedule, UTC, first))]
    closest = min((later - earlier for earlier, later in pairwise(day)), default=_DAY)
    over_midnight = day[0] + _DAY - day[-1]
    return min(closest, over_midnight) if over_midnight < least and _has_days_in_a_row(schedule) else closest


def _has_days_in_a_row(schedule: str) -> bool:
    days = " ".join(["0", "0", *schedule.split()[2:]])
    times = takewhile(lambda time: time < _CALENDARS, _times(days, UTC, -1))
    return any(later - earlier == _DAY for earlier, later in pairwise(times))


def _read_schedule(text: str) -> str:
    from cronsim import CronSim, CronSimError

    fields = text.split()
    if is_span(text) and parse_span(text):
        return "".join(fields)
    try:
        if len(fields) != 5:  # a sixth would be seconds
            raise CronSimError("Wrong number of fields")
        schedule = " ".join(fields)
        CronSim(schedule, datetime.fromtimestamp(0, UTC))
    except CronSimError as error:
        raise BadInput(
            f"Expected every to be five fields as of cron (minute, hour, day, month, weekday), such as {EXAMPLE}, or a "
            f"length of time such as 36h; got {shown(text)}: {str(error).lower()}."
        ) from None
    return schedule


def _moment(at: object, zone: tzinfo, now: int) -> int:
    moment = at
    if isinstance(at, str):
        try:
            moment = datetime.fromisoformat(at.strip())
        except ValueError:
            moment = _next_at(at.strip(), zone, now)
    if not isinstance(moment, datetime):
        raise BadInput(f"Expected at to be a time, such as 2026-11-26 09:00 or 09:00; got {shown(at)}.")
    if moment.tzinfo is not None:
        return round(moment.timestamp() * 1000)
    both = [round(moment.replace(tzinfo=zone, fold=fold).timestamp() * 1000) for fold in (moment.fold, 1)]
    return next((time for time in both if time > now), both[0])  # in an hour that comes twice, the pass that is to come


def _next_at(text: str, zone: tzinfo, now: int) -> datetime | None:
    """Return the next time at which clocks show this text; None if they never do."""
    try:
        wanted = datetime.strptime(text, "%H:%M")
    except ValueError:
        return None
    today = datetime.fromtimestamp(now / 1000, zone)
    first = today.replace(hour=wanted.hour, minute=wanted.minute, second=0, microsecond=0)
    return first if first > today else first + timedelta(days=1)
