"""When timers are due: pure arithmetic of calendars and zones."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ikigai_actors.errors import BadInput
from ikigai_actors.records.mail.schedules import (
    MOST_COUNTED,
    Appointment,
    Passed,
    appointment,
    clock_time,
    local_zone,
    next_time,
    passed,
    with_delay,
)

BERLIN = "Europe/Berlin"

WINTER = round(datetime(2026, 1, 15, 8, 30, tzinfo=ZoneInfo(BERLIN)).timestamp() * 1000)


SECOND_PASS = round(datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=ZoneInfo(BERLIN)).timestamp() * 1000)
"""In the hour that comes twice, the second time."""


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, zone: str = BERLIN) -> int:
    return round(datetime(year, month, day, hour, minute, tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def shown(schedule: str, start: int, count: int, zone: str = BERLIN) -> list[str]:
    """The next times of a schedule, by the clocks and the offset of the zone."""
    times = []
    for _ in range(count):
        following = next_time(schedule, zone, start)
        assert following is not None
        start = following
        times.append(f"{datetime.fromtimestamp(start / 1000, ZoneInfo(zone)):%d %H:%M %z}")
    return times


@pytest.mark.parametrize(
    ("schedule", "start", "expected"),
    [
        ("0 9 * * 1-5", at(2026, 3, 27, 9), ["30 09:00 +0200", "31 09:00 +0200"]),  # over the change, and a weekend
        ("30 2 * * *", at(2026, 3, 28, 12), ["29 03:00 +0200", "30 02:30 +0200"]),  # 02:30 is left out
        ("30 2 * * *", at(2026, 10, 24, 12), ["25 02:30 +0200", "26 02:30 +0100"]),  # 02:30 comes twice
        ("0 * * * *", at(2026, 3, 29, 0, 30), ["29 01:00 +0100", "29 03:00 +0200", "29 04:00 +0200"]),
        ("0 * * * *", at(2026, 10, 25, 1, 30), ["25 02:00 +0200", "25 02:00 +0100", "25 03:00 +0100"]),
        ("*/30 * * * *", at(2026, 10, 25, 2), ["25 02:30 +0200", "25 02:00 +0100", "25 02:30 +0100"]),
        ("0 0 29 2 *", at(2026, 3, 1), ["29 00:00 +0100"]),
        ("30 2 * * *", SECOND_PASS, ["26 02:30 +0100"]),  # the first 02:30 is over, and is the one that counts
        ("*/30 * * * *", SECOND_PASS, ["25 02:30 +0100", "25 03:00 +0100"]),
        ("36h", at(2026, 10, 24, 12), ["25 23:00 +0100", "27 11:00 +0100"]),  # so much time passes, whatever clocks do
    ],
)
def test_a_schedule_means_the_clocks_of_its_zone_also_where_they_are_changed(
    schedule: str, start: int, expected: list[str]
) -> None:
    assert shown(schedule, start, len(expected)) == expected


@pytest.mark.parametrize(
    ("zone", "schedule", "start"),
    [("America/Toronto", "30 1 * * *", at(2026, 11, 1, 1, 10, "America/Toronto")),
     ("Australia/Lord_Howe", "45 1 * * *", at(2026, 4, 5, 1, 40, "Australia/Lord_Howe"))],
)  # fmt: skip
def test_no_schedule_is_due_before_it_is_set(zone: str, schedule: str, start: int) -> None:
    hour = 3_600_000
    for moment in range(start, start + 2 * hour, hour // 12):
        following = next_time(schedule, zone, moment)
        assert following is not None
        assert moment < following <= moment + 25 * hour


def test_an_hour_that_comes_twice_is_meant_as_long_as_one_of_its_passes_is_to_come() -> None:
    half_past = SECOND_PASS + 20 * 60_000
    assert appointment(SECOND_PASS, at="2026-10-25 02:30", zone=BERLIN).due_at == half_past
    assert appointment(SECOND_PASS - 3_600_000, at="2026-10-25 02:30", zone=BERLIN).due_at == half_past - 3_600_000
    with pytest.raises(BadInput, match="a time to come"):
        appointment(half_past, at="2026-10-25 02:30", zone=BERLIN)


def test_the_next_time_follows_from_the_one_before_and_says_how_many_passed() -> None:
    nine = at(2026, 1, 15, 9)
    hour = 3_600_000
    assert passed("0 * * * *", BERLIN, nine, nine) == Passed(1, nine + hour)
    assert passed("0 * * * *", BERLIN, nine, nine + hour - 1) == Passed(1, nine + hour)
    assert passed("0 * * * *", BERLIN, nine, nine + hour) == Passed(2, nine + 2 * hour)
    assert passed("0 * * * *", BERLIN, nine, nine + 10 * hour + 7) == Passed(11, nine + 11 * hour)
    assert passed("90m", BERLIN, nine, nine + 3 * hour - 1) == Passed(2, nine + 3 * hour)
    assert passed("90m", BERLIN, nine, nine + 3 * hour) == Passed(3, nine + 9 * hour // 2)
    assert passed("1m", BERLIN, nine, nine + 10_000 * hour) == Passed(MOST_COUNTED + 1, nine + 10_000 * hour + 60_000)


def test_so_many_missed_times_that_nobody_counts_them_are_passed_over() -> None:
    nine = at(2026, 1, 15, 9)
    year = 365 * 86_400_000
    assert passed("* * * * *", BERLIN, nine, nine + year + 1) == Passed(MOST_COUNTED + 1, nine + year + 60_000)


@pytest.mark.parametrize(
    ("when", "due"),
    [
        ({"after": 90}, WINTER + 90_000),
        ({"after": 0}, WINTER),
        ({"at": "09:00"}, at(2026, 1, 15, 9)),
        ({"at": "08:30"}, at(2026, 1, 16, 8, 30)),
        ({"at": "2026-07-01 09:00"}, at(2026, 7, 1, 9)),
        ({"at": "2026-07-01T09:00Z"}, at(2026, 7, 1, 9, zone="UTC")),
        ({"at": datetime(2026, 7, 1, 9)}, at(2026, 7, 1, 9)),
        ({"at": datetime(2026, 7, 1, 9, tzinfo=timezone(timedelta(hours=-5)))}, at(2026, 7, 1, 14, zone="UTC")),
        ({"at": datetime(2026, 3, 29, 2, 30)}, at(2026, 3, 29, 3, 30)),  # clocks that show it are an hour ahead
        ({"every": "0 9 * * 1-5"}, at(2026, 1, 15, 9)),
        ({"every": "36h"}, WINTER + 36 * 3_600_000),
    ],
)
def test_a_time_is_given_in_one_of_three_ways(when: dict[str, Any], due: int) -> None:
    assert appointment(WINTER, zone=BERLIN, **when) == Appointment(due, when.get("every"), BERLIN)


@pytest.mark.parametrize(
    ("when", "complaint"),
    [
        ({}, "one of at, after and every; got none"),
        ({"at": "09:00", "after": 3}, "got at and after"),
        ({"at": "2025-12-31 09:00"}, "a time to come.*It is 2026-01-15 08:30 now"),
        ({"at": "2040-01-01"}, "within ten years"),
        ({"at": datetime(1, 1, 1, tzinfo=UTC)}, "a time to come"),
        ({"at": "9 o'clock"}, "such as 2026-11-26 09:00"),
        ({"at": 5}, "such as 2026-11-26 09:00"),
        ({"after": -1}, "0 or more"),
        ({"after": 10**12}, "at most 316,224,000"),
        ({"after": float("nan")}, "0 or more"),
        ({"after": True}, "0 or more"),
        ({"after": "5"}, "0 or more"),
        ({"every": "x"}, "five fields"),
        ({"every": 3600}, "five fields"),
        ({"every": "@daily"}, "five fields"),
        ({"every": "0 9 * * * *"}, "five fields"),  # the first one would be seconds
        ({"every": "61 9 * * *"}, "bad minute"),
        ({"every": "59s"}, "at least 1 minute apart; '59s' has some that are 59 seconds apart"),
        ({"every": "0h"}, "a length of time such as 36h"),
        ({"every": "36"}, "a length of time such as 36h"),
        ({"every": "900w"}, "at most 316,224,000"),
        ({"every": "0 0 31 2 *"}, "bad day-of-month"),
        ({"after": 1, "zone": "Mars/Olympus"}, "Europe/Berlin; got 'Mars/Olympus'.*tzdata"),
        ({"after": 1, "zone": "../../etc/passwd"}, "Europe/Berlin"),
        ({"after": 1, "zone": ""}, "Europe/Berlin"),
        ({"after": 1, "zone": "Europe"}, "Europe/Berlin"),
        ({"after": 1, "zone": 5}, "name of a time zone"),
    ],
)
def test_what_is_no_time_is_refused_in_one_line_that_says_what_would_be(when: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        appointment(WINTER, **{"zone": BERLIN, **when})


@pytest.mark.parametrize(
    ("every", "fits"),
    [
        ("*/10 * * * *", True),
        ("0,10 9 * * *", True),
        ("*/5 * * * *", False),
        ("0,55 8,9 * * 1", False),
        ("* 3 1 1 *", False),
        ("*/1 0 29 2 *", False),
        ("0,5 0 29 2 *", False),
        ("0,5 0 29 2 1#5", False),
        ("55 8,9 * * *", True),
        ("0,55 0,23 1,15 * *", True),  # no two of these days follow each other
        ("3,57 0,23 28,29 2 *", False),
        ("10m", True),
        ("9m", False),
    ],
)
def test_a_schedule_may_have_to_leave_some_time_between_any_two_times(every: str, fits: bool) -> None:
    if fits:
        assert appointment(WINTER, every=every, zone=BERLIN, least=600).schedule == every
    else:
        with pytest.raises(BadInput, match="at least 10 minutes apart"):
            appointment(WINTER, every=every, zone=BERLIN, least=600)


def test_what_was_missed_or_late_is_said_below_the_text() -> None:
    nine, noon = at(2026, 1, 15, 9), at(2026, 1, 15, 12)
    assert with_delay("tea", 0, None, nine, nine + 59_999, BERLIN) == "tea"
    assert with_delay("tea", 0, None, nine, noon, BERLIN) == f"tea\n\n(This was due at 2026-01-15 09:00, {BERLIN}.)"
    assert "(Missed once since 2026-01-15 09:00, " in with_delay("tea", 1, nine, nine, noon, BERLIN)
    assert "(Missed 1,000 times since " in with_delay("tea", MOST_COUNTED, nine, nine, noon, BERLIN)
    assert "(Missed more than 1,000 times " in with_delay("tea", MOST_COUNTED + 1, nine, nine, noon, BERLIN)


def test_the_zone_of_the_machine_is_one_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock_time(0, local_zone())
    for variable, zone in (("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo"), ("EST5EDT4,M3", "UTC")):
        monkeypatch.setenv("TZ", variable)
        assert local_zone() == zone
