"""Tools that a model finds: the set is a part of the history as it is shown, and of nothing else."""

from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, FunctionProvider, Reply, Request, ScriptedProvider, ToolCall, Usage
from ikigai_actors.agent.turn.found_tools import ALWAYS_THERE, TOOL_GROUPS
from ikigai_actors.behaviour import recorded, replay
from ikigai_actors.providers.base import FIND_TOOLS, SUMMARISE
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing.simulation.messages_api import violations
from tests.agent.turn.test_assembly import wire
from tests.kit.blocking_provider import DEADLINE

DOCUMENTS, TIMERS = (tuple(TOOL_GROUPS[name]) for name in ("documents", "timers"))
SHARE, REMIND = "find share a document", "find remind me tomorrow"
LONG = "so many words that a summary pays " * 60


class Finder:
    """A model that does what it is told: ``find …`` looks for tools, ``call NAME`` calls one."""

    def __init__(self, by_reference: bool = False) -> None:
        self.requests: list[Request] = []
        self.provider = ScriptedProvider(self.answer)
        if by_reference:
            self.provider.refers_to_tools = lambda model: True  # type: ignore[attr-defined]

    def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        assert violations({**wire(request), "model": "any", "tools": list(request.tools)}) == []
        last = request.messages[-1]["content"][-1]
        text = str(last.get("text", "")) if last["type"] == "text" else ""
        if text.startswith(SUMMARISE):
            return Reply("notes")
        word, _, rest = text.partition(" ")
        if word == "find":
            return Reply(tool_calls=(ToolCall(FIND_TOOLS, {"query": rest}, f"call{len(self.requests)}"),))
        if word == "call":
            return Reply(tool_calls=(ToolCall(rest, {}, f"call{len(self.requests)}"),))
        return Reply("ok")

    @property
    def sent(self) -> list[str]:
        """The names of the tools of the latest request, those apart that are loaded later."""
        return [tool["name"] for tool in self.requests[-1].tools if not tool.get("defer_loading")]


def say(agent: AgentRef, *prompts: str) -> None:
    for prompt in prompts:
        agent.prompt(prompt).get(timeout=DEADLINE)


def results(agent: AgentRef) -> list[str]:
    return [message.content for message in agent.history() if message.kind == "tool_result"]


def finding(system: ActorSystem) -> AgentRef:
    agent = system.root.fork(name="finder")
    agent.configure(defer="on")
    return agent


def test_a_find_appends_a_fork_has_it_too_and_an_undo_takes_it_away(database: str) -> None:
    model = Finder()
    with ActorSystem.open(database, model.provider) as system:
        agent = finding(system)
        say(agent, "hi")
        first = model.sent
        assert first == sorted(ALWAYS_THERE)
        say(agent, SHARE)
        assert model.sent == [*first, *DOCUMENTS]
        assert results(agent) == [f"From your next step on you have {', '.join(DOCUMENTS)}."]
        say(agent, REMIND, SHARE)
        assert model.sent == [*first, *DOCUMENTS, *TIMERS]
        assert results(agent)[-1] == f"You have these already: {', '.join(DOCUMENTS)}."
        assert [tool["name"] for tool in agent.tools()] == model.sent
        child = agent.fork("hi")
        child.reply(timeout=DEADLINE)
        assert model.sent == [*first, *DOCUMENTS, *TIMERS]
        agent.undo()
        agent.undo()
        say(agent, "hi")
        assert model.sent == [*first, *DOCUMENTS]
        agent.undo()
        agent.undo()
        say(agent, "hi")
        assert model.sent == first
        say(child, "hi")
        assert model.sent == [*first, *DOCUMENTS, *TIMERS]
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_what_was_found_is_the_same_after_a_restart_and_after_summaries(durable: str) -> None:
    model = Finder()
    with ActorSystem.open(durable, model.provider) as system:
        agent = finding(system)
        say(agent, SHARE, *[f"{number} {LONG}" for number in range(8)])
        before = model.sent
        agent.compact("all of it")
        say(agent, "hi")
        assert model.sent == [*sorted(ALWAYS_THERE), "recall", *DOCUMENTS]
        say(agent, REMIND, *[f"{number} {LONG}" for number in range(8)])
        after = model.sent
        assert after == [*sorted(ALWAYS_THERE), "recall", *DOCUMENTS, *TIMERS]
        agent.compact("all of it")
        say(agent, "hi")
        assert model.sent == after
    with ActorSystem.open(durable, model.provider) as system:
        agent = system.agent("finder")
        say(agent, "hi")
        assert model.sent == after
        agent.uncompact()
        agent.uncompact()
        say(agent, "hi")
        assert model.sent == [*before, *TIMERS]
        assert check(system._store) == []


def test_a_tool_that_was_not_found_runs_all_the_same(database: str) -> None:
    model = Finder()
    with ActorSystem.open(database, model.provider) as system:
        agent = finding(system)
        say(agent, "call document_list", "find zebra crossings")
        assert results(agent) == [
            "No documents.",
            "No further tool fits that. Ask with other words, or do without.",
        ]
        assert model.sent == sorted(ALWAYS_THERE)


def test_a_service_that_loads_by_reference_has_all_tools_and_each_once_until_one_is_gone() -> None:
    model = Finder(by_reference=True)
    with ActorSystem.open(":memory:", model.provider) as system:
        agent = system.root
        say(agent, SHARE)
        request = model.requests[-1]
        later = {tool["name"] for tool in request.tools if tool.get("defer_loading")}
        assert model.sent == sorted(ALWAYS_THERE)
        assert {*DOCUMENTS, *TIMERS} <= later
        assert references(request) == [*DOCUMENTS]
        tools = request.tools
        say(agent, REMIND)
        assert model.requests[-1].tools == tools
        assert list(model.requests[-1].messages)[: len(request.messages)] == list(request.messages)
        say(agent, *[f"{number} {LONG}" for number in range(8)])
        agent.compact("all of it")
        say(agent, "hi")
        assert model.sent == [*sorted(ALWAYS_THERE), "recall", *DOCUMENTS, *TIMERS]
        assert references(model.requests[-1]) == []
        agent.configure(defer="off")
        say(agent, "hi")
        assert not any(tool.get("defer_loading") for tool in model.requests[-1].tools)


def references(request: Request) -> list[str]:
    parts: list[Any] = [block.get("content") for message in request.messages for block in message["content"]]
    return [block["tool_name"] for part in parts if isinstance(part, list) for block in part if "tool_name" in block]


@pytest.mark.parametrize("by_reference", [False, True])
def test_a_strict_budget_holds_the_descriptions_of_the_tools_that_were_found(by_reference: bool) -> None:
    held: list[float] = []

    def answer(request: Request) -> Reply:
        budget = system.root.budget
        assert budget is not None
        held.append(budget.held["tokens"])
        return Reply(tool_calls=calls.pop(0) if calls else (), text="ok", usage=Usage(10, 1))

    provider = FunctionProvider(answer)
    provider.counts = True
    provider.own_code = False
    provider.refers_to_tools = lambda model: by_reference  # type: ignore[attr-defined]
    calls: list[tuple[ToolCall, ...]] = [
        (ToolCall(FIND_TOOLS, {"query": "zebra"}, "1"),),
        (ToolCall(FIND_TOOLS, {"query": "share a document"}, "2"),),
    ]
    with ActorSystem.open(":memory:", provider, budget={"tokens": 500_000, "strict": True}) as system:
        system.root.configure(defer="on")
        say(system.root, "hi")
    first, nothing, documents = held
    assert nothing < first  # the whole of the first is held; then what was added
    assert documents - nothing > 1_600


def test_a_replay_finds_what_the_agent_found() -> None:
    model = Finder()
    with ActorSystem.open(":memory:", model.provider) as system:
        agent = finding(system)
        say(agent, SHARE)
        sent = model.sent
        again = replay(recorded(agent))
        assert model.sent == sent == [*sorted(ALWAYS_THERE), *DOCUMENTS]
        assert again
