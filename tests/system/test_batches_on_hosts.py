"""Batches of several hosts: one of them has the seat of a service, and whoever goes on finds what was asked."""

from collections.abc import Iterator

import pytest

from ikigai_actors import Reply, Usage
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing import Simulation, simulated
from ikigai_actors.testing.scripted_batches import ScriptedBatches


@pytest.fixture
def provider() -> ScriptedBatches:
    return ScriptedBatches(lambda request: Reply(f"reply {len(request.messages)}", usage=Usage(1_000, 100)))


@pytest.fixture
def world(provider: ScriptedBatches) -> Iterator[Simulation]:
    with simulated(hosts=2) as world:
        world.open(provider)
        world.sleep(5)
        yield world


def asked(world: Simulation, count: int) -> list[str]:
    """The uuids of agents on both hosts that wait for a batch."""
    agents = [world.system.root.fork(name=f"agent-{number}") for number in range(count)]
    for agent in agents:
        agent.configure(urgency="24h")
        agent.prompt("hello")
    world.sleep(5)
    return [agent.uuid for agent in agents]


def last(world: Simulation, uuids: list[str]) -> list[str]:
    return [world.system.agent(uuid).history()[-1].content for uuid in uuids]


@pytest.mark.slow("a second: two hosts, and requests that wait")
def test_the_requests_of_both_hosts_are_one_batch(world: Simulation, provider: ScriptedBatches) -> None:
    uuids = asked(world, 8)
    owners = {record.owner for record in world.system.agents() if record.uuid in uuids}
    world.sleep(150)
    assert len(owners) == 2
    assert last(world, uuids) == ["reply 1"] * 8
    assert [order.size for order in provider.orders] == [8]


@pytest.mark.thorough("hosts that die; every run has the batch of two hosts")
@pytest.mark.slow("an hour of two simulated hosts")
@pytest.mark.sample(2, "a death at any moment is played alike")
@pytest.mark.parametrize("after", [30, 60, 125])
@pytest.mark.parametrize("which", [0, 1])
def test_a_host_that_dies_leaves_its_seat_and_its_requests_to_the_other(
    world: Simulation, provider: ScriptedBatches, after: float, which: int
) -> None:
    uuids = asked(world, 8)
    world.sleep(after)
    world.hosts[which].kill()
    world.sleep(3_000)
    alive = world.hosts[1 - which].system
    assert [alive.agent(uuid).history()[-1].content for uuid in uuids] == ["reply 1"] * 8
    assert (len(provider.paid), provider.direct) == (8, 0)
    assert check(alive._store) == []


@pytest.mark.thorough("a second play of two hosts")
def test_a_request_that_waits_goes_with_its_agent_to_another_host(world: Simulation, provider: ScriptedBatches) -> None:
    uuids = asked(world, 8)
    here, there = world.hosts
    here.move(world.system.agent(uuids[0]), there)
    world.sleep(300)
    assert last(world, uuids) == ["reply 1"] * 8
    assert (len(provider.paid), provider.direct) == (8, 0)
