"""When the requests of a service become a batch."""

import pytest

from ikigai_actors.records.batches import BATCH_SECONDS, MemberKey, WaitingMember, seal_now

NOW = 10**12
WINDOW = int(BATCH_SECONDS * 1000)


@pytest.mark.parametrize(
    ("asked_at", "sealed"),
    [(NOW - WINDOW + 1, False), (NOW - WINDOW, True), (NOW + 5, False), (NOW + 3_600_000, True)],
    ids=["collected still", "collected", "another host's clock", "the calendar was set back"],
)
def test_requests_are_collected_for_a_while_also_where_the_calendar_was_set_back(asked_at: int, sealed: bool) -> None:
    member = WaitingMember(MemberKey("ann", 1, 1), asked_at, asked_at + 86_400_000, 100)
    assert list(seal_now([member], NOW)) == ([member] if sealed else [])
