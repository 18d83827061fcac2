"""Errors in groups, as task groups raise them: models, callers and supervisors read the causes."""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from ikigai_actors import ActorSystem, FunctionProvider, ProviderError, Reply, Request, ScriptedProvider, ToolCall, tool
from ikigai_actors.errors import AgentDead, IkigaiError
from ikigai_actors.providers.base import OnDelta
from ikigai_actors.text import causes, described
from ikigai_actors.tools.function import FunctionTool, ToolError
from tests.kit.blocking_provider import DEADLINE

NO_COFFEE = ToolError("We sell no coffee.")


def group(*errors: Exception) -> ExceptionGroup[Exception]:
    return ExceptionGroup("unhandled errors in a TaskGroup", errors)


def noted(error: Exception, *notes: str) -> Exception:
    for note in notes:
        error.add_note(note)
    return error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (group(ValueError("bad")), "ValueError: bad"),
        (group(group(group(KeyError("k")))), "KeyError: 'k'"),
        (group(ValueError("a"), group(KeyError("b"))), "2 errors:\n- ValueError: a\n- KeyError: 'b'"),
        (noted(ValueError("bad"), "in line 7", "of orders.csv"), "ValueError: bad\nin line 7\nof orders.csv"),
        (noted(group(noted(ValueError("bad"), "in line 7")), "of both"), "ValueError: bad\nin line 7\nof both"),
        (group(*(ValueError(str(n)) for n in range(8))), "8 errors:\n"
         + "".join(f"- ValueError: {n}\n" for n in range(5)) + "- and 3 more"),
    ],
)  # fmt: skip
def test_an_error_is_described_by_its_causes_and_their_notes(error: Exception, text: str) -> None:
    assert described(error) == text


def test_notes_that_are_none_and_texts_that_fail_do_no_harm() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    mute = Mute()
    mute.__notes__ = [7, "seven"]  # type: ignore[list-item]
    assert described(mute) == "Mute: (it cannot be shown)\nseven"
    mute.__notes__ = "none"  # type: ignore[assignment]
    assert described(mute) == "Mute: (it cannot be shown)"
    assert causes(group(mute)) == [mute]


async def fails(error: Exception) -> NoReturn:
    raise error


def failing_tool(*errors: Exception) -> FunctionTool:
    @tool
    async def orders() -> str:
        """Look at the orders."""
        async with asyncio.TaskGroup() as tasks:
            for error in errors:
                tasks.create_task(fails(error))
        return "never"

    return orders


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([NO_COFFEE], "We sell no coffee."),
        ([ToolError("one"), ToolError("two")], "2 errors:\n- one\n- two"),
        ([NO_COFFEE, ValueError("bad")], "2 errors:\n- We sell no coffee.\n- ValueError: bad"),
    ],
)
def test_a_model_reads_what_a_tool_says_that_fails_in_a_task_group(errors: list[Exception], message: str) -> None:
    script: list[Reply | str] = [Reply(tool_calls=(ToolCall("orders"),)), "sorry"]
    with ActorSystem.open(":memory:", ScriptedProvider(script), tools=[failing_tool(*errors)]) as system:
        system.root.prompt("coffee").get(timeout=DEADLINE)
        [result] = [message for message in system.root.history() if message.kind == "tool_result"]
        assert (result.content, result.data["is_error"]) == (message, True)


class Grouping:
    """A provider that ends with a group."""

    name = "grouping"

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        if not self._errors:
            return Reply("here")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fails(self._errors.pop(0)))
        raise AssertionError("never")

    async def close(self) -> None:
        """Hold nothing."""


def test_a_caller_reads_why_a_provider_has_failed_and_a_provider_error_is_one() -> None:
    with ActorSystem.open(":memory:", Grouping(ValueError("bad"), ProviderError("cut", broke_off=True))) as system:
        with pytest.raises(ProviderError, match=r"^The provider failed: ValueError: bad$"):
            system.root.prompt("go").get(timeout=DEADLINE)
        assert system.root.prompt("again").get(timeout=DEADLINE).text == "here"


def test_a_supervisor_reads_why_its_child_has_crashed() -> None:
    async def many(request: Request) -> str:
        await Grouping(ValueError("bad")).respond(request, lambda _: None)
        return "never"

    with ActorSystem.open(":memory:", FunctionProvider(many)) as system:
        kid = system.root.fork(name="kid")
        with pytest.raises(IkigaiError, match="ValueError: bad") as raised:
            kid.prompt("go").get(timeout=DEADLINE)
        assert "TaskGroup" not in str(raised.value)
        assert not isinstance(raised.value, AgentDead) or "TaskGroup" not in str(raised.value)


def test_the_validator_of_a_type_that_fails_with_a_group_says_why() -> None:
    from pydantic import BaseModel, field_validator

    def check(value: Any) -> Any:
        raise group(RuntimeError("no stock"))

    validator: Callable[..., Any] = field_validator("name")(check)
    order = type("Order", (BaseModel,), {"__annotations__": {"name": str}, "check": validator})
    wrong = pytest.raises(ProviderError, match="its validator failed: RuntimeError: no stock")
    with ActorSystem.open(":memory:", ScriptedProvider([Reply("", output={"name": "x"})] * 3)) as system, wrong:
        system.root.prompt("go", output=order).get(timeout=DEADLINE)
