"""A prompt that fails costs nothing but itself: undo, resume, the retry of a reply that breaks off."""

from collections.abc import Mapping

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    Kind,
    Message,
    ProviderError,
    Reply,
    ScriptedProvider,
    Signal,
    Stream,
    Usage,
)
from ikigai_actors.providers.base import Delta, Request, Spent
from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.fsck.invariants import Invariant
from ikigai_actors.records.messages.replies import spent_of
from ikigai_actors.store import Store
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.kit.echo import echo, kinds, open_echo
from tests.kit.logs import write_log
from tests.kit.open_on import open_on
from tests.kit.tool_scripts import calling, scripted

BROKEN = Stream(("Hel",), then=ProviderError("The connection broke.", broke_off=True))


def texts(request: Request) -> list[str]:
    """All that was said to the model, by whom of both."""
    blocks: list[Mapping[str, str]] = [block for message in request.messages for block in message["content"]]
    return [block["text"] for block in blocks if block["type"] == "text"]


def failure(agent: AgentRef, text: str) -> str:
    with pytest.raises(ProviderError) as failed:
        agent.prompt(text).get(timeout=DEADLINE)
    return str(failed.value)


@pytest.mark.slow("takes a tenth of a second")
def test_a_refused_prompt_is_taken_back_by_a_child_that_inherits_it(database: str) -> None:
    def picky(request: Request) -> ScriptedReply:
        if any("much too long" in text for text in texts(request)):
            return ProviderError("this prompt is refused")
        return echo(request)

    with ActorSystem.open(database, provider=ScriptedProvider(picky)) as system:
        system.root.prompt("We sell tea.").get(timeout=DEADLINE)
        failure(system.root, "much too long")
        child = system.root.fork(name="out")
        failure(child, "Are you there?")
        child.undo()
        child.undo()
        assert child.prompt("Are you there?").get(timeout=DEADLINE).text == "Are you there? / 3"
        failure(system.root, "And you?")  # what the child takes back, its parent keeps


def test_fsck_knows_what_an_undo_names(store: Store) -> None:
    with open_on(store, ScriptedProvider(echo)) as system:
        uuid = system.root.uuid
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork("two")
        child.reply(timeout=DEADLINE)
        for agent in (child, child, system.root):
            agent.undo()
        assert check(store) == []
        wrong = Message(uuid, 5, Kind.REWIND, "", {"before": 2}, 1)
        store.write(lambda tx: write_log(tx, [wrong]))
        [violation] = check(store)
        assert (violation.invariant, violation.agent) == (Invariant.REWIND, uuid)


@pytest.mark.slow("takes a tenth of a second")
def test_a_failed_turn_goes_on_after_a_restart_with_another_model(durable: str) -> None:
    provider = ScriptedProvider([ProviderError("overloaded")])
    with ActorSystem.open(durable, provider=provider) as system:
        failure(system.root, "Name a tea.")
    with open_echo(durable) as system:
        with pytest.raises(ProviderError, match="overloaded"):
            system.root.reply(timeout=DEADLINE)
        system.root.configure(max_tokens=99)
        assert system.root.resume()
        assert system.root.reply(timeout=DEADLINE).text == "Name a tea. / 1"


@pytest.mark.slow("takes a tenth of a second")
def test_a_resumed_turn_that_is_cut_off_comes_back_as_interrupted(durable: str) -> None:
    with ActorSystem.open(durable, provider=ScriptedProvider([ProviderError("overloaded")])) as system:
        failure(system.root, "Name a tea.")
    hanging = Hanging("")
    with ActorSystem.open(durable, provider=hanging) as system:
        assert system.root.resume()
        hanging.wait_until_asked()
    with open_echo(durable, resume=False) as system:
        assert system.root.state == "interrupted"
        assert system.root.resume()
        assert system.root.reply(timeout=DEADLINE).text == "Name a tea. / 1"


def test_a_child_that_a_call_has_forked_resumes_its_first_turn(database: str) -> None:
    provider = scripted([calling(("fork", {"name": "kid"})), "done"], kid=[ProviderError("overloaded"), "grown"])
    with ActorSystem.open(database, provider=provider) as system:
        system.root.prompt("fork").get(timeout=DEADLINE)
        kid = system.agent("kid")
        with pytest.raises(ProviderError):
            kid.reply(timeout=DEADLINE)
        assert kid.resume()
        assert kid.reply(timeout=DEADLINE).text == "grown"


def test_a_reply_that_breaks_off_is_asked_for_again_by_itself(store: Store) -> None:
    with open_on(store, ScriptedProvider([BROKEN, "Hello."])) as system:
        assert system.root.prompt("hi").get(timeout=DEADLINE).text == "Hello."
        assert kinds(system.root.history()) == ["user", "retry", "assistant"]
        assert system.root.statistics().steps == 2
        assert check(store) == []


COST = Usage(300, 2, 0, 40)


def counted(*deltas: str, then: Reply | Exception | None = None) -> Stream:
    """A reply of which the service tells what it costs."""
    return Stream((Delta(spent=Spent(COST, "model-1")), *deltas), then=then)


@pytest.mark.parametrize("said", [(), ("half",)])
def test_what_a_broken_request_has_cost_is_counted(database: str, said: tuple[str, ...]) -> None:
    script = [counted(*said, then=ProviderError("refused")), counted(*said, then=ProviderError("cut", broke_off=True))]
    with ActorSystem.open(database, provider=ScriptedProvider([*script, "ok"])) as system:
        failure(system.root, "hi")
        system.root.resume()
        system.root.reply(timeout=DEADLINE)
        spent = [spent_of(message) for message in system.root.history() if message.kind in (Kind.ERROR, Kind.RETRY)]
        assert spent == [Spent(COST, "model-1")] * 2
        assert system.root.statistics().tokens == Usage(600, 4, 0, 80)
        assert system.root.statistics().models["model-1"] == Usage(600, 4, 0, 80)


@pytest.mark.parametrize("text", ["", "half"])
def test_what_an_interrupted_request_has_cost_is_counted(database: str, text: str) -> None:
    hanging = Hanging(text, Spent(COST, "model-1"))
    with ActorSystem.open(database, provider=hanging) as system:
        system.root.prompt("hi")
        hanging.wait_until_asked()
        assert system.root.aio.signal(Signal.INT).get(timeout=DEADLINE)
        assert spent_of(system.root.history()[-1]) == Spent(COST, "model-1")
        assert system.root.statistics().tokens == COST


def test_a_delta_that_tells_costs_is_told_to_no_subscriber(database: str) -> None:
    events: list[object] = []
    with ActorSystem.open(database, provider=ScriptedProvider([counted("Hi", then=Reply("Hi"))])) as system:
        subscription = system.subscribe(events.append)
        system.root.prompt("hi").get(timeout=DEADLINE)
        subscription.close()
    assert [getattr(event, "text", None) for event in events if not hasattr(event, "id")] == ["Hi"]
