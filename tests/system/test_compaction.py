"""Compaction: a summary stands for what was said, nothing is lost, and taking it off brings all of it back."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRef,
    BadInput,
    FunctionProvider,
    Message,
    OfflineProvider,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    StoreError,
    SystemClosed,
    ToolCall,
    TurnInterrupted,
    Usage,
    tool,
)
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.errors import NothingToCompact, NothingToUncompact
from ikigai_actors.events import WindowNearlyFull
from ikigai_actors.providers.base import OPEN_PROMPT, SUMMARISE
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.verbs.text.wording import explained
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.kit.databases import eventually
from tests.kit.faults import FaultyStore, SlowToRead
from tests.kit.open_on import open_on

LONG = "so many words about it that there is something to save " * 10
NOTES = Usage(100, 10)


class Model:
    """Answers prompts with long texts, and the request for a summary with all that it was asked to remember."""

    def __init__(self, *summaries: str | Reply | Exception) -> None:
        self.requests: list[Request] = []
        self.summaries = list(summaries)
        self.provider = ScriptedProvider(self.answer)

    def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        texts = [
            block["text"] for message in request.messages for block in message["content"] if block["type"] == "text"
        ]
        if any(text.startswith(SUMMARISE) for text in texts):
            summary = self.summaries.pop(0) if self.summaries else ""
            if isinstance(summary, Exception):
                raise summary
            facts = sorted({fact for text in texts for fact in re.findall(r"FACT-\d+", text)})
            return summary if isinstance(summary, Reply) else Reply(summary or " ".join(facts), usage=NOTES)
        return Reply(f"heard: {texts[-1][:20]} {LONG}", usage=Usage(1000, 10))

    @property
    def sent(self) -> str:
        """The latest request, as JSON."""
        return json.dumps(list(self.requests[-1].messages))


def talk(agent: AgentRef, *prompts: str) -> None:
    for prompt in prompts:
        agent.prompt(prompt).get(timeout=DEADLINE)


def sound(system: ActorSystem) -> None:
    """Every history is the same when it is read anew, and nothing is wrong with the database."""
    assert check(system._store) == []
    fresh = LogCache(system._store)
    assert all(
        list(fresh.load(record.uuid).visible()) == system.handle(record.uuid).history() for record in system.agents()
    )


FACTS = tuple(f"remember FACT-{number}" for number in range(6))


@pytest.mark.slow("takes a tenth of a second")
def test_a_summary_stands_for_what_was_said_and_the_next_request_knows_its_facts(database: str) -> None:
    model = Model()
    with ActorSystem.open(database, model.provider) as system:
        agent = system.root.fork(name="dba")
        talk(agent, *FACTS)
        done = agent.compact("the facts")
        assert agent.history()[0].id == done.position
        assert done.after < done.before / 2
        assert done.usage == NOTES
        asked = model.requests[-1].messages[-1]["content"][-1]["text"]
        assert asked.startswith(SUMMARISE)
        assert "This matters most: the facts" in asked
        assert "“remember FACT-5” stays verbatim" in asked
        talk(agent, "and now?")
        first, *rest = model.requests[-1].messages[0]["content"]
        assert first["text"].startswith('<summary of="messages up to ')
        assert "of agent dba" in first["text"]
        assert [block["text"] for block in rest] == ["remember FACT-5"]
        assert all(f"FACT-{number}" in model.sent for number in range(6))
        assert len(model.requests[-1].messages) == 3
        summary = agent.history()[0]
        assert summary.data["by"] == "person"
        assert summary.data["model"] == "scripted:"
        assert len(agent.history(all=True)) == done.position + 2
        sound(system)


def test_the_summariser_is_sent_the_request_of_the_agent_and_one_prompt_more() -> None:
    model = Model()
    with ActorSystem.open(":memory:", model.provider) as system:
        system.root.configure(system="Be brief.", max_tokens=7, thinking={"type": "enabled", "budget_tokens": 2000})
        talk(system.root, *FACTS)
        system.root.compact()
        before, asked = model.requests[-2:]
        assert (asked.system, asked.tools, asked.settings["thinking"]) == (
            before.system,
            before.tools,
            before.settings["thinking"],
        )
        assert asked.settings["max_tokens"] == 4_096 + 2_000
        assert list(asked.messages)[: len(before.messages)] == list(before.messages)
        assert asked.shared == 0


def test_uncompact_brings_everything_back_byte_for_byte_with_what_came_since(database: str) -> None:
    model = Model()
    with ActorSystem.open(database, model.provider) as system:
        talk(system.root, *FACTS)
        system.root.prompt("the last one").get(timeout=DEADLINE)
        before = model.sent
        system.root.compact()
        talk(system.root, "since")
        assert len(model.sent) < len(before) / 2
        position = system.root.uncompact()
        talk(system.root, "after")
        assert model.sent.startswith(before[:-1])
        assert json.loads(model.sent)[-3]["content"][0]["text"] == "since"
        assert system.root.history(all=True)[position - 1].data == {"summary": position - 3}
        with pytest.raises(NothingToUncompact):
            system.root.uncompact()
        sound(system)


@pytest.mark.slow("takes a tenth of a second")
def test_children_forked_before_and_after_see_what_was_in_force_then(database: str) -> None:
    model = Model()
    with ActorSystem.open(database, model.provider) as system:
        talk(system.root, *FACTS)
        early, twin = system.root.fork(name="early"), system.root.fork()
        sent: dict[AgentRef, str] = {}

        def asks(child: AgentRef, messages: int) -> None:
            talk(child, "go on")
            sent[child] = model.sent
            assert len(model.requests[-1].messages) == messages

        asks(twin, 13)
        system.root.compact()
        asks(early, 13)
        assert sent[early] == sent[twin], "what the parent does later changes no byte"
        late, other = system.root.fork(name="late"), system.root.fork(name="other")
        asks(late, 3)
        talk(system.root, *FACTS)
        system.root.compact()
        asks(other, 3)
        assert sent[other] == sent[late]
        assert model.requests[-1].shared == 3
        early.compact()
        talk(early, "and on")
        assert model.requests[-1].shared == 0
        long = system.root.fork(at=12)
        talk(long, "long")
        assert len(model.requests[-1].messages) == 13
        sound(system)


def test_in_a_turn_the_open_prompt_and_the_latest_step_stay_verbatim_and_no_call_loses_its_result(
    database: str,
) -> None:
    model = Model()
    asked: list[Any] = []

    @tool
    def look(step: int) -> str:
        """Look."""
        if step == 3:
            asked.append(system.root.aio.compact())
            eventually(
                lambda: len(system._actor(system.root.uuid).backlog), "the command, before the call has its result"
            )
        return f"step {step}: {LONG}"

    def answer(request: Request) -> Reply:
        texts = [
            block["text"] for message in request.messages for block in message["content"] if block["type"] == "text"
        ]
        results = [
            block for message in request.messages for block in message["content"] if block["type"] == "tool_result"
        ]
        if texts[-1].startswith(SUMMARISE):
            return Reply("looked three times")
        model.requests.append(request)
        latest = str(results[-1]["content"])[:6] if results else "step 0"
        step = int(latest[-1]) + 1
        return Reply("done") if step > 4 else Reply("", (ToolCall("look", {"step": step}, f"call_{step}"),))

    with ActorSystem.open(database, ScriptedProvider(answer), tools=[look]) as system:
        talk(system.root, "the task: FACT-1")
        assert asked[0].get(timeout=DEADLINE).position
        first = model.requests[-2].messages
        texts = [block.get("text", "") for block in first[0]["content"]]
        assert texts[1] == f"{OPEN_PROMPT}\n\nthe task: FACT-1"
        assert [block["id"] for block in first[1]["content"]] == ["call_3"]
        assert [block["tool_use_id"] for block in first[2]["content"]] == ["call_3"]
        assert system.root.reply(timeout=DEADLINE).text == "done"
        sound(system)


@pytest.mark.slow("takes a tenth of a second")
def test_a_question_to_a_person_is_never_summarised_and_the_summary_waits_for_its_answer(database: str) -> None:
    model, calls = Model(), [ToolCall("change", {"what": "the price"}, "ask")]

    @tool(policy="ask")
    def change(what: str) -> str:
        """Change something."""
        return f"changed {what}"

    def answer(request: Request) -> Reply:
        texts = [
            block["text"] for message in request.messages for block in message["content"] if block["type"] == "text"
        ]
        if texts[-1] == "change it" and calls:
            return Reply("", (calls.pop(),), "tool_use")
        return model.answer(request)

    with ActorSystem.open(database, ScriptedProvider(answer), tools=[change], approvals="ask") as system:
        talk(system.root, *FACTS)
        future = system.root.prompt("change it")
        eventually(system.approvals.pending, "the question")
        done = system.root.aio.compact()
        eventually(lambda: len(system._actor(system.root.uuid).backlog), "the command")
        assert [message.kind for message in system.root.history(all=True)].count("summary") == 0
        assert system.approvals.approve(*system.approvals.pending())
        assert done.get(timeout=DEADLINE).position
        future.get(timeout=DEADLINE)
        first, call, result = model.requests[-1].messages[-3:]
        assert [block["text"] for block in first["content"]][-1].endswith("change it"), "and no answered prompt"
        assert [(block["type"], block["id"]) for block in call["content"]] == [("tool_use", "ask")]
        assert [(block["tool_use_id"], block["content"]) for block in result["content"]] == [
            ("ask", "changed the price")
        ]
        sound(system)


def test_a_turn_that_failed_can_be_resumed_behind_a_summary_with_its_prompt() -> None:
    model = Model()
    answers: list[str | Exception] = [LONG, LONG, LONG, ProviderError("down"), "the notes", "there"]

    def answer(request: Request) -> str:
        model.requests.append(request)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        talk(system.root, "one", "two", "three")
        with pytest.raises(ProviderError, match="down"):
            talk(system.root, "four")
        system.root.compact()
        assert system.root.resume()
        assert system.root.reply(timeout=DEADLINE).text == "there"
        assert model.requests[-1].messages[-1]["content"][-1]["text"] == "four"
        sound(system)


FAILS: list[tuple[str, list[str | Reply | Exception], type[Exception], str]] = [
    ("an error", [ProviderError("overloaded")], ProviderError, "overloaded"),
    ("blank", [Reply("  ")], ProviderError, "its answer was blank"),
    ("a refusal", [Reply("I will not", stop_reason="refusal")], ProviderError, "a refusal"),
    ("too long", [LONG * 20], ProviderError, "about as long as the messages that it replaces"),
    ("cut thrice", [Reply("so ", stop_reason="max_tokens")] * 3, ProviderError, "its answer was cut"),
    ("calls", [Reply("", (ToolCall("agents"),))] * 3, ProviderError, "with calls of tools"),
]


@pytest.mark.sample(3, "replies that are no summary")
@pytest.mark.parametrize(
    ("answers", "error", "message"), [failure[1:] for failure in FAILS], ids=[failure[0] for failure in FAILS]
)
def test_where_the_model_gives_no_summary_nothing_is_changed_and_the_reason_is_told(
    answers: list[str | Reply | Exception], error: type[Exception], message: str
) -> None:
    model = Model(*answers)
    with ActorSystem.open(":memory:", model.provider) as system:
        talk(system.root, *FACTS)
        before = system.root.history(all=True)
        with pytest.raises(error, match=message):
            system.root.compact()
        assert system.root.history(all=True) == before
        talk(system.root, "go on")
        assert len(model.requests[-1].messages) == 13


def test_calls_of_the_summariser_are_denied_and_leave_no_trace() -> None:
    model = Model(Reply("", (ToolCall("agents", {}, "c1"), ToolCall("exit", {}, "c2"))), "the notes")
    with ActorSystem.open(":memory:", model.provider) as system:
        talk(system.root, *FACTS)
        system.root.compact()
        results = model.requests[-1].messages[-1]["content"]
        assert [(result["tool_use_id"], result["is_error"]) for result in results] == [("c1", True), ("c2", True)]
        assert system.root.history()[0].content == "the notes"
        assert {message.kind for message in system.root.history(all=True)} == {"user", "assistant", "summary"}


def test_calls_of_the_summariser_with_one_id_have_two_ids_in_its_next_request() -> None:
    calls = Reply("", (ToolCall("agents", {}, "c"),))
    model = Model(calls, calls, "the notes")
    with ActorSystem.open(":memory:", model.provider) as system:
        talk(system.root, *FACTS)
        system.root.compact()
        used, result, again, last = [message["content"][-1] for message in model.requests[-1].messages[-4:]]
        assert used["id"] == result["tool_use_id"] == "c"
        assert again["id"] == last["tool_use_id"] != "c"


def test_where_little_was_said_there_is_nothing_to_compact() -> None:
    with ActorSystem.open(":memory:", Model().provider) as system:
        talk(system.root, "one")
        with pytest.raises(NothingToCompact, match="too short a history"):
            system.root.compact()


def test_an_agent_whose_own_code_answers_needs_a_model_for_its_summaries() -> None:
    def code(request: Request) -> str:
        return LONG

    with ActorSystem.open(":memory:", FunctionProvider(code), providers={"notes": Model().provider}) as system:
        talk(system.root, *FACTS)
        with pytest.raises(ProviderError, match="compact_model"):
            system.root.compact()
        system.root.configure(compact_model="notes:small")
        system.root.compact()
        assert system.root.history()[0].data["model"] == "notes:small"
        assert system.root.history()[0].content == " ".join(f"FACT-{number}" for number in range(6))


def _interrupt(agent: AgentRef) -> None:
    assert agent.signal(Signal.INT)


def _kill(agent: AgentRef) -> None:
    agent.kill()


@pytest.mark.parametrize(("end", "error"), [(_interrupt, TurnInterrupted), (_kill, AgentDead)])
def test_a_summary_that_is_interrupted_or_killed_leaves_nothing_behind(
    end: Callable[[AgentRef], None], error: type[Exception]
) -> None:
    hanging = Hanging("the notes so far")
    with ActorSystem.open(":memory:", Model().provider, providers={"hanging": hanging}) as system:
        child = system.root.fork(name="child")
        talk(child, *FACTS)
        child.configure(compact_model="hanging:model")
        before = child.history(all=True)
        future = child.aio.compact()
        hanging.wait_until_asked()
        assert child.state == "compacting"
        forked = child.fork(timeout=DEADLINE)
        assert len(forked.history()) == len(before) + 1
        waits = child.aio.mark("later")
        end(child)
        with pytest.raises(error):
            future.get(timeout=DEADLINE)
        if end is _interrupt:
            assert waits.get(timeout=DEADLINE) == len(before) + 2
        assert [message.kind for message in child.history(all=True)[len(before) :]][:1] == ["fork"]
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_an_attached_process_asks_for_a_summary_and_takes_it_off(durable: str) -> None:
    model = Model()
    with ActorSystem.open(durable, model.provider) as system, AttachedSystem.open(durable) as attached:
        talk(system.root, *FACTS)
        agent = attached.handle(system.root.uuid)
        done = agent.compact(timeout=DEADLINE)
        assert (done.position, done.usage) == (13, NOTES)
        assert agent.history()[0].id == 13
        assert agent.uncompact(timeout=DEADLINE) == 14
        with pytest.raises(NothingToUncompact):
            agent.uncompact(timeout=DEADLINE)
    with closing(open_store(durable)) as store:
        assert check(store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_summary_is_there_after_a_restart_and_a_second_one_lies_over_it(durable: str) -> None:
    model = Model()
    with ActorSystem.open(durable, model.provider) as system:
        talk(system.root, *FACTS)
        first = system.root.compact().position
    with ActorSystem.open(durable, model.provider) as system:
        talk(system.root, *(f"then FACT-{number}" for number in range(6, 9)))
        assert len(model.requests[-1].messages) == 7
        second = system.root.compact().position
        talk(system.root, "now")
        assert all(f"FACT-{number}" in model.sent for number in range(9))
        assert [message.id for message in system.root.history() if message.kind == "summary"] == [second]
        system.root.uncompact()
        assert [message.id for message in system.root.history() if message.kind == "summary"] == [first]
        system.root.undo()
        system.root.undo()
        assert [message.id for message in system.root.history() if message.kind == "summary"] == [first]
        sound(system)


def limited(model: Model, window: int, refusals: list[int]) -> Callable[[Request], Reply]:
    """A model whose service refuses what is longer than so many characters."""

    def answer(request: Request) -> Reply:
        size = len(json.dumps(list(request.messages)))
        if size > window:
            refusals.append(size)
            raise ProviderError(f"prompt is too long: {size} tokens > {window} maximum")
        return model.answer(request)

    return answer


@pytest.mark.slow("takes a tenth of a second")
def test_a_request_that_is_refused_because_of_its_length_is_sent_again_behind_a_summary(database: str) -> None:
    model, refusals = Model(), list[int]()
    with ActorSystem.open(database, ScriptedProvider(limited(model, 3_000, refusals))) as system:
        system.root.configure(tools=[])  # whose descriptions would fill the window that a refusal tells
        for number in range(12):
            assert system.root.prompt(f"remember FACT-{number:02}").get(timeout=DEADLINE).text.startswith("heard")
        assert refusals
        assert all(f"FACT-{number:02}" in model.sent for number in range(12))
        kinds = [message.kind for message in system.root.history(all=True)]
        assert "error" not in kinds
        summaries = [message for message in system.root.history(all=True) if message.kind == "summary"]
        assert {summary.data["by"] for summary in summaries} == {"refusal"}
        sound(system)


class Counting(Model):
    """Tells the size of each request."""

    def answer(self, request: Request) -> Reply:
        reply = super().answer(request)
        return replace(reply, usage=Usage(size_of(request), 100))


def size_of(request: Request) -> int:
    """The tokens of a request."""
    return len(json.dumps(list(request.messages))) // 3


def summaries_of(agent: AgentRef) -> list[Message]:
    """All that it ever had."""
    return [message for message in agent.history(all=True) if message.kind == "summary"]


def shrunk(system: ActorSystem, window: list[int], prompts: int = 40, **settings: Any) -> AgentRef:
    """An agent whose history is past the window: its model takes less than it did when that was said."""
    agent = system.root.fork(name="dba")
    agent.configure(tools=[], **settings)
    talk(agent, *(f"remember FACT-{number:02}" for number in range(prompts)))
    window[0] = 3_000
    return agent


def limited_to(model: Model, window: list[int], refusals: list[int]) -> Callable[[Request], Reply]:
    """Answers as the model does, but for requests that are longer than the window is by then."""

    def answer(request: Request) -> Reply:
        size = size_of(request)
        if size > window[0]:
            refusals.append(size)
            raise ProviderError(f"prompt is too long: {size} tokens > {window[0]} maximum")
        return model.answer(request)

    return answer


@pytest.mark.sample(1, "how it is asked for")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize(
    "settings", [{}, {"compact": "off"}, {"compact": "off", "context_window": 3_000}], ids=["auto", "off", "known"]
)
def test_a_history_that_is_past_the_window_is_summarised_in_parts_when_that_is_asked_for(
    settings: dict[str, Any],
) -> None:
    model, refusals, window = Counting(), list[int](), [10**9]
    with ActorSystem.open(":memory:", ScriptedProvider(limited_to(model, window, refusals))) as system:
        agent = shrunk(system, window, **settings)
        asked = len(model.requests)
        done = agent.compact()
        parts = summaries_of(agent)
        assert len(parts) > 1
        assert {(part.data["how"], part.data["by"]) for part in parts} == {("model", "person")}
        assert (done.position, done.after) == (parts[-1].id, parts[-1].data["after"])
        assert done.before == parts[0].data["before"]
        assert done.usage is not None
        assert done.usage.input_tokens == sum(part.data["usage"]["input_tokens"] for part in parts)
        assert len(model.requests) - asked == len(parts)
        assert done.after < done.before / 5
        assert len(refusals) <= (0 if "context_window" in settings else len(parts))
        talk(agent, "and now?")
        assert all(f"FACT-{number:02}" in model.sent for number in range(40))
        for _ in parts:
            agent.uncompact()
        assert len(agent.history()) > 80
        sound(system)


def test_a_summary_that_a_person_gives_stands_for_the_past_and_asks_no_model(database: str) -> None:
    model = Model()
    with ActorSystem.open(database, model.provider) as system:
        talk(system.root, *FACTS)
        asked = len(model.requests)
        done = system.root.compact(text="They said FACT-0 to FACT-4.")
        assert (done.usage, len(model.requests)) == (None, asked)
        assert done.after < done.before
        assert system.root.history()[0].data["how"] == "given"
        talk(system.root, "and now?")
        assert "They said FACT-0 to FACT-4." in model.sent
        assert "remember FACT-3" not in model.sent
        system.root.uncompact()
        talk(system.root, "and now?")
        assert "remember FACT-3" in model.sent
        sound(system)


def test_a_summary_is_mended_in_place_and_taken_off_again(database: str) -> None:
    model = Model()
    with ActorSystem.open(database, model.provider) as system:
        talk(system.root, *FACTS)
        system.root.compact()
        kept = [message.id for message in system.root.history()[1:]]
        system.root.compact(text="As before, and the shop is called Nilgiri.")
        mended, *rest = system.root.history()
        assert (mended.content, [message.id for message in rest]) == (
            "As before, and the shop is called Nilgiri.",
            kept,
        )
        system.root.uncompact()
        assert "FACT-0" in system.root.history()[0].content
        sound(system)


def test_a_summary_of_ones_own_that_saves_nothing_is_refused_and_changes_nothing() -> None:
    with ActorSystem.open(":memory:", Model().provider) as system:
        with pytest.raises(NothingToCompact):
            system.root.compact(text="Nothing was said.")
        talk(system.root, *FACTS)
        before = system.root.history()
        for text, why in (("x" * 20_000, "give a shorter one"), (" ", "a blank one")):
            with pytest.raises(BadInput, match=why):
                system.root.compact(text=text)
        with pytest.raises(BadInput, match="one of focus"):
            system.root.compact("the facts", text="The facts.")
        assert system.root.history() == before


@pytest.mark.thorough("a history past the window; asked for by a person in each run")
def test_a_model_that_asks_for_a_summary_of_what_is_past_its_window_gets_it_in_parts() -> None:
    model, window = Model(), [10**9]
    limited = limited_to(model, window, [])

    def answer(request: Request) -> Reply:
        last = request.messages[-1]["content"][-1]
        if last["type"] == "text" and last["text"] == "full now":
            window[0] = 3_000
            return Reply(tool_calls=(ToolCall("compact", {}),))
        return limited(request)

    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        system.root.configure(compact="off", tools=["compact"])
        talk(system.root, *(f"remember FACT-{number:02}" for number in range(40)), "full now")
        assert len(summaries_of(system.root)) > 1
        assert {summary.data["by"] for summary in summaries_of(system.root)} == {"model"}
        assert all(f"FACT-{number:02}" in model.sent for number in range(40))
        sound(system)


@pytest.mark.slow("takes a tenth of a second")
def test_what_was_summarised_before_a_part_that_fails_stands_and_the_error_says_so() -> None:
    model, window = Model("the first part", "the second", ""), [10**9]
    with ActorSystem.open(":memory:", ScriptedProvider(limited_to(model, window, []))) as system:
        agent = shrunk(system, window)
        model.summaries = ["the first part", Reply("")]
        with pytest.raises(ProviderError, match=r"blank. The parts before it are summarised; /uncompact"):
            agent.compact()
        [summary] = summaries_of(agent)
        assert summary.content == "the first part"
        agent.uncompact()
        assert len(agent.history()) > 80
        sound(system)


def test_a_step_that_no_model_can_read_is_stood_for_by_its_prompt_and_the_rest_is_summarised() -> None:
    model, window = Model(), [10**9]
    with ActorSystem.open(":memory:", ScriptedProvider(limited_to(model, window, []))) as system:
        agent = shrunk(system, window, prompts=0)
        window[0] = 10**9
        talk(agent, f"a long one {'x' * 12_000}", *FACTS, *FACTS)
        window[0] = 3_000
        agent.compact()
        first, *others = summaries_of(agent)
        assert (first.data["how"], {other.data["how"] for other in others}) == ("digest", {"model"})
        assert "Prompt at 3: a long one xxx" in first.content
        talk(agent, "and now?")
        sound(system)


def test_where_no_model_can_summarise_what_is_too_long_its_prompts_stand_for_it() -> None:
    def answer(request: Request) -> Reply:
        if SUMMARISE in str(request.messages[-1]):
            raise ProviderError("no summary today")
        return limited(Model(), 4_000, [])(request)

    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        talk(system.root, *(f"remember FACT-{number:02}" for number in range(10)))
        summary = next(message for message in system.root.history() if message.kind == "summary")
        assert summary.data["how"] == "digest"
        assert "Prompt at 1: remember FACT-00" in summary.content
        sound(system)


def test_with_compact_off_a_request_that_is_too_long_ends_its_turn_with_the_error() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(limited(Model(), 2_000, []))) as system:
        system.root.configure(compact="off")
        with pytest.raises(ProviderError, match="too long"):
            talk(system.root, *FACTS)
        assert [message.kind for message in system.root.history(all=True)][-1] == "error"


def test_near_its_window_a_model_summarises_before_the_next_request(database: str) -> None:
    model = Counting()
    with ActorSystem.open(database, model.provider) as system:
        system.root.configure(context_window=3_000, compact_at=0.5, tools=[])  # the model counts messages alone
        talk(system.root, *(f"remember FACT-{number:02}" for number in range(20)))
        assert all(f"FACT-{number:02}" in model.sent for number in range(20))
        summaries = [message for message in system.root.history(all=True) if message.kind == "summary"]
        assert summaries
        assert {summary.data["by"] for summary in summaries} == {"auto"}
        sound(system)
        system.root.configure(context_window=9_000)
        system.root.uncompact()
        talk(system.root, "one more")
        assert [message.kind for message in system.root.history(all=True)][-3:] == ["uncompact", "user", "assistant"]
        system.root.configure(context_window=1_500)
        talk(system.root, "and one more")
        assert [message.kind for message in system.root.history(all=True)][-2:] == ["summary", "assistant"]
        assert size_of(model.requests[-1]) < 1_500
        sound(system)


@pytest.mark.slow("takes a tenth of a second")
def test_what_would_fill_its_window_does_not_leave_even_if_no_model_summarises_it() -> None:
    model = Counting(*[ProviderError("no summary today")] * 90)
    with ActorSystem.open(":memory:", model.provider) as system:
        system.root.configure(context_window=2_000, compact_at=1.0)
        talk(system.root, *(f"remember FACT-{number:02}" for number in range(20)))
        answered = [request for request in model.requests if SUMMARISE not in str(request.messages[-1])]
        assert len(answered) == 20
        assert max(map(size_of, answered)) <= 2_000
        assert {(summary.data["how"], summary.data["by"]) for summary in summaries_of(system.root)} == {
            ("digest", "auto")
        }
        assert "Prompt at 2: remember FACT-00" in summaries_of(system.root)[0].content
        sound(system)


def test_a_request_of_which_nothing_can_be_summarised_leaves_in_spite_of_its_size() -> None:
    model = Counting()
    with ActorSystem.open(":memory:", model.provider) as system:
        system.root.configure(context_window=200)
        talk(system.root, LONG * 3)
        assert len(model.requests) == 1


def test_a_second_summary_that_nobody_asked_for_waits_for_a_tenth_of_the_window() -> None:
    model = Counting()
    with ActorSystem.open(":memory:", model.provider) as system:
        system.root.configure(context_window=25_000, compact_at=300, tools=[])
        talk(system.root, *FACTS, *FACTS)
        [summary] = summaries_of(system.root)
        system.root.configure(context_window=5_000)
        talk(system.root, "more", "and more")
        assert summary != summaries_of(system.root)[-1]


def test_a_reply_that_fills_the_window_is_asked_for_again_behind_a_summary_and_its_tokens_count() -> None:
    model = Model()
    cut = Reply("half of", stop_reason="model_context_window_exceeded", usage=Usage(7_000, 70))

    def answer(request: Request) -> Reply:
        size = len(request.messages)
        return cut if size > 9 and SUMMARISE not in str(request.messages[-1]) else model.answer(request)

    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        talk(system.root, *FACTS)
        assert len(summaries_of(system.root)) == 1
        assert not any("half of" in message.content for message in system.root.history(all=True))
        [retried] = [message for message in system.root.history(all=True) if message.kind == "retry"]
        assert retried.data["usage"]["output_tokens"] == 70
        sound(system)
        system.root.configure(compact="off")
        with pytest.raises(ProviderError, match="window is full") as failed:
            talk(system.root, *FACTS)
        assert failed.value.partial == "half of"


class Exits(ScriptedProvider):
    """Ends the process when it is asked for a window."""

    def window(self, model: str) -> int:
        raise SystemExit(model)


def test_a_provider_that_exits_when_it_is_asked_for_a_window_is_an_error_of_the_caller() -> None:
    with (
        ActorSystem.open(":memory:", Exits(Model().answer)) as system,
        pytest.raises(ProviderError, match="its provider breaks"),
    ):
        system.root.context()


def test_a_window_is_known_by_the_setting_or_by_a_refusal_that_this_process_has_met() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(limited(Model(), 2_000, []))) as system:
        assert system.root.context().window == 0
        talk(system.root, *FACTS)
        assert system.root.context().window == 2_000
        assert system.root.fork().context().window == 2_000
        system.root.configure(context_window=3_000)
        assert system.root.context().window == 3_000
        system.root.configure(context_window=None, model="anthropic:claude-haiku-4-5-20251001")
        assert system.root.context().window == 200_000


def test_who_watches_is_told_once_in_a_turn_that_a_window_is_nearly_full() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    def answer(request: Request) -> Reply:
        called = request.messages[-1]["content"][-1]["type"] == "tool_result"
        return Reply("done" if called else LONG, () if called else (ToolCall("look"),), usage=Usage(8_500, 10))

    heard: list[Event] = []
    with ActorSystem.open(":memory:", ScriptedProvider(answer), tools=[look]) as system:
        system.root.configure(context_window=10_000, compact="off", tools=["look"])
        subscription = system.subscribe(heard.append, only=(WindowNearlyFull,))
        talk(system.root, "go", "and go")
        subscription.close()
        warnings = [event for event in heard if isinstance(event, WindowNearlyFull)]
        assert [(warning.agent_uuid, warning.window) for warning in warnings] == [(system.root.uuid, 10_000)] * 2
        assert all(warning.tokens > 8_500 for warning in warnings[1:])
        assert "of the 10,000 tokens that its model takes; /compact" in explained(warnings[0])


@pytest.mark.thorough("a second window that tools fill")
@pytest.mark.sample(1, "dozens of turns each")
@pytest.mark.parametrize(("window", "most"), [(6_000, 10), (8_192, 5)])
def test_in_a_window_that_the_tools_fill_summaries_do_not_come_with_each_prompt_and_it_is_said_once(
    window: int, most: int
) -> None:
    def answer(request: Request) -> Reply:
        size = size_of(request) + len(json.dumps(list(request.tools), default=str)) // 3
        if size > window:
            raise ProviderError(f"prompt is too long: {size} tokens > {window} maximum")
        notes = SUMMARISE in str(request.messages[-1])
        return Reply("notes " * 60 if notes else "ok " * 20, usage=Usage(size, 20))

    heard: list[Event] = []
    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        system.root.configure(context_window=window)
        subscription = system.subscribe(heard.append, only=(WindowNearlyFull,))
        talk(system.root, *["word " * 100] * 60)
        subscription.close()
        assert 0 < len(summaries_of(system.root)) <= most
        assert {summary.data["how"] for summary in summaries_of(system.root)} == {"model"}
    [warning] = [event for event in heard if isinstance(event, WindowNearlyFull)]
    assert "its system prompt and tools alone have about" in explained(warning)
    assert warning.tokens < window


@pytest.mark.slow("takes a tenth of a second")
def test_a_window_that_its_tools_fill_is_told_of_and_the_stand_in_answers_whatever_was_cut() -> None:
    heard: list[Event] = []
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        system.root.configure(context_window=1_500)
        subscription = system.subscribe(heard.append, only=(WindowNearlyFull,))
        talk(system.root, *(f"{number}: {LONG[:150]}" for number in range(40)))
        subscription.close()
        assert {message.kind for message in system.root.history()} >= {"summary", "assistant"}
    warnings = [event for event in heard if isinstance(event, WindowNearlyFull)]
    assert "its system prompt and tools alone have about" in explained(warnings[-1])


class Cold(NamedTuple):
    """An agent that has gone on after a start, of whose past no more was read than its summary shows."""

    system: ActorSystem
    store: SlowToRead
    agent: AgentRef

    def while_all_is_read(self, ask: Callable[[AgentRef], Future[Any]], until: threading.Event) -> Future[Any]:
        """Ask for what needs all of its past. When this returns that is being read, until the event is set."""
        self.store.hold(until)
        asked, inbox = ask(self.agent), self.system._actor(self.agent.uuid).actor_inbox
        eventually(lambda: inbox.held and inbox.empty() and not inbox.scheduled, "the log, which is read")
        return asked


@contextmanager
def cold(url: str) -> Iterator[Cold]:
    """Its latest prompt, the only one that its summary keeps, was taken back."""
    model = Model()
    with ActorSystem.open(url, model.provider) as system:
        child = system.root.fork(name="child")
        talk(child, *FACTS)
        child.compact()
    store = SlowToRead(open_store(url))
    with open_on(store, model.provider) as system:
        child = system.handle(child.uuid)
        child.undo()
        yield Cold(system, store, child)
    with closing(open_store(url)) as again:
        assert check(again) == []


def _undo(agent: AgentRef) -> Future[Any]:
    return agent.aio.undo()


def _uncompact(agent: AgentRef) -> Future[Any]:
    return agent.aio.uncompact()


@pytest.mark.slow("takes a tenth of a second")
def test_what_comes_while_all_of_a_log_is_read_waits_and_nothing_is_lost(durable: str) -> None:
    may_read = threading.Event()
    with cold(durable) as it:
        undone = it.while_all_is_read(_undo, may_read)
        said, marked = it.agent.prompt("and now?"), it.agent.aio.mark("here")
        interrupted = it.agent.aio.signal(Signal.INT)
        may_read.set()
        assert interrupted.get(timeout=DEADLINE)  # the prompt had not begun
        assert isinstance(said.exception(timeout=DEADLINE), TurnInterrupted)
        assert undone.get(timeout=DEADLINE) < marked.get(timeout=DEADLINE)
        assert [message.content for message in it.agent.history() if message.kind == "user"] == [*FACTS[:4], "and now?"]
        sound(it.system)


@pytest.mark.sample(1, "ends of the wait")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize(("ask", "error"), [(_undo, AgentDead), (_uncompact, None)])
def test_who_dies_or_is_closed_while_all_of_its_log_is_read_answers_who_waits(
    durable_url: NewDatabase, ask: Callable[[AgentRef], Future[Any]], error: type[Exception] | None
) -> None:
    may_read = threading.Event()
    with cold(durable_url()) as it:
        asked = it.while_all_is_read(ask, may_read)
        it.agent.aio.kill().get(timeout=DEADLINE)
        may_read.set()
        with pytest.raises(error) if error is not None else nullcontext():
            asked.get(timeout=DEADLINE)

    may_read = threading.Event()
    with cold(durable_url()) as it, ThreadPoolExecutor() as people:
        it.store.hold(may_read)
        it.system.root.aio.mark("here")
        eventually(lambda: it.store.waiting, "the reader is at another's log")
        reader = it.system._actor(it.agent.uuid).runtime.log_loader
        asked = it.while_all_is_read(ask, may_read)
        closed = people.submit(it.system.close)
        eventually(lambda: not reader.awaits(lambda: True), "the reader is told to stop")
        may_read.set()
        closed.result(DEADLINE)
        with pytest.raises(SystemClosed) if error is not None else nullcontext():
            asked.get(timeout=DEADLINE)


@pytest.mark.thorough("a log that is read behind a start, as for the undo in the test above")
def test_after_a_start_what_a_summary_stands_for_is_read_when_it_is_asked_for(durable: str) -> None:
    model = Model()
    with ActorSystem.open(durable, model.provider) as system:
        talk(system.root, *FACTS)
        system.root.compact()
        whole = len(system.root.history(all=True))
    with ActorSystem.open(durable, model.provider) as system:
        talk(system.root, "and now?")
        assert system._log_cache.in_memory() < whole
        system.root.uncompact()
        talk(system.root, "and then?")
        assert all(prompt in model.sent for prompt in (*FACTS, "and now?", "and then?"))
        sound(system)


@pytest.mark.slow("takes a tenth of a second")
def test_a_turn_that_cannot_read_all_of_its_log_says_so_once_and_is_resumed_with_nothing_lost(durable: str) -> None:
    model = Model()

    def answer(request: Request) -> Reply:
        if request.messages[-1]["content"][-1].get("text") == "look":
            return Reply("", (ToolCall("seen"),))
        return model.answer(request)

    with ActorSystem.open(durable, model.provider) as system:
        child = system.root.fork(name="trial")
        child.configure(effects={"record": [["seen", {}, "it", False]], "run": []})
        talk(child, *FACTS)
        child.compact()
    store = FaultyStore(open_store(durable))
    with open_on(store, ScriptedProvider(answer)) as system:
        child = system.handle(child.uuid)
        talk(child, "and now?")
        store.unreadable, store.unreadable_by = StoreError("The disk is gone."), "ikigai-reader"
        with pytest.raises(StoreError, match="disk is gone"):
            child.prompt("look").get(timeout=DEADLINE)
        assert child.state == "interrupted"
        store.unreadable = None
        child.resume()
        child.reply(timeout=DEADLINE)
        assert [message.kind for message in child.history()[-4:]] == ["user", "assistant", "tool_result", "assistant"]
        sound(system)
