"""What is told when other hosts live than before: each end once, with who goes on."""

import pytest

from ikigai_actors.agent.subscriptions import HostChanged, HostEnded
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.system.host_events import host_events
from ikigai_actors.verbs.text.hosts import host_changed, host_ended


def host(number: int, name: str | None = None, agents: int = 0, draining: bool = False) -> HostRecord:
    return HostRecord(f"host {number}", name, "blue", number, 0, agents=agents, draining=draining)


A, B, C = host(1, "a", 3), host(2, "b", 14), host(3, "c", 1)
ALONE = host(9)


@pytest.mark.parametrize(
    ("before", "now", "events"),
    [
        ([], [], []),
        ([A], [A], []),
        ([], [ALONE], [HostChanged(str(ALONE))]),
        ([ALONE], [], [HostChanged(None)]),
        ([ALONE], [host(10)], [HostChanged(str(host(10)))]),
        ([A], [], [HostChanged(None)]),
        ([], [B, A], [HostChanged(str(B))]),
        ([A], [B, A], []),
        ([C, B, A], [C, A], [HostEnded("b", 14, ("a", "c"))]),
        ([C, B, A], [A], [HostEnded("b", 14, ("a",)), HostEnded("c", 1, ("a",))]),
        ([B, A], [host(4, "b"), A], [HostEnded("b", 14, ("a", "b"))]),
        ([B, A], [host(1, "a", draining=True), C], [HostEnded("b", 14, ("c",))]),
        ([B, A], [host(1, "a", draining=True)], [HostEnded("b", 14, ("a",))]),
        ([A], [B], [HostEnded("a", 3, ("b",))]),
        ([ALONE], [A], [HostChanged(str(A))]),
    ],
)
def test_each_host_that_goes_is_told_of_with_those_that_stay(
    before: list[HostRecord], now: list[HostRecord], events: list[HostChanged | HostEnded]
) -> None:
    assert host_events(before, now) == events


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (HostEnded("b", 14, ("a", "c")), "Host b is gone: its 14 agents go on at a and c."),
        (HostEnded("b", 1, ("a",)), "Host b is gone: its agent goes on at a."),
        (HostEnded("b", 2, ("a", "c", "d")), "Host b is gone: its 2 agents go on at a, c and d."),
        (HostEnded("b", 2, tuple("acdefg")), "Host b is gone: its 2 agents go on at 6 hosts."),
        (HostEnded("b", 0, ("a",)), "Host b is gone: it ran no agents."),
        (HostEnded("b", 2, ("a", "b")), "Host b was restarted: its 2 agents go on at a and b."),
        (HostEnded("b\x1b[2J", 0, ("a",)), "Host b\\x1b[2J is gone: it ran no agents."),
    ],
)
def test_a_person_reads_how_many_agents_go_on_and_where(event: HostEnded, words: str) -> None:
    assert host_ended(event) == words


def test_the_end_of_the_last_host_is_told_with_its_name_and_what_to_do() -> None:
    [event] = host_events([A], [])
    assert isinstance(event, HostChanged)
    words = host_changed(event)
    assert words.startswith("The process that ran these agents is gone (host a on blue, pid 1), and they have stopped.")
    assert "start ikigai" in words
