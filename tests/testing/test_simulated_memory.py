"""Summaries and merges in a simulation: once or not at all, at whichever commit the process ends."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from ikigai_actors import AgentRef, ProviderError, Reply, Request, ScriptedProvider, ToolCall
from ikigai_actors.providers.base import REPORT, SUMMARISE
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.testing import CrashPoint, ProcessCrashed, Simulation, simulated

pytestmark = pytest.mark.slow("dozens of simulated hosts")

FACT = "The key lies under the third stone."
CHATTER = "so many words about it that there is something to save " * 10


def answer(request: Request) -> Reply:
    """Calls what a prompt asks for, then words; notes for who asks for them."""
    texts = [block["text"] for message in request.messages for block in message["content"] if block["type"] == "text"]
    last = [block["text"] for block in request.messages[-1]["content"] if block["type"] == "text"]
    if last and last[-1].startswith(REPORT):
        return Reply("it dug")
    if last and last[-1].startswith(SUMMARISE):
        return Reply(f"notes: {FACT}" if any(FACT in text for text in texts) else "notes: nothing")
    match last[-1].split() if last else []:
        case ["merge", how]:
            return Reply("", (ToolCall("merge", {"agent": "kid", "how": how}, "1"),), "tool_use")
        case ["compact"]:
            return Reply("", (ToolCall("compact", {}, "1"),), "tool_use")
        case ["refuse"] if not any(text.startswith("<summary ") for text in texts):
            raise ProviderError("prompt is too long: 900 tokens > 500 maximum", free=True)
    return Reply("done" if len(texts) > 3 else f"done: {CHATTER}")


class Verb(NamedTuple):
    """What is done, and what it leaves."""

    begin: Callable[[AgentRef], object]
    kind: str
    """The kind of message that is written once, or not at all."""
    texts: set[str]
    """What its content is."""
    settings: Mapping[str, Any] = {}
    rounds: int = 1
    """How many messages of the kind it takes, each whole in itself."""


def by_prompt(text: str, kind: str, content: str, rounds: int = 1, **settings: Any) -> Verb:
    """What a turn does."""
    return Verb(lambda agent: agent.prompt(text), kind, {content}, settings, rounds)


NOTES = f"notes: {FACT}"

VERBS: Mapping[str, Verb] = {
    "compact": Verb(lambda agent: agent.compact("the key"), "summary", {NOTES}),
    "compact by a model": by_prompt("compact", "summary", NOTES),
    "compact near the window": by_prompt("go on", "summary", NOTES, context_window=1_200, tools=[]),
    "compact after a refusal": by_prompt("refuse", "summary", NOTES, 3),
    "uncompact": Verb(lambda agent: agent.uncompact(), "uncompact", {""}),
    "merge the result": Verb(lambda agent: agent.merge("kid"), "merge", {"done"}),
    "merge by a model": by_prompt("merge result", "merge", "done"),
    "merge a report by a model": by_prompt("merge summary", "merge", "it dug"),
}


def prepared(world: Simulation, verb: Verb) -> AgentRef:
    """Agent 0, which was told a fact and has a child."""
    root = world.open(ScriptedProvider(answer)).root
    root.prompt(FACT).get()
    for text in ("one", "two", "three"):
        root.prompt(f"{text} {CHATTER}").get()
    root.fork("dig", name="kid").reply()
    if verb.kind == "uncompact":
        root.compact()
    if verb.settings:
        root.configure(**verb.settings)
    world.settle()
    return root


@pytest.mark.sample(2, "an event each")
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.thorough("each commit; every run has a fifth"))])
@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("committed", [False, True])
def test_it_happens_once_or_not_at_all_at_whichever_commit_the_process_ends(
    name: str, committed: bool, step: int
) -> None:
    verb = VERBS[name]
    outcomes = set[int]()
    for commit in range(1, 20, step):
        with simulated() as world:
            root = prepared(world, verb)
            before = [message.id for message in root.history(all=True)]
            world.crash_at(CrashPoint(commit, committed))
            crashed = False
            try:
                verb.begin(root)
                world.settle()
            except ProcessCrashed:
                crashed = True
                world.recover()
                world.settle()
            root = world.system.root
            new = [message for message in root.history(all=True) if message.id not in before]
            written = [message.content for message in new if message.kind == verb.kind]
            outcomes.add(len(written))
            assert {*written} <= verb.texts
            assert len(written) <= verb.rounds
            if any(message.kind == "user" for message in new):
                assert written  # what a refusal told of the window is lost: fewer rounds may do
                assert root.reply().text.startswith("done")
            assert list(LogCache(world.process.looked_at).load(root.uuid).visible()) == root.history()
            assert len(world.system.agents()) == 2
            assert check(world.process.looked_at) == []
            if not crashed:  # there was no such commit
                assert len(written) == verb.rounds
                assert committed or 0 in outcomes
                return
            root.prompt("where is the key?").get()
            assert FACT in json.dumps(list(world.requests[-1].messages))
    raise AssertionError("It never came to rest.")
