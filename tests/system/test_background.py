"""Replies that their service makes in the background: read again after a crash, and paid once from their name on."""

from collections.abc import Iterator

import pytest

from ikigai_actors import ActorSystem, OpenAIProvider, Signal
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing import Simulation, simulated
from tests.kit.databases import eventually, python
from tests.kit.kept_replies import KeptReplies
from tests.kit.openai_server.server import OpenAIServer, Streams, message_item, response_events

pytest.importorskip("openai", reason="OpenAIProvider needs the extra openai")

LONG = pytest.mark.slow("another moment of a kill")


@pytest.fixture
def provider() -> KeptReplies:
    return KeptReplies()


@pytest.fixture
def world(provider: KeptReplies) -> Iterator[Simulation]:
    with simulated() as world:
        world.open(provider)
        world.system.root.fork(name="ann").configure(background=True)
        yield world


def ask(world: Simulation, seconds: float) -> None:
    world.system.agent("ann").prompt("hello")
    world.sleep(seconds)


def kinds(world: Simulation) -> list[str]:
    return [message.kind for message in world.system.agent("ann").history(all=True)][-4:]


@pytest.mark.sample(2, "moments of the kill")
@pytest.mark.parametrize(
    ("after", "paid"), [(2, 2), (12, 1), *(pytest.param(after, 1, marks=LONG) for after in (5.5, 19.9, 21))]
)
def test_a_reply_that_was_named_is_paid_once_whenever_the_process_is_killed(
    world: Simulation, provider: KeptReplies, after: float, paid: int
) -> None:
    ask(world, after)
    world.crash()
    world.reopen(resume=True)
    world.sleep(60)
    assert world.system.agent("ann").history()[-1].content == "reply to 1"
    assert (len(provider.paid), provider.given_up) == (paid, [])
    assert provider.read == (["reply_1"] if 5 < after < 20 else [])
    assert check(world.system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_two_kills_and_broken_connections_lead_to_the_same_reply(world: Simulation, provider: KeptReplies) -> None:
    provider.cuts = 2
    ask(world, 30)
    assert "retry" in kinds(world)
    for _ in range(2):
        world.crash()
        world.reopen(resume=True)
        world.sleep(5)
    world.sleep(60)
    assert world.system.agent("ann").history()[-1].content == "reply to 1"
    assert (provider.paid, provider.given_up) == (["reply_1"], [])
    assert check(world.system._store) == []


def test_the_service_hears_of_a_reply_that_was_interrupted(world: Simulation, provider: KeptReplies) -> None:
    ask(world, 10)
    world.system.agent("ann").signal(Signal.INT)
    world.sleep(1)
    assert provider.given_up == ["reply_1"]
    ask(world, 30)
    assert (provider.paid, provider.given_up) == (["reply_1", "reply_2"], ["reply_1"])
    assert check(world.system._store) == []


def test_the_service_hears_of_a_reply_whose_agent_is_killed_or_is_steered(
    world: Simulation, provider: KeptReplies
) -> None:
    ask(world, 10)
    world.system.agent("ann").steer("stop that", now=True)
    world.sleep(10)
    assert (provider.paid, provider.given_up) == (["reply_1", "reply_2"], ["reply_1"])
    world.system.agent("ann").kill()
    world.sleep(1)
    assert provider.given_up == ["reply_1", "reply_2"]
    assert check(world.system._store) == []


def test_a_turn_that_was_cut_off_and_is_left_alone_gives_its_reply_up(world: Simulation, provider: KeptReplies) -> None:
    ask(world, 10)
    world.crash()
    world.reopen(resume=False)
    assert world.system.agent("ann").state == "interrupted"
    ask(world, 30)
    assert (provider.paid, provider.given_up, provider.read) == (["reply_1", "reply_2"], ["reply_1"], [])
    assert check(world.system._store) == []


def test_without_the_setting_nothing_is_named(world: Simulation, provider: KeptReplies) -> None:
    world.system.agent("ann").configure(background=None)
    ask(world, 10)
    world.crash()
    world.reopen(resume=True)
    world.sleep(30)
    assert (len(provider.paid), provider.read) == (2, [])
    assert "note" not in kinds(world)


@pytest.mark.slow("takes a tenth of a second")
def test_a_child_does_not_read_the_reply_of_its_parent(world: Simulation, provider: KeptReplies) -> None:
    ask(world, 10)
    world.crash()
    world.reopen(resume=False)
    child = world.system.agent("ann").fork("And you?", name="ben")
    world.sleep(30)
    assert child.history()[-1].content == "reply to 1"
    assert provider.read == []


@pytest.mark.sample(1, "ways to end")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("forgotten", [False, True])
def test_the_reply_of_responses_is_read_by_the_next_process(durable: str, forgotten: bool) -> None:
    events = response_events(message_item("a long answer"))
    with OpenAIServer() as server:
        server.answers += [Streams(events, pause=2), Streams(events)]

        def opened() -> ActorSystem:
            provider = OpenAIProvider("gpt-5.5", base_url=server.url, api_key="key", api="responses")
            return ActorSystem.open(durable, provider)

        with opened() as system:
            agent = system.root.fork(name="ann")
            agent.configure(background=True)
            agent.prompt("hello")
            eventually(lambda: agent.history(all=True)[-1].kind == "note", "the reply is named")
        server.release()
        server.forgets = forgotten
        with opened() as system:
            eventually(lambda: system.agent("ann").history()[-1].content == "a long answer", "the reply is read")
            assert check(system._store) == []
        assert server.read_after == ([] if forgotten else [("resp_1", 0)])
        assert list(server.kept) == (["resp_1", "resp_2"] if forgotten else ["resp_1"])
        assert server.cancelled == []


@pytest.mark.slow("takes a tenth of a second")
def test_an_interrupt_cancels_the_response_at_the_service() -> None:
    with OpenAIServer() as server:
        server.answers += [Streams(response_events(message_item("a long answer")), pause=2)]
        provider = OpenAIProvider("gpt-5.5", base_url=server.url, api_key="key", api="responses")
        with ActorSystem.open(":memory:", provider) as system:
            system.root.configure(background=True)
            system.root.prompt("hello")
            eventually(lambda: system.root.history(all=True)[-1].kind == "note", "the reply is named")
            system.root.signal(Signal.INT)
            eventually(lambda: server.cancelled == ["resp_1"], "it is cancelled")


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("forks", [False, True])
def test_a_reply_that_is_read_again_is_charged_once(provider: KeptReplies, forks: bool) -> None:
    with simulated() as world:
        world.open(provider, budget={"tokens": 100_000, "strict": True})
        world.system.root.fork(name="ann").configure(background=True, max_tokens=1_000)
        ask(world, 10)
        for _ in range(2):
            if forks:
                world.system.agent("ann").fork(at=0)
            world.crash()
            world.reopen(resume=True)
            world.sleep(2)
        world.sleep(60)
        spent = world.system.root.budget
        assert spent is not None
        assert (provider.paid, spent.spent["tokens"], spent.held["tokens"]) == (["reply_1"], 110, 0)
        assert check(world.system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_kills_charge_nothing_more_for_a_reply_whose_connection_broke(provider: KeptReplies) -> None:
    provider.cuts = 1
    with simulated() as world:
        world.open(provider, budget={"tokens": 100_000, "strict": True})
        world.system.root.fork(name="ann").configure(background=True, max_tokens=1_000)
        ask(world, 12)
        assert kinds(world)[-1] == "retry"
        broken = world.system.root.budget
        for _ in range(2):
            world.crash()
            world.reopen(resume=True)
            world.sleep(2)
        world.sleep(60)
        spent = world.system.root.budget
        assert broken is not None
        assert spent is not None
        assert (provider.paid, spent.spent["tokens"]) == (["reply_1"], broken.spent["tokens"] + 110)
        assert check(world.system._store) == []


KILLED = """
import sys
from ikigai_actors import ActorSystem, OpenAIProvider
from tests.kit.databases import eventually

provider = OpenAIProvider("gpt-5.5", base_url=sys.argv[2], api_key="key", api="responses")
with ActorSystem.open(sys.argv[1], provider) as system:
    agent = system.root.fork(name="ann")
    agent.configure(background=True)
    agent.prompt("hello")
    eventually(lambda: agent.history(all=True)[-1].kind == "note", "the reply is named")
    print("named", flush=True)
    sys.stdin.read()
"""


@pytest.mark.thorough("a program that is killed; every run has the next process that reads the reply")
def test_a_reply_of_responses_outlives_kill_9_of_the_process_that_asked_for_it(durable: str) -> None:
    events = response_events(message_item("a long answer"))
    with OpenAIServer() as server:
        server.answers += [Streams(events, pause=2)]
        process = python(KILLED, durable, server.url)
        assert process.stdout is not None
        assert process.stdout.readline() == "named\n"
        process.kill()
        process.communicate()
        server.release()
        provider = OpenAIProvider("gpt-5.5", base_url=server.url, api_key="key", api="responses")
        with ActorSystem.open(durable, provider) as system:
            eventually(lambda: system.agent("ann").history()[-1].content == "a long answer", "the reply is read")
            assert check(system._store) == []
        assert (len(server.requests), list(server.kept)) == (1, ["resp_1"])
        assert (server.read_after, server.cancelled) == ([("resp_1", 0)], [])
