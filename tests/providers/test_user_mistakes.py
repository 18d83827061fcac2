"""Mistakes in the code of whoever uses the library: each ends one turn, or crashes one agent, and hurts nobody else."""

import asyncio
import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    Exit,
    FunctionProvider,
    IkigaiError,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    Stream,
    ToolCall,
    Usage,
    current_agent,
)
from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.agent.executor import Executor
from ikigai_actors.agent.jobs import Crash
from ikigai_actors.errors import AgentDead, BadInput
from ikigai_actors.providers import Spent
from ikigai_actors.providers.base import Delta, OnDelta
from ikigai_actors.providers.checked import checked_delta, checked_reply
from ikigai_actors.records.fsck.check import check
from ikigai_actors.tools.function import Result, tool
from ikigai_actors.tools.policy import Policy, ToolTraits
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.mistakes import ENDINGS, BareExit, OddTool, Remote, acts, fields_of, raising, right, wrong
from tests.kit.tool_scripts import calling

SOME_ENDINGS = [
    ending
    if place % 4 == 0
    else pytest.param(ending, marks=pytest.mark.thorough("each run has all ways to end at one border"))
    for place, ending in enumerate(ENDINGS)
]
"""Ways to end, at the borders that treat all of them alike."""

INCONSISTENT: list[Any] = [
    Reply(tool_calls=(ToolCall("agents", {"a": object()}),)),
    Reply(blocks=({"type": "text", "text": 5},)),
    Reply(blocks=({"type": "tool_use", "name": "agents", "input": {}, "id": 5},)),
    Reply(blocks=({"type": "text", "text": "hello"},), tool_calls=(ToolCall("agents"),)),
]
"""Replies with a wrong block."""


def faulty(system: ActorSystem) -> AgentRef:
    """An agent that asks what is wrong."""
    return system.root.fork(name="wrong", model="wrong")


def outcome(agent: AgentRef, prompt: str = "go") -> str:
    """How its turn ends, in time."""
    try:
        return agent.prompt(prompt).get(timeout=DEADLINE).text
    except TimedOut:
        raise
    except IkigaiError as error:
        return str(error)


def opened(provider: Any) -> ActorSystem:
    """A system in which agent 0 is served well, and others by this one."""
    return ActorSystem.open(":memory:", FunctionProvider(lambda _: "well"), {"wrong": provider})


def ended(agent: AgentRef) -> bool:
    """Whether it has no turn any more."""
    return agent.state in ("idle", "dead")


def played(script: Any) -> object:
    """What comes of a scripted reply, pieces included."""

    def hear(piece: Delta) -> None:
        checked_delta(piece)

    request = Request("a", None, "", "", ())
    return checked_reply(asyncio.run(ScriptedProvider([script]).respond(request, hear)))


@pytest.mark.parametrize(("door", "hint"), [(checked_reply, Reply), (checked_delta, Delta), (played, Stream)])
def test_a_record_with_a_wrong_value_in_any_field_is_refused_at_the_door(
    door: Callable[[Any], Any], hint: type
) -> None:
    door(right(hint))
    tried = [value for value in wrong(hint) if isinstance(value, hint)]
    assert len(tried) > 10 * len(fields_of(hint))
    for value in tried:
        with pytest.raises((TypeError, BadInput), match="Expected"):
            door(value)


@pytest.mark.slow("takes a tenth of a second")
def test_a_remote_provider_whose_reply_is_none_ends_the_turn_with_an_error() -> None:
    replies: list[Any] = [Reply(text=7), Reply(tool_calls=5), *INCONSISTENT]  # type: ignore[arg-type]
    with opened(Remote(lambda _: replies.pop())) as system:
        agent = faulty(system)
        while replies:
            assert "Expected" in outcome(agent)
            assert agent.state == "idle"
            assert outcome(system.root) == "well"


def test_a_remote_provider_that_answers_with_something_else_ends_the_turn_with_an_error() -> None:
    answers: list[Any] = [None, "text", 5, [], {}, b"", object(), Reply, Exit("not raised")]
    with opened(Remote(lambda _: answers.pop())) as system:
        agent = faulty(system)
        while answers:
            assert "Expected respond() to return a Reply, got" in outcome(agent)
            assert agent.state == "idle"


@pytest.mark.sample(2, "replies")
@pytest.mark.parametrize("reply", [Reply(text=7), Reply(usage={}), *INCONSISTENT])  # type: ignore[arg-type]
def test_a_function_whose_reply_is_none_is_asked_once_and_its_agent_lives(reply: Any) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Any:
        asked.append(request)
        return reply

    with opened(FunctionProvider(answer)) as system:
        agent = faulty(system)
        for count in range(1, 6):
            assert "The provider failed: Expected" in outcome(agent)
            assert (agent.state, len(asked), agent.statistics().restarts) == ("idle", count, 0)
        assert outcome(system.root) == "well"


def _wait_for_itself() -> NoReturn:
    current_agent().reply(timeout=DEADLINE)
    raise AssertionError("never")


def _say_what_is_wrong() -> NoReturn:
    current_agent().configure(max_tokens=-1)
    raise AssertionError("never")


@pytest.mark.sample(4, "mistakes")
@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (_wait_for_itself, "would wait for the end of its own turn"),
        (_say_what_is_wrong, "Expected setting max_tokens"),
        (partial(next, iter(())), "StopIteration"),
        (sys.exit, "The function raised SystemExit"),
        (partial(signal.default_int_handler, 2, None), "The function raised KeyboardInterrupt"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_mistake_that_is_always_the_same_ends_the_turn_and_not_its_agent(
    mistake: Callable[[], Any], message: str, is_async: bool
) -> None:
    asked: list[Request] = []

    def function(request: Request) -> str:
        asked.append(request)
        mistake()
        return "never"

    async def coroutine(request: Request) -> str:
        return await asyncio.to_thread(function, request) if mistake is _wait_for_itself else function(request)

    if is_async and isinstance(mistake, partial) and mistake.func is next:
        pytest.skip("a coroutine cannot raise it")
    with opened(FunctionProvider(coroutine if is_async else function)) as system:
        agent = faulty(system)
        agent.remind("nightly", every="1h")
        for count in range(1, 6):
            assert message in outcome(agent)
            assert len(asked) == count
        assert [timer.body for timer in agent.timers()] == ["nightly"]


@pytest.mark.sample(2, "results")
@pytest.mark.parametrize("result", [{"rows": 3}, None, 5, b"", ["a"], object()])
def test_an_exit_whose_result_is_no_text_crashes_the_agent_and_says_what_to_do(result: Any) -> None:
    def worker(request: Request) -> str:
        raise Exit(result)

    with opened(FunctionProvider(worker)) as system:
        agent = faulty(system)
        assert "Expected the result of Exit as text" in outcome(agent)
        assert ended(agent)


def test_an_exit_of_ones_own_that_has_no_result_crashes_the_agent() -> None:
    with opened(FunctionProvider(raising(BareExit))) as system:
        assert "Expected the result of Exit as text" in outcome(faulty(system))


def test_an_exit_whose_result_was_changed_crashes_the_agent() -> None:
    def worker(request: Request) -> str:
        end = Exit("text")
        end.result = 5  # type: ignore[assignment]  # the mistake
        raise end

    with opened(FunctionProvider(worker)) as system:
        assert "Expected the result of Exit as text" in outcome(faulty(system))


@pytest.mark.sample(4, "exceptions")
@pytest.mark.parametrize("make", ENDINGS)
def test_whatever_a_remote_provider_raises_ends_the_turn_and_is_logged(
    make: Callable[[], BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    with opened(Remote(raising(make))) as system:
        agent = faulty(system)
        with pytest.raises(ProviderError):
            agent.prompt("go").get(timeout=DEADLINE)
        assert agent.state == "idle"
        assert outcome(system.root) == "well"
    assert any("act" in traces(record.exc_info[1]) for record in caplog.records if record.exc_info)


def traces(error: BaseException | None) -> list[str]:
    """The functions that its traceback goes through, and those of its cause."""
    if error is None:
        return []
    return [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)] + traces(error.__cause__)


@pytest.mark.sample(2, "errors")
@pytest.mark.parametrize("make", SOME_ENDINGS)
def test_whatever_a_scripted_function_raises_ends_the_turn_and_no_other_agent_notices(
    make: Callable[[], BaseException],
) -> None:
    async def soon(request: Request) -> str:
        raise make()

    for script in (raising(make), soon):
        with opened(ScriptedProvider(script)) as system:
            agent = faulty(system)
            outcome(agent)
            assert agent.state == "idle"
            assert outcome(system.root) == "well"


@pytest.mark.sample(2, "errors")
@pytest.mark.parametrize("make", SOME_ENDINGS)
def test_whatever_a_function_raises_crashes_its_agent_alone(make: Callable[[], BaseException]) -> None:
    async def soon(request: Request) -> str:
        raise make()

    for act in (raising(make), soon):
        with opened(FunctionProvider(act)) as system:
            agent = faulty(system)
            outcome(agent)
            assert agent.state == "idle"
            assert outcome(system.root) == "well"


def test_a_provider_that_is_not_async_ends_the_turn_with_an_error_that_says_so() -> None:
    class Plain(Remote):
        def respond(self, request: Request, on_delta: OnDelta) -> Any:
            return Reply("at once")

    with opened(Plain(lambda _: None)) as system:
        assert "async def" in outcome(faulty(system))

    class Exits(Remote):
        def respond(self, request: Request, on_delta: OnDelta) -> Any:
            raise SystemExit("planted")

    with opened(Exits(lambda _: None)) as system:
        assert "planted" in outcome(faulty(system))
        assert outcome(system.root) == "well"


def test_a_provider_that_cannot_tell_its_model_ends_the_turn_with_an_error() -> None:
    class Forgetful(Remote):
        knows = True

        @property
        def model(self) -> str:
            if not self.knows:
                raise SystemExit("planted")
            return "wrong"

    with opened(provider := Forgetful(lambda _: Reply("hello"))) as system:
        agent = faulty(system)
        provider.knows = False
        assert "planted" in outcome(agent)
        assert agent.state == "idle"


WRONG = [Delta(spent=Spent(Usage(count))) for count in (-1, 10**15 + 1)]


def test_a_delta_that_is_none_is_an_error_of_its_provider() -> None:
    deltas: list[Any] = [None, "text", Delta(5), Delta(spent=Usage(3, 4)), *WRONG]  # type: ignore[arg-type]
    with opened(Remote(lambda on_delta: on_delta(deltas.pop()))) as system:
        agent = faulty(system)
        while deltas:
            assert "a Delta" in outcome(agent)
            assert agent.state == "idle"


def test_a_wrong_delta_does_not_keep_an_interrupt_from_ending_the_turn() -> None:
    sent = threading.Event()

    class Stubborn(Remote):
        async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
            on_delta(Delta("half a "))
            with contextlib.suppress(TypeError):
                on_delta(Delta(5))  # type: ignore[arg-type]  # the mistake
            sent.set()
            await asyncio.Event().wait()
            raise AssertionError("nobody sets this event")

    with opened(Stubborn(lambda _: None)) as system:
        agent = faulty(system)
        agent.prompt("go")
        assert sent.wait(DEADLINE)
        assert agent.signal(Signal.INT, timeout=DEADLINE)
        assert agent.history()[-1].content == "half a "


def test_a_task_that_a_provider_leaves_behind_cannot_end_the_event_loop(caplog: pytest.LogCaptureFixture) -> None:
    async def leave() -> None:
        raise SystemExit("planted")

    class Leaving(Remote):
        async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
            self.task = asyncio.create_task(leave())
            return Reply("left")

    with opened(provider := Leaving(lambda _: None)) as system:
        agent = faulty(system)
        for _ in range(3):
            assert outcome(agent) == "left"
            assert outcome(system.root) == "well"
        eventually(lambda: provider.task.done(), "the loop runs what was left to it")
        with pytest.raises(SystemExit):
            provider.task.result()
    assert any(record.exc_info and isinstance(record.exc_info[1], SystemExit) for record in caplog.records)


def test_what_takes_a_reply_is_told_that_it_failed_to() -> None:
    """A defect of our own: the turn must end all the same."""
    executor, answers = Executor(), list[object]()
    there = threading.Event()

    def on_reply(answer: object) -> None:
        answers.append(answer)
        if len(answers) == 1:
            raise LookupError("planted")
        there.set()

    executor.ask_model(Remote(lambda _: Reply("hello")), Request("a", None, "", "", ()), None, print, on_reply)
    assert there.wait(DEADLINE)
    executor.close([])
    [reply, failure] = answers
    assert reply == Reply("hello")
    assert isinstance(failure, ProviderError | Crash)


@pytest.mark.sample(3, "errors")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("make", SOME_ENDINGS)
def test_a_tool_of_ones_own_that_raises_gives_an_error_result(
    make: Callable[[], BaseException], is_async: bool
) -> None:
    script = ScriptedProvider([calling("odd"), "done"])
    odd = OddTool(raising(make), is_async)
    with ActorSystem.open(":memory:", script, {"well": FunctionProvider(lambda _: "well")}, tools=[odd]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        assert outcome(system.root.fork(model="well")) == "well"
        [result] = [message for message in system.root.history() if message.kind == "tool_result"]
        assert result.data["is_error"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_of_ones_own_that_gives_no_result_says_what_was_expected(is_async: bool) -> None:
    results: list[Any] = [None, "text", 5, Result(5), Result("a", "b"), {}]  # type: ignore[arg-type]
    script = ScriptedProvider([calling("odd"), "done"] * len(results))
    with ActorSystem.open(":memory:", script, tools=[OddTool(results.pop, is_async)]) as system:
        while results:
            assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
            *_, result = [message for message in system.root.history() if message.kind == "tool_result"]
            assert "Expected a Result" in result.content


@pytest.mark.sample(4, "an exception each")
@pytest.mark.parametrize("make", ENDINGS)
def test_a_tool_that_raises_gives_an_error_result_whatever_it_is(make: Callable[[], BaseException]) -> None:
    @tool
    def plain() -> str:
        raise make()

    @tool
    async def waits() -> str:
        raise make()

    script = ScriptedProvider([calling("plain", "waits"), "done"])
    with ActorSystem.open(":memory:", script, tools=[plain, waits]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        results = [message for message in system.root.history() if message.kind == "tool_result"]
        assert [result.data.get("is_error") for result in results] == [True, True]


@pytest.mark.parametrize("make", SOME_ENDINGS)
def test_an_approver_that_raises_denies(make: Callable[[], BaseException]) -> None:
    @tool(policy="ask")
    def plain() -> str:
        return "ran"

    script = ScriptedProvider([calling("plain"), "done"])
    with ActorSystem.open(":memory:", script, tools=[plain], approvals=raising(make)) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        [result] = [message for message in system.root.history() if message.kind == "tool_result"]
        assert "the program that decides failed" in result.content


async def _consents(call: object) -> bool:
    return True


@pytest.mark.parametrize("decide", [lambda call: None, lambda call: 1, lambda call: [True], _consents])
def test_an_approver_that_decides_nothing_denies_and_says_so(decide: Any) -> None:
    @tool(policy="ask")
    def plain() -> str:
        return "ran"

    script = ScriptedProvider([calling("plain"), "done"])
    with ActorSystem.open(":memory:", script, tools=[plain], approvals=decide) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        [result] = [message for message in system.root.history() if message.kind == "tool_result"]
        assert "expected True, False or a text" in result.content


@pytest.mark.parametrize("make", SOME_ENDINGS)
def test_a_subscriber_that_raises_hears_what_comes_later(
    make: Callable[[], BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[object] = []

    def hear(event: object) -> None:
        heard.append(event)
        raise make()

    with opened(FunctionProvider(lambda _: "well")) as system:
        system.subscribe(hear)
        assert outcome(system.root) == "well"
    assert len(heard) >= 2
    assert sum("subscriber failed" in record.message for record in caplog.records) == len(heard)


@pytest.mark.slow("takes a tenth of a second")
def test_agents_that_did_nothing_wrong_outlive_one_whose_script_exits(durable: str) -> None:
    def script(request: Request) -> str:
        if "exit" in str(request.messages[-1]):
            raise SystemExit("planted")
        return "ok"

    with ActorSystem.open(durable, provider=ScriptedProvider(script)) as system:
        children = [system.root.fork(name=f"k{number}") for number in range(4)]
        assert "planted" in outcome(system.root, "exit")
        assert [outcome(child) for child in children for _ in range(3)] == ["ok"] * 12
    with ActorSystem.open(durable, provider=ScriptedProvider(script)) as system:
        assert {record.status for record in system.agents()} == {"running"}


def test_bad_input_names_what_an_exit_takes() -> None:
    with pytest.raises(BadInput, match=r"json\.dumps"):
        Exit({"rows": 3})  # type: ignore[arg-type]  # the mistake


BORDERS = ("function", "async function", "script", "async script", "list", "provider", "deltas", "tool", "async tool")
"""Where the code of whoever uses the library answers."""


def at(border: str, act: Callable[..., Any]) -> Any:
    """A provider, or a tool, that runs this code at one of the borders."""

    async def soon(*arguments: Any) -> Any:
        return act(*arguments)

    def saying(on_delta: OnDelta) -> Reply:
        on_delta(act())
        return Reply("said")

    match border:
        case "function" | "async function":
            return FunctionProvider(soon if border.startswith("async") else act)
        case "script" | "async script":
            return ScriptedProvider(soon if border.startswith("async") else act)
        case "list":
            return ScriptedProvider(act() for _ in range(9))
        case "provider":
            return Remote(act)
        case "deltas":
            return Remote(saying)
        case _:
            return OddTool(act, border.startswith("async"))


@pytest.mark.thorough("made-up mistakes; every run has each kind by itself")
@pytest.mark.slow("takes a second")
@given(
    st.sampled_from(BORDERS),
    acts(),
    acts(),
    acts(),
    st.sampled_from(["transient", "permanent", "temporary"]),
)
@settings(max_examples=40)
def test_whatever_the_code_of_others_does_every_turn_ends_and_nobody_else_is_hurt(
    border: str, act: Callable[..., Any], approve: Callable[..., Any], hear: Callable[..., Any], restart: str
) -> None:
    odd, provider = OddTool(lambda: Result("fine"), True), at(border, act)
    if isinstance(provider, OddTool):
        odd, provider = provider, ScriptedProvider([calling("odd"), *["done"] * 50])
    odd.traits = ToolTraits(policy=Policy.ASK)
    with ActorSystem.open(
        ":memory:", FunctionProvider(lambda _: "well"), {"wrong": provider}, tools=[odd], approvals=approve
    ) as system:
        system.subscribe(hear)
        agent, other = system.root.fork(name="wrong", model="wrong", restart=restart), system.root.fork()
        for _ in range(2):
            with contextlib.suppress(AgentDead):
                outcome(agent)
        assert ended(agent)
        assert [outcome(each) for each in (system.root, other)] == ["well", "well"]
        assert check(system._store) == []
        assert {record.status for record in system.agents() if record.name != "wrong"} == {"running"}
    system.close()
