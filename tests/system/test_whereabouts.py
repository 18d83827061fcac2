"""A host that follows the log looks at its own sleepers once, and publishes what others do to them."""

import pytest

from ikigai_actors import AgentRef, OfflineProvider, Signal
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.events import Died, Renamed, StatusSet
from ikigai_actors.testing import Simulation, simulated


def slept(world: Simulation, agent: AgentRef) -> AgentRef:
    """An agent of the first host, without its actor."""
    host = world.hosts[0]
    if agent.record.owner != host.host_id:
        world.hosts[1].move(agent, host)
    here = host.system.handle(agent.uuid)
    host.system._actor(agent.uuid).sleep()
    world.sleep(1)
    assert host.system._here(agent.uuid) is None
    return here


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("mails", [0, 2])
def test_what_another_host_does_to_a_sleeper_is_heard_once_each(mails: int) -> None:
    heard: list[Event] = []
    with simulated(hosts=2) as world:
        world.open(OfflineProvider(), balance=None)
        world.sleep(5)
        kid = slept(world, world.hosts[0].system.root.fork(name="kid"))
        here, there = world.hosts[0].system, world.hosts[1].system
        with here.subscribe(heard.append, only=(Died, Renamed, StatusSet)):
            for _ in range(mails):
                there.send(kid, "news")
                world.sleep(1)
            assert here._whereabouts.is_here(kid.uuid) == (mails > 0)
            other = there.handle(kid.uuid)
            other.signal(Signal.STOP)
            other.rename("other")
            other.kill()
            world.sleep(1)
    assert heard == [StatusSet(kid.uuid, "stopped"), Renamed(kid.uuid, "other"), heard[-1]]
    assert isinstance(heard[-1], Died)


def test_a_sleeper_that_leaves_is_no_longer_taken_for_one_of_this_host() -> None:
    with simulated(hosts=2) as world:
        world.open(OfflineProvider(), balance=None)
        world.sleep(5)
        kid = slept(world, world.hosts[0].system.root.fork(name="kid"))
        here, heard = world.hosts[0].system, list[Event]()
        with here.subscribe(heard.append, only=(Died,)):
            world.hosts[1].system.send(kid, "news")
            world.sleep(1)
            assert here._whereabouts.is_here(kid.uuid)
            world.hosts[0].move(kid, world.hosts[1])
            world.sleep(10)
            assert not here._whereabouts.is_here(kid.uuid)
            world.hosts[1].system.agent("kid").kill()
            world.sleep(10)
    assert [type(event) for event in heard] == [Died]
