"""The limits of a provider: what may begin when, for all agents together. On the clock of a simulation."""

import asyncio
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, BadInput, Delta, Future, Kind, Message, Reply, Request, Signal, Streamed
from ikigai_actors.agent.service_gate import MINUTE, part_of, until_next
from ikigai_actors.providers import Limits, OnDelta
from ikigai_actors.testing import simulated


class Slow:
    """A service that takes seconds, and notes what is asked of it."""

    name = "slow"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begun: list[float] = []
        self.asked: list[str | None] = []
        self.flying = self.most = 0

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        self.begun.append(asyncio.get_running_loop().time())
        self.asked.append(request.name)
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            on_delta(Delta("well"))
            await asyncio.sleep(self.seconds)
            return Reply("well")
        finally:
            self.flying -= 1

    async def close(self) -> None: ...


@pytest.mark.thorough("many agents")
def test_agents_before_a_slow_service_wait_and_all_are_answered() -> None:
    slow = Slow(30.0)
    with simulated() as world:
        system = world.open(slow, limits={"slow": Limits(in_flight=4)})
        agents = [system.root.fork(name=f"a{number}") for number in range(20)]
        answers = [agent.prompt("Well?") for agent in agents]
        assert [answer.get(timeout=3_600).text for answer in answers] == ["well"] * 20
        assert system.statistics().queued == 0
    assert slow.most == 4
    assert slow.begun[-1] - slow.begun[0] == pytest.approx(4 * 30.0, abs=1)


@pytest.mark.slow("takes a tenth of a second")
def test_no_minute_has_more_requests_than_the_limit_and_none_waits_longer_than_it_must() -> None:
    slow = Slow(1.0)
    with simulated() as world:
        system = world.open(slow, limits={"slow": Limits(requests_per_minute=3)})
        agents = [system.root.fork() for _ in range(8)]
        for answer in [agent.prompt("Well?") for agent in agents]:
            answer.get(timeout=3_600)
    begun = [moment - slow.begun[0] for moment in slow.begun]
    assert begun == pytest.approx([0, 0, 0, 60, 60, 60, 120, 120], abs=0.5)
    assert all(later - earlier >= MINUTE for earlier, later in zip(slow.begun, slow.begun[3:], strict=False))


@pytest.mark.slow("takes a tenth of a second")
def test_a_request_that_is_interrupted_leaves_the_queue_and_takes_nobody_s_place() -> None:
    slow = Slow(10.0)
    with simulated() as world:
        system = world.open(slow, limits={"slow": Limits(in_flight=1)})
        first, second, third = (system.root.fork(name=name) for name in ("first", "second", "third"))
        under_way, opened = Future[bool](), Future[bool]()

        def hear(event: object) -> None:
            if isinstance(event, Streamed):
                under_way.set(True)
            if isinstance(event, Message) and event.agent_uuid == second.uuid and event.kind == Kind.USER:
                opened.set(True)

        system.subscribe(hear)
        first.prompt("Well?")
        assert under_way.get(timeout=60)
        second.prompt("Well?")
        assert opened.get(timeout=60)
        answer = third.prompt("Well?")
        assert second.aio.signal(Signal.INT).get(timeout=60)
        assert answer.get(timeout=3_600).text == "well"
    assert slow.asked == ["first", "third"]


def test_a_provider_without_limits_is_not_waited_for() -> None:
    slow, free = Slow(100.0), Slow(0.0)
    free.name = "free"
    with simulated() as world:
        system = world.open(slow, {"free": free}, limits={"slow": Limits(in_flight=1)})
        for _ in range(2):
            system.root.fork().prompt("Well?")
        assert system.root.fork(model="free").prompt("Well?").get(timeout=1).text == "well"


@pytest.mark.thorough("two hosts; every run has the limits of one")
@pytest.mark.slow("two hosts")
def test_hosts_share_the_limits_of_a_provider() -> None:
    slow = Slow(5.0)
    with simulated(hosts=2) as world:
        system = world.open(slow, limits={"slow": Limits(in_flight=4)})
        agents = [system.root.fork(name=f"a{number}") for number in range(8)]
        for answer in [agent.prompt("Well?") for agent in agents]:
            answer.get(timeout=3_600)
    assert 2 <= slow.most <= 4


@given(
    st.builds(Limits, st.none() | st.integers(1, 4), st.none() | st.integers(1, 4)),
    st.lists(st.floats(0, 30) | st.none(), max_size=30),
)
def test_whatever_happens_when_the_limits_hold_and_nobody_waits_for_nothing(
    limits: Limits, happens: list[float | None]
) -> None:
    """Each thing is seconds that pass before a request comes and begins as soon as it may, or one that ends."""
    now, flying = 0.0, 0
    begun = deque[float](maxlen=limits.requests_per_minute or 0)
    all_begun: list[float] = []
    for thing in happens:
        if thing is None:
            flying = max(flying - 1, 0)
            continue
        now += thing
        seconds = until_next(limits, flying, begun, now)
        if seconds is None:
            assert flying == limits.in_flight
            continue
        now += seconds
        flying += 1
        begun.append(now)
        all_begun.append(now)
        assert limits.in_flight is None or flying <= limits.in_flight
        if (most := limits.requests_per_minute) is not None:
            within = [moment for moment in all_begun if now - moment < MINUTE - 1e-6]
            assert len(within) <= most
            full = [moment for moment in all_begun[:-1] if now - moment <= MINUTE + 1e-6]
            assert seconds == 0 or len(full) >= most


def test_a_part_of_the_limits_is_one_at_least() -> None:
    assert part_of(Limits(5, 60), 2) == Limits(2, 30)
    assert part_of(Limits(2), 3) == Limits(1)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"nobody": Limits(1)}, "Expected limits of one of anthropic, offline, openai; got limits of 'nobody'"),
        ({"offline": 5}, r"Expected limits\['offline'\] to be Limits\(...\); got 5"),
        (5, "Expected limits to be a dict"),
    ],
)
def test_limits_that_cannot_be_used_are_refused_at_once(limits: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        ActorSystem.open(":memory:", "offline", limits=limits)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="Expected in_flight to be a whole number from 1"):
        Limits(in_flight=0)
