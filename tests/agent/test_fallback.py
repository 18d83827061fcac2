"""An agent with several models: the next one is asked when a service is not available."""

import pytest

from ikigai_actors import ActorSystem, AgentRef, Kind, ProviderError, Reply, ScriptedProvider, Stream
from ikigai_actors.providers.scripted import ScriptedReply
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import kinds
from tests.kit.tool_scripts import calling

BUSY = ProviderError("The service is overloaded.", unavailable=True)
BOTH = "left:a, right:b"


def open_two(left: list[ScriptedReply], right: list[ScriptedReply]) -> ActorSystem:
    providers = {"left": ScriptedProvider(left), "right": ScriptedProvider(right)}
    return ActorSystem.open(":memory:", "offline", providers)


def answered_by(agent: AgentRef) -> list[str]:
    return [message.data["model"] for message in agent.history() if message.kind == Kind.ASSISTANT]


def failure(agent: AgentRef) -> str:
    with pytest.raises(ProviderError) as failed:
        agent.prompt("hi").get(timeout=DEADLINE)
    return str(failed.value)


def test_the_next_model_answers_when_a_service_is_overloaded_and_the_log_says_so() -> None:
    with open_two([BUSY, "left"], ["right"]) as system:
        root = system.root
        root.configure(model=BOTH)
        assert root.prompt("hi").get(timeout=DEADLINE).text == "right"
        assert kinds(root.history()) == ["configure", "user", "retry", "assistant"]
        [passed] = [message for message in root.history() if message.kind == Kind.RETRY]
        assert (passed.content, passed.data) == (str(BUSY), {"next": "right:b"})
        assert root.prompt("and now?").get(timeout=DEADLINE).text == "left"
        assert answered_by(root) == ["right:b", "left:a"]


def test_the_model_that_answered_serves_the_rest_of_the_turn() -> None:
    with open_two([BUSY], [calling("list_agents"), "done"]) as system:
        system.root.configure(model=BOTH)
        assert system.root.prompt("hi").get(timeout=DEADLINE).text == "done"
        assert answered_by(system.root) == ["right:b", "right:b"]


def test_an_error_that_is_the_request_s_own_fault_is_no_reason_to_ask_another() -> None:
    with open_two([ProviderError("prompt is too long")], ["right"]) as system:
        system.root.configure(model=BOTH)
        assert failure(system.root) == "prompt is too long"


def test_a_stream_that_breaks_off_is_asked_for_again_before_the_next_model_is() -> None:
    cuts = [ProviderError("The connection broke.", broke_off=True, unavailable=True) for _ in range(2)]
    with open_two([Stream(("Le",), then=cuts[0]), Stream(("Lef",), then=cuts[1])], ["right"]) as system:
        system.root.configure(model=BOTH)
        assert system.root.prompt("hi").get(timeout=DEADLINE).text == "right"
        retries = [message.data for message in system.root.history() if message.kind == Kind.RETRY]
        assert retries == [{"partial": "Le"}, {"partial": "Lef", "next": "right:b"}]


def test_the_last_model_s_error_ends_the_turn_and_resume_begins_with_the_first() -> None:
    with open_two([BUSY, "left"], [ProviderError("Nobody pays.", unavailable=True)]) as system:
        system.root.configure(model=BOTH)
        assert failure(system.root) == "Nobody pays."
        system.root.resume()
        assert system.root.reply(timeout=DEADLINE).text == "left"


def test_each_model_gets_its_own_thoughts_back_and_none_of_another_one() -> None:
    def thought(by: str) -> Reply:
        return Reply(blocks=({"type": "thinking", "thinking": by}, {"type": "text", "text": "ok"}))

    left, right = ScriptedProvider([thought("a"), BUSY, "end"]), ScriptedProvider([thought("b")])
    with ActorSystem.open(":memory:", BOTH, {"left": left, "right": right}) as system:
        for text in ("one", "two", "three"):
            system.root.prompt(text).get(timeout=DEADLINE)
    [asked] = right.requests
    assert not [block for message in asked.messages for block in message["content"] if block["type"] == "thinking"]
    sent = [block for message in left.requests[-1].messages for block in message["content"]]
    assert [block["thinking"] for block in sent if block["type"] == "thinking"] == ["a"]


def test_an_unknown_provider_among_several_is_an_error_before_any_is_asked() -> None:
    with open_two(["left"], []) as system:
        system.root.configure(model="left:a, nobody:b")
        assert "'nobody:b' names provider 'nobody', which is not registered" in failure(system.root)
        system.root.configure(model="smollm2")
        assert "A model is named with its provider, as anthropic:smollm2" in failure(system.root)
