"""Siblings that are restarted together live on one host, wherever they were born."""

from collections.abc import Iterator

import pytest

from ikigai_actors import AgentRef, BadInput, Request
from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.testing import Simulation, simulated
from ikigai_actors.testing.machine.fixtures import OwnCode
from ikigai_actors.testing.simulation.hosts import SimulatedHost


@pytest.fixture
def world() -> Iterator[Simulation]:
    """Two hosts, each with its part. The first agent that is asked to crash does."""
    crashes = [LookupError("as asked for")]

    def answer(request: Request) -> ScriptedReply:
        return crashes.pop() if crashes and "crash" in str(request.messages[-1]) else "ok"

    with simulated(hosts=2) as world:
        world.open(OwnCode(answer))
        world.sleep(5)
        yield world


def home(world: Simulation, agent: AgentRef) -> SimulatedHost:
    """The host that runs an agent."""
    return next(host for host in world.hosts if host.host_id == agent.record.owner)


def bring(world: Simulation, agent: AgentRef, to: SimulatedHost) -> None:
    """Have a host run an agent."""
    if (host := home(world, agent)) is not to:
        host.move(agent, to)


@pytest.fixture
def near(world: Simulation) -> AgentRef:
    """A child of agent 0 that lives on the same host, in another shard."""
    child = world.system.root.fork(name="near")
    bring(world, child, home(world, world.system.root))
    assert child.record.shard != world.system.root.record.shard
    return child


@pytest.fixture
def far(world: Simulation) -> AgentRef:
    """A child of agent 0 that lives on the other host."""
    child = world.system.root.fork(name="far")
    bring(world, child, next(host for host in world.hosts if host is not home(world, world.system.root)))
    return child


@pytest.mark.slow("takes a tenth of a second")
def test_children_that_live_on_several_hosts_are_not_restarted_together(
    world: Simulation, near: AgentRef, far: AgentRef
) -> None:
    root = world.system.root
    with pytest.raises(BadInput, match="Agent far lives on another host than its supervisor"):
        root.supervise(strategy="one_for_all")
    assert (root.record.strategy, near.record.shard == root.record.shard) == ("one_for_one", False)


@pytest.mark.slow("takes a tenth of a second")
def test_children_in_other_shards_of_a_host_come_to_that_of_their_supervisor_and_are_restarted_together(
    world: Simulation, near: AgentRef
) -> None:
    root = world.system.root
    host, sibling = home(world, root), root.fork(name="sibling")
    bring(world, sibling, host)
    below = near.fork(name="below")
    root.supervise(strategy="one_for_all")
    assert {agent.record.shard for agent in (near, below, sibling)} == {root.record.shard}
    world.sleep(30)
    before = host.system._actor(sibling.uuid)
    assert near.prompt("crash").get(timeout=60).text == "ok"
    assert host.system._actor(sibling.uuid) is not before
    assert [agent.prompt("hello").get(timeout=60).text for agent in (near, below, sibling)] == ["ok"] * 3


def test_an_agent_of_another_host_is_not_adopted_into_a_group(world: Simulation, near: AgentRef, far: AgentRef) -> None:
    near.supervise(strategy="rest_for_one")
    with pytest.raises(BadInput, match="Agent far lives on another host than its supervisor"):
        near.adopt(far)
    assert far.supervisor == world.system.root


@pytest.mark.thorough("a second way into the shard of a group; the test above has children that come there")
def test_an_agent_of_the_same_host_is_adopted_into_a_group_and_its_shard(
    world: Simulation, near: AgentRef, far: AgentRef
) -> None:
    far.supervise(strategy="rest_for_one")
    bring(world, near, home(world, far))
    far.adopt(near)
    assert near.record.shard == far.record.shard
    assert near.prompt("hello").get(timeout=60).text == "ok"
