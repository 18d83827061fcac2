"""Circles of waits over several hosts, and what other processes see of waits."""

import pytest

from ikigai_actors import AgentRef, FunctionProvider, ProviderError, Request, ScriptedProvider, Stream, current_agent
from ikigai_actors.actors.wait_graph import Until, WaitedBy, WaitEdge, WaitKey
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.records.hosts.host_waits import HostWaits, decode_waits, encode_waits
from ikigai_actors.shell.agent_lists import read_list
from ikigai_actors.system.remote.client import Client
from ikigai_actors.testing import Schedule, Simulation, simulated


def other(name: str) -> AgentRef:
    """The agent of a name, in the system of the code that runs."""
    me = current_agent()
    assert isinstance(me, AgentRef)
    return me.system.agent(name)


def placed(world: Simulation, names: str) -> dict[str, AgentRef]:
    """An agent on each host, with a handle of that host."""
    agents = {}
    for host, name in zip(world.hosts, names, strict=True):
        agent = world.system.root.fork(name=name)
        if agent.uuid not in [
            record.uuid for record in host.system.agents() if record.owner == host.system._runtime.host.id
        ]:
            world.system.move(agent, host.name)
        agents[name] = host.system.agent(name)
    return agents


CIRCLE = (
    "a waits for b waits for c waits for a|b waits for c waits for a waits for b|c waits for a waits for b waits for c"
)


def play(way: str, schedule: Schedule | int) -> str:
    """Three agents in a circle, one on each host; the trace."""

    def act(request: Request) -> str:
        follows = other({"a": "b", "b": "c", "c": "a"}[request.name or ""])
        if request.name == "c" and way == "wait":
            return str(other("c").wait([follows]))
        if request.name == "c" and way == "fork":
            return str(follows.fork())
        return follows.prompt("hi").get().text

    with simulated(schedule, hosts=3) as world:
        world.open(FunctionProvider(act))
        world.sleep(5)
        agents = placed(world, "abc")
        with pytest.raises(ProviderError, match=CIRCLE):
            agents["a"].prompt("go").get(timeout=60)
        answers = world.system.root.wait(["a", "b", "c"], timeout=60)
        assert set(answers.values()) == {WaitResult.IDLE}
        assert {prompt.content for prompt in agents["a"].history() if prompt.kind == "user"} <= {"go", "hi"}
        return str(world.trace)


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "three hosts each; tests/system/test_deadlocks.py has each way on one")
@pytest.mark.parametrize(("way", "schedule"), [("prompt", Schedule({})), ("wait", 1)])
def test_a_circle_over_hosts_ends_in_an_error_that_names_it(way: str, schedule: Schedule | int) -> None:
    assert "publish_waits" in play(way, schedule)


@pytest.mark.thorough("three simulated hosts twice; each run plays a circle of one host twice")
def test_a_circle_over_hosts_ends_the_same_way_each_time() -> None:
    assert play("fork", 2) == play("fork", 2)


@pytest.mark.thorough("a second play of two hosts")
def test_who_is_the_last_to_wait_closes_the_circle_and_its_prompt_is_taken_back() -> None:
    with simulated(hosts=2) as world:

        def act(request: Request) -> str:
            if request.name == "b":
                other("b").wait(timeout=10)  # for mail, of which there is none
            return other("b" if request.name == "a" else "a").prompt("hi").get().text

        world.open(FunctionProvider(act))
        world.sleep(5)
        agents = placed(world, "ab")
        with pytest.raises(ProviderError, match="b waits for a waits for b"):
            agents["a"].prompt("go").get(timeout=60)
        world.sleep(30)
        assert [prompt.content for prompt in agents["a"].history() if prompt.kind == "user"] == ["go"]


@pytest.mark.slow("takes a tenth of a second")
def test_a_wait_that_lasts_is_told_to_other_hosts_and_processes_and_a_short_one_is_not() -> None:
    with simulated(hosts=2) as world:
        slow = ScriptedProvider([Stream(("early",), delay=30)])
        world.open(FunctionProvider(lambda _: other("b").prompt("hi").get().text), {"slow": slow})
        world.sleep(5)
        agents = placed(world, "ab")
        agents["b"].configure(model="slow:")
        reply = agents["a"].prompt("go")
        world.sleep(1)
        elsewhere = agents["b"].system.agent("a")
        assert (agents["a"].state, elsewhere.state) == ("waits for b", "in a turn")
        world.sleep(10)
        assert elsewhere.state == elsewhere.statistics().state == "waits for b"
        overview = read_list(Client(world.hosts[1].process.looked_at))
        assert [overview.state(record) for record in overview.agents.records if record.name == "a"] == ["waits for b"]
        assert reply.get(timeout=60).text == "early"
        world.sleep(10)
        assert elsewhere.state == "idle"
        assert {row.waits for row in read_list(Client(world.hosts[1].process.looked_at)).facts.hosts} == {""}


@pytest.mark.thorough("a second play of two hosts")
def test_waits_over_hosts_that_end_by_themselves_are_no_circle() -> None:
    """Mail, and answers that come late: each is a wait that lasts, and there is always one that ends."""

    def act(request: Request) -> str:
        me, follows = other(request.name or ""), other({"a": "b", "b": "a"}[request.name or ""])
        for _ in range(2):
            if request.name == "a":
                me.send(follows, "ping")
            while not me.read_mail(sender=follows):
                me.wait([follows])
            me.wait(timeout=7)
            if request.name == "b":
                me.send(follows, "pong")
        return "talked"

    with simulated(3, hosts=2) as world:
        world.open(FunctionProvider(act))
        world.sleep(5)
        turns = [agent.prompt("go") for agent in placed(world, "ab").values()]
        assert [turn.get(timeout=600).text for turn in turns] == ["talked", "talked"]


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '{"edges": [[1]]}', '{"edges": [["a", "b", "c", "d", 1, 2]]}'])
def test_a_column_that_nobody_can_read_tells_nothing(text: str) -> None:
    assert decode_waits(text) == HostWaits()


def test_what_a_host_tells_is_read_as_it_was_written() -> None:
    edge = WaitEdge("a", "b", WaitedBy.CODE, Until.STEP, WaitKey(5, 7, "host"), 1)
    waits = HostWaits(3, frozenset({edge}), {"a": "waits for b"})
    assert decode_waits(encode_waits(waits)) == waits
    assert encode_waits(HostWaits()) == ""
