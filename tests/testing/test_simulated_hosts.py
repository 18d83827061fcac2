"""Several hosts in one simulation: who runs which agents, whatever happens to the others."""

from collections.abc import Iterator, Sequence

import pytest

from ikigai_actors import Future, Message, Reply, ScriptedProvider, ToolCall
from ikigai_actors.agent.subscriptions import Event, StreamCut, Streamed
from ikigai_actors.agent.turn import events as on
from ikigai_actors.errors import SchemaInUse, SystemClosed
from ikigai_actors.providers.scripted import Stream
from ikigai_actors.records.agents.registry import Died, Renamed
from ikigai_actors.store.migrations import Migration, newest
from ikigai_actors.system.lifecycle import data_of
from ikigai_actors.testing import Broken, Faults, ProcessCrashed, Schedule, Simulation, simulate, simulated
from ikigai_actors.testing.machine.version_oracle import STEPS, VersionOracle
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange
from ikigai_actors.testing.simulation.hosts import SimulatedHost
from tests.kit.echo import echo
from tests.kit.programs import cheaper

pytestmark = pytest.mark.slow("hundreds of simulated hosts")


@pytest.fixture
def world() -> Iterator[Simulation]:
    """Three hosts that share the agents, each with its part."""
    with simulated(hosts=3) as world:
        world.open(ScriptedProvider(echo))
        world.sleep(5)
        yield world


def parts(world: Simulation) -> dict[str | None, int]:
    """How many shards each host has that lives."""
    return {host.name: host.shards for host in world.system.hosts() if host.ended_at is None}


def said(reply: Future[Reply]) -> str:
    """What was answered, without the number of messages: the prompt."""
    return reply.get(timeout=60).text.partition(" / ")[0]


def owner(world: Simulation, uuid: str) -> str | None:
    """The name of the host that runs an agent."""
    [record] = [each for each in world.system.agents() if each.uuid == uuid]
    return next(host.name for host in world.system.hosts() if host.id == record.owner)


def test_each_host_has_its_part_and_answers_for_all_agents(world: Simulation) -> None:
    assert parts(world) == {"a": 22, "b": 21, "c": 21}
    agent = world.system.root.fork(name="anna")
    for host in world.hosts:
        assert said(host.system.agent(agent.uuid).prompt(host.name)) == host.name


def test_the_agents_of_a_host_that_was_killed_go_on_elsewhere_and_it_comes_back(world: Simulation) -> None:
    a, b, c = world.hosts
    agent = a.system.root.fork(name="anna")
    a.move(agent, b)
    assert owner(world, agent.uuid) == "b"
    b.kill()
    world.sleep(5)
    assert parts(world) == {"a": 32, "c": 32}
    assert said(c.system.agent("anna").prompt("hello")) == "hello"
    b.start()
    world.sleep(10)
    assert parts(world).keys() == {"a", "b", "c"}


@pytest.mark.thorough("a second play of hosts")
def test_hosts_of_an_older_program_go_on_beside_a_newer_one_until_it_takes_away_what_they_use(
    world: Simulation,
) -> None:
    a, b, c = world.hosts
    adds = Migration(newest() + 1, "CREATE TABLE teas (name TEXT)", newest())
    takes_away = Migration(newest() + 2, "DROP TABLE teas", newest() + 2)
    c.kill()
    c.migrations = (adds,)
    c.start()
    world.sleep(20)
    assert parts(world).keys() == {"a", "b", "c"}
    assert said(a.system.root.prompt("beside a newer one")) == "beside a newer one"
    c.kill()
    c.migrations = (adds, takes_away)
    with pytest.raises(SchemaInUse, match=r"host a on .* and host b on|host b on .* and host a on"):
        c.start()
    c.kill()
    c.migrations = (adds,)
    c.start()
    a.process.looked_at.write(lambda tx: tx.run("set_schema_version", version=newest() + 2, least=newest() + 1))
    world.sleep(60)
    assert (a.answers, b.answers, c.answers) == (False, False, True)
    assert {host.name: host.shards for host in c.system.hosts() if host.ended_at is None} == {"c": 64}
    assert said(c.system.root.prompt("the one that knows it")) == "the one that knows it"
    with pytest.raises(SystemClosed, match=f"knows version {newest() + 1}, this ikigai knows {newest()}"):
        a.system.root.prompt("hello").get(timeout=5)


def test_a_refused_host_is_judged_by_the_others_though_none_of_them_runs() -> None:
    with simulated(hosts=2) as world:
        world.open()
        a, b = world.hosts
        b.kill()
        a.kill()
        a.migrations = STEPS
        with pytest.raises(SchemaInUse, match=r": host b on [^.]*\. End") as refused:
            a.start()
        judge = VersionOracle(world)
        judge.check_refusal(a, refused.value)
        a.process.looked_at.write(lambda tx: tx.run("end_namesake", name="b"))
        with pytest.raises(Broken, match="every host knows"):
            judge.check_refusal(a, refused.value)
        a.kill()


def test_the_shards_of_a_host_that_was_killed_are_taken_as_soon_as_it_is_judged(world: Simulation) -> None:
    times: dict[str, float] = {}

    def note(changes: Sequence[StoredChange]) -> None:
        for change in changes:
            if isinstance(change, RanStatement):
                times.setdefault(change.query, world.clock.monotonic())

    world.hosts[1].kill()
    world.watchers.append(note)
    world.sleep(5)
    assert times["claim_some_shards"] == times["end_suspect"]


def test_what_a_host_that_hangs_would_take_of_a_dead_one_is_taken_before_its_lease_is_over(world: Simulation) -> None:
    _, b, c = world.hosts
    b.kill()
    c.freeze()
    world.sleep(8)
    assert parts(world) == {"a": 32, "c": 32}


@pytest.mark.thorough("a second wait over hosts")
def test_an_undo_that_waits_for_a_turn_waits_for_it_on_the_next_host_too() -> None:
    with simulated(hosts=2) as world:
        world.open(ScriptedProvider(lambda request: Stream(("well",), delay=5.0)))
        world.sleep(5)
        a, b = world.hosts
        agent = a.system.root.fork(name="anna")
        a.move(agent, b)
        reply = agent.prompt("hello")
        world.sleep(2)
        undone = agent.aio.undo()
        b.kill()
        assert reply.get(timeout=60).text == "well"
        undone.get(timeout=60)
        assert [message.content for message in agent.history() if message.kind == "user"] == []


def test_a_call_of_a_host_that_has_ended_ends_with_it(world: Simulation) -> None:
    a, b, _ = world.hosts
    handle = b.system.root
    b.kill()
    with pytest.raises(ProcessCrashed, match="Host b has ended"):
        handle.children()
    assert said(a.system.root.prompt("hello")) == "hello"


@pytest.mark.sample(1, "when it is cut off")
@pytest.mark.parametrize(("silent", "lost_after"), [(False, 5), (True, 15)])
def test_a_host_that_is_cut_off_loses_its_agents(world: Simulation, silent: bool, lost_after: float) -> None:
    b = world.hosts[1]
    b.partition(silent=silent)
    world.sleep(lost_after)
    assert parts(world) == {"a": 32, "c": 32}
    b.heal()
    world.sleep(5)
    with pytest.raises(SystemClosed, match="sent no heartbeat"):
        b.system.agents()


def test_a_host_that_drains_gives_all_it_has(world: Simulation) -> None:
    b = world.hosts[1]
    b.drain(60)
    assert parts(world)["b"] == 0
    assert sum(parts(world).values()) == 64


def test_a_host_drains_to_the_end_though_the_database_cannot_be_read_as_agents_are_to_go(world: Simulation) -> None:
    b = world.hosts[1]

    def become_unreadable(changes: Sequence[StoredChange]) -> None:
        if any(isinstance(change, RanStatement) and change.query == "give_shards" for change in changes):
            b.process.unreadable_until = world.clock.monotonic() + 2
            world.watchers.remove(become_unreadable)

    world.watchers.append(become_unreadable)
    b.drain(60)
    assert parts(world)["b"] == 0


@pytest.mark.thorough("a second play of hosts")
def test_a_host_that_joins_gets_a_team_and_nothing_goes_back_and_forth() -> None:
    """Although agents at work have time to end it before they go, and what each host has is told a little later."""
    gifts = []
    with simulated(hosts=2) as world:
        world.open(ScriptedProvider(lambda request: Stream(("it ", "takes time"), delay=4.0)))
        a, b = world.hosts
        b.kill()
        world.sleep(20)
        teams = [a.system.root.fork(name=name) for name in ("anna", "bert", "carl")]
        for team in teams:
            team.fork()
        b.start()
        world.watchers.append(
            lambda changes: gifts.extend(
                [
                    int(shard)
                    for change in changes
                    if isinstance(change, RanStatement) and change.query == GIVE
                    for shard in change.parameters["shards"]
                ]
            )
        )
        for _ in range(8):
            for team in teams:
                b.system.handle(team.uuid).prompt("hello")
            world.sleep(5)
        assert [host.agents for host in a.system.hosts() if host.ended_at is None] == [4, 3]
        assert len({team.record.shard for team in teams}) == 3
        assert len([shard for shard in gifts if shard in {record.shard for record in a.system.agents()}]) == 2


GIVE = "give_shards"
"""The statement by which a host gives a shard away."""


def log_of(host: SimulatedHost, agent: str) -> None:
    """Append to the log of an agent, whoever runs it."""
    host.process.store.write(lambda tx: tx.append([(agent, 9, "user", "x", "{}", 5, b"")]))


def test_who_writes_in_the_log_of_an_agent_that_another_host_runs_is_found(world: Simulation) -> None:
    root, world.checks = world.system.root.uuid, False
    other = next(host for host in world.hosts if host.name != owner(world, root))
    log_of(other, root)
    with pytest.raises(Broken, match=r"owner: host .* has written in the log of agent"):
        world.sleep(1)


@cheaper("examples", 1, 5, "more schedules")
def test_a_program_on_three_hosts_runs_under_every_schedule(examples: int) -> None:
    def team(world: Simulation) -> None:
        system = world.open(ScriptedProvider(echo))
        agents = [system.root.fork(name=name) for name in ("anna", "bert")]
        world.sleep(5)
        system.move(agents[0], "b", 60)
        prompts = [host.system.agent("anna").prompt(host.name) for host in world.hosts]
        assert [said(future) for future in prompts] == ["a", "b", "c"]

    simulate(team, examples=examples, hosts=3)


@pytest.mark.thorough("a second move of an agent")
def test_a_prompt_by_mail_keeps_its_type_though_its_agent_has_come_back_to_the_host_that_wrote_it() -> None:
    def team(world: Simulation) -> None:
        world.open(
            ScriptedProvider(lambda request: Reply("", (ToolCall("give_result", {"result": len(request.tools)}),)))
        )
        world.sleep(5)
        a = world.hosts[0]
        anna = a.system.root.fork(name="anna")
        data, _ = data_of(int, ())
        reply = Future[Reply](anna.uuid)
        a.system._remote_agent(anna.uuid).deliver(on.Prompt("how many?", reply, data=data))
        assert reply.get(timeout=60).stop_reason == "output"

    simulate(team, examples=2, hosts=2)


@pytest.mark.thorough("a second play of hosts")
@cheaper("examples", 1, 5, "more schedules")
def test_subscribers_of_each_host_hear_every_message_death_and_name_once_wherever_the_agents_live(
    examples: int,
) -> None:
    def team(world: Simulation) -> None:
        system = world.open(ScriptedProvider(echo))
        world.sleep(5)
        heard: dict[str, list[Event]] = {host.name: [] for host in world.hosts}
        for host in world.hosts:
            host.system.subscribe(heard[host.name].append, only=(Message, Died, Renamed))
        anna, bert = (system.root.fork(name=name) for name in ("anna", "bert"))
        for to in ("b", "c", "a"):
            prompts = [
                host.system.agent(agent.uuid).prompt(host.name) for host in world.hosts for agent in (anna, bert)
            ]
            system.move(anna, to, 60)
            assert all(said(future) for future in prompts)
        bert.rename("carl")
        bert.kill()
        world.hosts[1].drain(60)
        assert said(anna.prompt("still there"))
        world.sleep(5)
        logs = sorted((message.agent_uuid, message.id) for agent in (anna, bert) for message in agent.history(all=True))
        for events in heard.values():
            messages = [(event.agent_uuid, event.id) for event in events if isinstance(event, Message)]
            for agent in (anna, bert):
                assert [message for message in messages if message[0] == agent.uuid] == [
                    log for log in logs if log[0] == agent.uuid
                ]
            assert [event.agent_uuid for event in events if isinstance(event, Died)] == [bert.uuid]
            assert [event.name for event in events if isinstance(event, Renamed)] == ["carl"]

    simulate(team, examples=examples, hosts=3)


@pytest.mark.thorough("a second play of hosts")
@cheaper("examples", 2, 5, "more schedules")
def test_another_host_sees_a_reply_as_it_comes_and_that_it_is_cut_off_with_its_host(examples: int) -> None:
    reply = tuple(f"{number} " for number in range(30))
    ends = set[str]()

    def team(world: Simulation) -> None:
        world.open(ScriptedProvider(lambda _: Stream(reply, delay=0.1)), resume=True)
        world.sleep(5)
        a, b, c = world.hosts
        anna = a.system.root.fork(name="anna")
        a.move(anna, b)
        heard: list[Event] = []
        a.system.subscribe(heard.append, only=(Streamed, StreamCut, Message))
        prompt = c.system.agent("anna").prompt("count")
        world.sleep(0.5 + len(world.requests) % 3)
        b.kill()
        assert prompt.get(timeout=60).text == "".join(reply)
        world.sleep(5)
        said = ""
        for event in heard:
            match event:
                case Streamed(text=text):
                    said += text
                    assert "".join(reply).startswith(said)
                case StreamCut():
                    said = ""
                    ends.add("cut")
                case Message(kind="assistant"):
                    ends.add("reply")
                    said = "none may come behind it: "
        assert world.system._store.read(lambda tx: tx.run("pieces")) == []

    simulate(team, examples=examples, hosts=3)
    assert ends == {"cut", "reply"}


@pytest.mark.thorough("hosts by chance; every run has each fault once")
@pytest.mark.sample(2, "a fault each")
@pytest.mark.parametrize("fault", ["freezes", "partitions", "unrung"])
@cheaper("enough", 1, 7, "a fault at more of the choices")
def test_hosts_are_stopped_cut_off_or_unheard_by_chance_and_nothing_is_lost(enough: int, fault: str) -> None:
    seen = []
    for number in range(0, 28, 4):
        with simulated(hosts=2, faults=Faults(**{fault: 1})) as world:
            world.open(ScriptedProvider(echo))
            world.sleep(5)
            world.follow(Schedule({number: 1}))
            prompts = [host.system.root.prompt(host.name) for host in world.hosts]
            world.sleep(60)
            outcomes = [
                future.get(timeout=0).text[:1] if host.answers else ""
                for host, future in zip(world.hosts, prompts, strict=True)
            ]
            assert {"a", "b", ""} >= set(outcomes)
            seen += [line.text.partition(": ")[2] for line in world.trace.lines if line.kind == "fault"]
        if len(seen) == enough:
            break
    assert {*seen} == {fault}


def test_who_gives_an_agent_away_and_goes_on_asking_its_model_is_found(world: Simulation) -> None:
    a, b, _ = world.hosts
    agent = a.system.root.fork(name="anna")
    assert said(agent.prompt("hello")) == "hello"
    a.move(agent, b)
    a.process.arrived(world.requests[0])
    with pytest.raises(Broken, match=r"handed: host .* asks a model for agent"):
        world.sleep(1)


def test_who_gives_an_agent_away_and_goes_on_writing_is_found(world: Simulation) -> None:
    a, b, _ = world.hosts
    agent, world.checks = a.system.root.fork(name="anna"), False
    assert said(agent.prompt("hello")) == "hello"
    a.move(agent, b)
    log_of(a, agent.uuid)
    with pytest.raises(Broken, match=r"handed: host .* has written in the log of agent"):
        world.sleep(1)


@pytest.mark.thorough("a second end of a host")
def test_who_ends_a_host_that_has_renewed_or_was_there_is_found(world: Simulation) -> None:
    a, b, _ = world.hosts
    world.sleep(20)
    [beat] = a.process.looked_at.read(
        lambda tx: [row[1] for row in tx.run("other_hosts", host=a.host_id) if row[0] == b.host_id]
    )
    a.process.store.write(lambda tx: tx.run("end_suspect", host=b.host_id, beat=beat))
    with pytest.raises(Broken, match=r"believed: host .* was ended, and was there for"):
        world.sleep(1)


@pytest.mark.thorough("a second play of hosts")
def test_a_server_that_restarts_ends_nobody_who_is_back_within_a_lease(world: Simulation) -> None:
    world.sleep(20)
    for host in world.hosts:
        host.disconnect()
    world.hosts[1].partition()
    world.sleep(7)
    world.hosts[1].heal()
    world.sleep(30)
    assert parts(world) == {"a": 22, "b": 21, "c": 21}
