"""Typed turns: a turn that is asked for a value of a type gives one, or fails; never anything else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, assert_type

import pytest
from pydantic import BaseModel, field_validator

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRef,
    BadInput,
    Exit,
    FunctionProvider,
    OutputError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    ToolCall,
    read_output,
    tool,
)
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.messages import outputs
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.testing import ProcessCrashed, simulated
from tests.kit.blocking_provider import DEADLINE
from tests.kit.programs import crash_points, each_commit


class Verdict(BaseModel):
    sound: bool
    reasons: list[str]

    @field_validator("reasons")
    @classmethod
    def some(cls, value: list[str]) -> list[str]:
        if not value:
            raise ValueError("say why")
        return value


GOOD = {"sound": True, "reasons": ["it holds"]}
VERDICT = Verdict(sound=True, reasons=["it holds"])


def gives(value: Any, call_id: str = "r") -> Reply:
    return Reply(tool_calls=(ToolCall("give_result", {"result": value}, call_id),), stop_reason="tool_use")


def opened(*replies: Any, **options: Any) -> ActorSystem:
    return ActorSystem.open(provider=ScriptedProvider(list(replies)), **options)


def kinds(agent: AgentRef) -> list[str]:
    return [message.kind for message in agent.history(all=True) if message.agent_uuid == agent.uuid]


def instruction_in(request: Request) -> str:
    """What the model was told last: the text of its last block."""
    block = request.messages[-1]["content"][-1]
    return str(block.get("text") or block.get("content"))


def sound(system: ActorSystem) -> bool:
    return check(system._store) == []


def test_a_turn_gives_a_value_of_the_type_that_was_asked_for() -> None:
    with opened(gives(GOOD), "and more") as system:
        reply = system.root.prompt("is it sound?", output=Verdict).get(timeout=DEADLINE)
        assert reply.output == VERDICT
        assert (reply.text, reply.stop_reason) == ('{"sound": true, "reasons": ["it holds"]}', "output")
        assert system.root.reply(output=Verdict) == reply
        assert system.root.reply().output == GOOD
        assert system.root.prompt("thanks").get(timeout=DEADLINE).output is None
        assert kinds(system.root) == ["user", "assistant", "tool_result", "output", "user", "assistant"]
        assert sound(system)


def test_plain_types_and_schemas_do_as_well() -> None:
    values: list[tuple[Any, Any]] = [(int, 7), (list[int], [1, 2]), (str | None, None), ({"type": "string"}, "x")]
    with opened(*(gives(value) for _, value in values)) as system:
        for output, value in values:
            assert system.root.prompt("how many?", output=output).get(timeout=DEADLINE).output == value


def test_a_service_may_write_the_value_and_a_function_may_return_it() -> None:
    with opened('{"result": 7}', Reply(output=7)) as system:
        for _ in range(2):
            reply = system.root.prompt("how many?", output=int).get(timeout=DEADLINE)
            assert reply.output == 7
        assert kinds(system.root) == ["user", "assistant", "output"] * 2


@dataclass
class Beam:
    wood: str
    laid: datetime


BEAM = Beam("oak", datetime(2026, 11, 26, 9, 0, tzinfo=UTC))


def test_a_function_may_return_a_value_of_the_very_type() -> None:
    answers: list[Any] = [VERDICT, Reply(output=VERDICT)]
    with ActorSystem.open(":memory:", FunctionProvider(lambda request: answers.pop())) as system:
        while answers:
            reply = system.root.prompt("is it sound?", output=Verdict).get(timeout=DEADLINE)
            assert assert_type(reply.output, Verdict) == VERDICT
            assert assert_type(system.root.reply(output=Verdict), Reply[Verdict]).output == VERDICT
            assert_type(system.root.reply().output, Any)
        assert sound(system)


def test_such_values_may_hold_others_and_what_json_has_no_word_for() -> None:
    answers: Iterator[Any] = iter([Reply(output=[BEAM]), BEAM, BEAM])
    with ActorSystem.open(":memory:", FunctionProvider(lambda request: next(answers))) as system:
        assert system.root.prompt("which?", output=list[Beam]).get(timeout=DEADLINE).output == [BEAM]
        assert system.root.prompt("which?", output=Beam).get(timeout=DEADLINE).output == BEAM
        words = system.root.prompt("which?").get(timeout=DEADLINE).text
        assert words == '{"wood": "oak", "laid": "2026-11-26T09:00:00Z"}'


def test_a_value_of_another_type_is_told_to_the_function_as_any_misfit_is() -> None:
    beam = FunctionProvider(lambda request: BEAM)
    with ActorSystem.open(":memory:", beam) as system, pytest.raises(OutputError, match="wood"):
        system.root.prompt("is it sound?", output=Verdict).get(timeout=DEADLINE)


def test_the_tool_is_offered_in_typed_turns_only_and_exit_takes_the_value_too() -> None:
    provider = ScriptedProvider(["no", gives(7), "no"])
    with ActorSystem.open(provider=provider) as system:
        system.root.configure(tools=[])
        for output in (None, int, None):
            system.root.prompt("x", output=output).get(timeout=DEADLINE)
        offered = [[tool["name"] for tool in request.tools] for request in provider.requests]
        assert offered == [[], ["give_result"], []]
        assert provider.requests[1].output == provider.requests[1].tools[-1]
        assert provider.requests[1].output["input_schema"]["properties"] == {"result": {"type": "integer"}}
        assert provider.requests[0].output is None


def test_each_error_is_told_to_the_model_which_may_mend_it_twice() -> None:
    replies: list[Any] = [gives({"sound": "yes", "more": 1}, "a"), "It is sound.", gives(GOOD, "c")]
    provider = ScriptedProvider(replies)
    with ActorSystem.open(provider=provider) as system:
        assert system.root.prompt("?", output=Verdict).get(timeout=DEADLINE).output == VERDICT
        first, second = instruction_in(provider.requests[1]), instruction_in(provider.requests[2])
        assert "sound: 'yes' is not of type 'boolean'" in first
        assert "'reasons' is a required property" in first
        assert "'more' was unexpected" in first
        assert "the answer is no JSON" in second
        assert kinds(system.root)[1:] == [
            "assistant",
            "tool_result",
            "assistant",
            "repair",
            "assistant",
            "tool_result",
            "output",
        ]
        assert sound(system)


def test_after_two_repairs_the_turn_fails_and_gives_no_value() -> None:
    with opened(
        gives({}, "a"), gives({"sound": 1}, "b"), gives({**GOOD, "reasons": []}, "c"), gives(GOOD, "d")
    ) as system:
        each = r"\(1\) 'sound' is a required property.*\. \(2\) .*\. \(3\) reasons: Value error, say why"
        with pytest.raises(OutputError, match=f"after 2 repairs: {each}"):
            system.root.prompt("?", output=Verdict).get(timeout=DEADLINE)
        with pytest.raises(OutputError):
            system.root.reply()
        assert system.root.state == "idle"
        assert system.root.resume()  # asked once more, it has two repairs again
        assert system.root.reply(timeout=DEADLINE, output=Verdict).output == VERDICT
        assert sound(system)


def test_the_calls_beside_the_result_are_carried_out_before_it() -> None:
    done: list[str] = []

    @tool
    def note(text: str) -> str:
        """Note a text."""
        done.append(text)
        return "noted"

    called: list[tuple[str, dict[str, Any]]] = [
        ("give_result", {"result": 1}),
        ("note", {"text": "x"}),
        ("rename", {"name": "kid"}),
    ]
    calls = [ToolCall(name, arguments, name) for name, arguments in called]
    all_at_once = Reply(tool_calls=(*calls, ToolCall("give_result", {"result": 2}, "last")))
    with opened(all_at_once, "next", tools=[note]) as system:
        assert system.root.prompt("?", output=int).get(timeout=DEADLINE).output == 2
        assert (done, system.root.name) == (["x"], "kid")
        assert system.root.prompt("and now?").get(timeout=DEADLINE).text == "next"


def test_a_turn_without_a_type_does_not_know_the_tool() -> None:
    provider = ScriptedProvider([gives(1), "well"])
    with ActorSystem.open(provider=provider) as system:
        assert system.root.prompt("?").get(timeout=DEADLINE).text == "well"
        assert "There is no such tool" in instruction_in(provider.requests[1])


@pytest.mark.sample(2, "types")
@pytest.mark.parametrize("output", [object(), "int", 5, {"type": "nope"}])
def test_what_is_no_type_is_refused_before_anything_is_written(output: object) -> None:
    with opened() as system:
        for ask in (system.root.prompt, system.root.fork, system.root.aio.fork):
            with pytest.raises(BadInput, match="output"):
                ask("x", output=output)
        with pytest.raises(BadInput, match="Expected a prompt for the child"):
            system.root.fork(output=int)
        assert [len(system.agents()), system.root.history()] == [1, []]


def test_a_child_is_forked_for_a_value() -> None:
    with opened(gives(GOOD)) as system:
        kid = system.root.fork("is it sound?", output=Verdict)
        assert kid.reply(timeout=DEADLINE).output == kid.reply(output=Verdict).output == VERDICT
        assert system.handle(kid.uuid) == kid
        assert system.handle(kid.uuid).reply().output == GOOD
        with pytest.raises(OutputError, match="no builtins:int"):
            kid.reply(output=int)


@pytest.mark.thorough("values one after another, which a child and a turn give above")
def test_a_handle_gives_the_value_of_its_fork_and_leaves_other_replies_alone() -> None:
    with opened(gives(GOOD), gives(7), "words", gives(GOOD), gives(GOOD)) as system:
        kid = system.root.fork("is it sound?", output=Verdict)
        assert kid.reply(timeout=DEADLINE).output == VERDICT
        assert kid.prompt("how many?", output=int).get(timeout=DEADLINE).output == kid.reply().output == 7
        assert kid.prompt("well?").get(timeout=DEADLINE).output is None
        assert kid.reply().text == "words"
        twins = system.root.fork(prompts=["a", "b"], output=Verdict)
        assert [twin.reply(timeout=DEADLINE).output for twin in twins] == [VERDICT, VERDICT]


def test_a_value_that_nobody_asked_for_is_no_output() -> None:
    with opened(Reply("words", output=5)) as system:
        assert system.root.prompt("x").get(timeout=DEADLINE).output is None


def exits(value: Any) -> Reply:
    return Reply(tool_calls=(ToolCall("exit", {"result": value}, "e"),))


def test_the_result_of_exit_is_the_value_and_its_supervisor_reads_it() -> None:
    provider = ScriptedProvider([exits("it is sound"), exits(GOOD)])
    with ActorSystem.open(provider=provider) as system:
        kid = system.root.fork("is it sound?", output=Verdict)
        system.root.wait([kid], timeout=DEADLINE)
        [mail] = system.root.read_mail()
        assert read_output(mail.body, Verdict) == VERDICT
        assert "is not of type 'object'" in instruction_in(provider.requests[1])
        with pytest.raises(AgentDead):
            kid.reply()
        with pytest.raises(OutputError):
            read_output("sound", Verdict)


def test_the_code_of_an_agent_exits_with_the_value_or_its_turn_fails() -> None:
    def worker(request: Request) -> str:
        raise Exit('{"result": 7}' if request.name == "good" else "seven")

    with ActorSystem.open(provider=FunctionProvider(worker)) as system:
        good, bad = (system.root.fork("?", name=name, output=int) for name in ("good", "bad"))
        with pytest.raises(OutputError, match="no JSON"):
            bad.reply(timeout=DEADLINE)
        system.root.wait([good], timeout=DEADLINE)
        assert [mail.body for mail in system.root.read_mail()] == ["7"]


@pytest.mark.thorough("prompts from elsewhere, as in test_attached, with a type")
def test_another_process_asks_for_a_value_and_the_host_knows_its_schema(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider([gives({}), gives(GOOD), gives(GOOD)])) as host:
        with AttachedSystem.open(durable) as system:
            assert system.root.prompt("?", output=Verdict).get(timeout=DEADLINE).output == VERDICT
            kid = system.root.fork("?", output=Verdict)
            assert kid.reply(timeout=DEADLINE, output=Verdict).output == VERDICT
        assert host.root.reply(output=Verdict).output == VERDICT


def test_a_prompt_that_waits_for_cont_keeps_its_type() -> None:
    with opened(gives(7)) as system:
        kid = system.root.fork()
        kid.signal(Signal.STOP)
        answer = kid.prompt("how many?", output=int)
        kid.signal(Signal.CONT)
        assert answer.get(timeout=DEADLINE).output == 7


WRONG = gives({"sound": "yes"}, "w")


@pytest.mark.thorough("a host ends at each commit")
@pytest.mark.sample(1, "a place each")
@pytest.mark.slow("takes three seconds")
@pytest.mark.parametrize("script", [[WRONG, WRONG, gives(GOOD)], ["words", "words", gives(GOOD)], [WRONG, exits(GOOD)]])
@each_commit(8)
def test_a_crash_at_any_point_of_a_typed_turn_loses_neither_its_type_nor_its_count(
    script: Sequence[Any], step: int
) -> None:
    """At each commit of the turn, before and after it: it goes on, with the repairs that are left, to a value."""
    crashes = 0
    for point in takewhile(lambda point: point.commit < 12, crash_points(step)):
        with simulated() as world:
            asked: list[Request] = []

            def respond(request: Request, asked: list[Request] = asked) -> Any:
                asked.append(request)
                return script[sum(message["role"] == "assistant" for message in request.messages)]

            root = world.open(ScriptedProvider(respond)).root
            kid = root.fork("is it sound?", output=Verdict)
            world.crash_at(point)
            try:
                world.settle()
            except ProcessCrashed:
                crashes += 1
                outputs._known.clear()  # as another program, which does not know the type
                world.recover()
            kid = world.system.handle(kid.uuid)
            if kid.record.living:
                assert kid.reply(output=Verdict).output == VERDICT
            else:
                [mail] = world.system.handle(root.uuid).mails()
                assert read_output(mail.body, Verdict) == VERDICT
            assert all(request.output is not None for request in asked)
            assert len(asked) <= len(script) + 1
    assert crashes * step >= 8
