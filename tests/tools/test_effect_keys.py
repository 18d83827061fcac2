"""What a tool knows of the call that it carries out."""

from itertools import product
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, FunctionProvider, Reply, Request, ScriptedProvider
from ikigai_actors.tools import current_call
from ikigai_actors.tools.effect_keys import effect_key
from ikigai_actors.tools.function import tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import calling, results


def test_a_key_belongs_to_an_agent_a_reply_and_a_call() -> None:
    calls = product(("a", "b"), (1, 11), ("1", "11", "\ud800"))
    assert len({effect_key(*call) for call in calls}) == 12


def test_a_key_is_the_same_in_every_version() -> None:
    assert effect_key("a", 1, "1") == "ik-90a62f263c816b58d65ab346f26bba4a722b0bee"


def test_outside_of_a_tool_there_is_no_call() -> None:
    with pytest.raises(LookupError, match="works inside a tool"):
        current_call()


@pytest.mark.parametrize("provider", [FunctionProvider, ScriptedProvider])
def test_the_model_that_a_tool_asks_is_not_within_its_call(
    provider: type[FunctionProvider] | type[ScriptedProvider],
) -> None:
    calls: list[str] = []

    @tool
    def ask() -> str:
        calls.append(current_call().id)
        return system.agent("kid").prompt("well?").get(timeout=DEADLINE).text

    def answer(request: Request) -> str | Reply:
        if request.name != "kid":
            return seen[0].content if (seen := results(request)) else calling("ask")
        try:
            return current_call().id
        except LookupError:
            return "no call"

    with ActorSystem.open(":memory:", provider=provider(answer), tools=[ask]) as system:
        system.root.fork(name="kid")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "no call"
    assert calls == ["1"]


@pytest.mark.parametrize("wrong", ["by key", "", 1, None])
def test_what_idempotent_may_be(wrong: Any) -> None:
    with pytest.raises(BadInput, match="idempotent to be"):
        tool(idempotent=wrong)
    assert tool(idempotent="by_key")(current_call).traits.idempotent
