"""Elision and what models do about their own past: long results by reference, `recall`, and `compact` as a call."""

import json
from itertools import pairwise
from typing import Any

import pytest

from ikigai_actors import ActorSystem, ProviderError, Reply, Request, ScriptedProvider, ToolCall, Usage, tool
from ikigai_actors.providers.base import SUMMARISE
from ikigai_actors.records.fsck.check import check
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.system.test_compaction import Model, sound, summaries_of, talk

PAGE = 9_000
"""Characters of what the tool `look` gives."""


@tool
def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}: " + "x" * PAGE


def results_in(request: Request) -> list[str]:
    """The texts of the results in a request."""
    blocks = [block for message in request.messages for block in message["content"]]
    texts = [block["content"] for block in blocks if block["type"] == "tool_result"]
    return [text if isinstance(text, str) else "".join(part.get("text", "") for part in text) for text in texts]


class Looking:
    """A model that looks at one page after another, calls what it is told to, and then answers."""

    def __init__(self, pages: int, *calls: ToolCall, refused: int | None = None) -> None:
        self.requests: list[Request] = []
        self._pages, self._calls, self.refused = pages, list(calls), refused
        self.provider = ScriptedProvider(self.answer)

    def answer(self, request: Request) -> Reply:
        texts = [
            block["text"] for message in request.messages for block in message["content"] if block["type"] == "text"
        ]
        if texts[-1].startswith(SUMMARISE):
            return Reply("the notes")
        size = len(json.dumps(list(request.messages))) // 3
        if self.refused is not None and size > self.refused:
            raise ProviderError(f"prompt is too long: {size} tokens > {self.refused} maximum")
        self.requests.append(request)
        usage, step = Usage(size, 10), len(self.requests)
        if step <= self._pages:
            return Reply("", (ToolCall("look", {"page": step}, f"look_{step}"),), usage=usage)
        if self._calls:
            return Reply("", (self._calls.pop(0),), usage=usage)
        return Reply("done", usage=usage)


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(2, "a database and a window each")
@pytest.mark.parametrize("refused", [None, 12_000])
def test_long_results_are_shown_by_reference_where_that_is_enough_and_no_model_is_asked(
    database: str, refused: int | None
) -> None:
    recall = ToolCall("recall", {"message": 5}, "r")
    model = Looking(4, recall, refused=refused)
    with ActorSystem.open(database, model.provider, tools=[look]) as system:
        if refused is None:
            system.root.configure(context_window=20_000, compact_at=11_000)
        else:
            system.root.mark()  # so that positions are the same
        talk(system.root, "look at four pages")
        [elided] = summaries_of(system.root)
        assert (elided.content, elided.data["how"]) == ("", "elide")
        assert elided.data["by"] == ("auto" if refused is None else "refusal")
        assert elided.data["after"] < 0.7 * elided.data["before"]
        before, *_, last = model.requests[3:]
        assert results_in(before)[0].startswith("page 1: xxx")
        assert results_in(last)[:3] == [f"(9 KB; message {place}: recall({place}) shows it)" for place in (5, 8, 11)]
        assert results_in(last)[3].startswith("page 4: xxx")
        assert results_in(last)[4].startswith("page 1: xxx")
        model.refused = None
        system.root.configure(context_window=100_000)
        system.root.uncompact()
        talk(system.root, "again")
        assert results_in(model.requests[-1])[0].startswith("page 1: xxx")
        sound(system)


def test_the_latest_step_is_shown_by_reference_only_where_nothing_else_would_do(database: str) -> None:
    model = Looking(1, ToolCall("recall", {"message": 5}, "r"))
    with ActorSystem.open(database, model.provider, tools=[look]) as system:
        system.root.configure(context_window=2_000, tools=["look", "recall"])
        talk(system.root, "look at a page")
        assert results_in(model.requests[1]) == ["(9 KB; message 5: recall(5) shows it)"]
        assert results_in(model.requests[2])[1] == "(9 KB; message 5: recall(5) shows it)"
        sound(system)


def test_what_cannot_be_recalled_is_summarised_and_not_shown_by_reference() -> None:
    model = Looking(4)
    with ActorSystem.open(":memory:", model.provider, tools=[look]) as system:
        system.root.configure(context_window=20_000, compact_at=11_000, tools=["look"])
        talk(system.root, "look at four pages")
        assert [summary.content for summary in summaries_of(system.root)] == ["the notes"]


def recalled(system: ActorSystem, *positions: dict[str, Any]) -> list[str]:
    """What agent 0 is told when its model recalls."""
    start = len(system.root.history(all=True))
    for position in positions:
        talk(system.root, f"recall {json.dumps(position)}")
    return [message.content for message in system.root.history(all=True)[start:] if message.kind == "tool_result"]


def recalling(request: Request) -> Reply:
    """Calls recall as the latest prompt says."""
    latest = request.messages[-1]["content"][-1]
    text = latest.get("text", "")
    if text.startswith(SUMMARISE):
        return Reply("the notes")
    if text.startswith("recall "):
        return Reply("", (ToolCall("recall", json.loads(text[7:]), f"c{len(request.messages)}"),))
    return Reply("heard")


@pytest.mark.slow("takes a tenth of a second")
def test_recall_shows_what_a_summary_stands_for_and_nothing_that_was_cleared_or_taken_back(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(recalling)) as system:
        talk(system.root, "cleared: SECRET-1")
        system.root.clear()
        talk(system.root, "the first")
        system.root.mark()
        talk(system.root, "taken back: SECRET-2", "and this")
        system.root.rewind()
        talk(system.root, "the second" + " so long" * 20, "the third" + " so long" * 20, "the fourth" + " so long" * 20)
        system.root.compact()
        places = {message.content[:10]: message.id for message in system.root.history(all=True)}
        wanted = [places[text] for text in ("the first", "the second", "cleared: S", "taken back")]
        first, second, cleared, rewound, *wrong = recalled(
            system,
            *({"message": place} for place in wanted),
            {"message": 999},
            {"message": 3},
            {"message": 1, "offset": -1},
        )
        assert first == "the first"
        assert second.startswith("the second so long")
        assert "SECRET" not in cleared + rewound
        assert "cleared or taken back" in cleared
        assert "There is no message 999: your history has messages 1 to " in wrong[0]
        assert "offset to be 0 or more" in wrong[2]
        child = system.root.fork("recall " + json.dumps({"message": wanted[0]}))
        child.reply(timeout=DEADLINE)
        assert [message.content for message in child.history() if message.kind == "tool_result"][-1] == "the first"
        assert check(system._store) == []


def test_a_message_that_is_too_long_for_one_result_is_recalled_in_parts(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(recalling)) as system:
        long = "".join(f"{number:05}" for number in range(30_000))
        talk(system.root, long)
        [part] = recalled(system, {"message": 1})
        offset = int(part.partition("offset=")[2].partition(")")[0])
        assert part.partition("\n[cut")[0] == long[:offset]
        [part] = recalled(system, {"message": 1, "offset": offset})
        assert part.startswith(long[offset : offset + 100])


def compacting(*calls: ToolCall) -> Model:
    """A model that makes these calls, in one reply, when it is prompted to compact."""
    model = Model()

    def answer(request: Request) -> Reply:
        latest = request.messages[-1]["content"][-1]
        reply = model.answer(request)
        return Reply("", calls) if latest.get("text") == "compact yourself" else reply

    model.provider = ScriptedProvider(answer)
    return model


@pytest.mark.slow("takes a tenth of a second")
def test_a_model_has_its_past_summarised_by_a_call_before_its_next_step(database: str) -> None:
    model = compacting(ToolCall("compact", {"focus": "the facts"}, "a"), ToolCall("rename", {"name": "me"}, "b"))
    with ActorSystem.open(database, model.provider) as system:
        talk(system.root, *(f"remember FACT-{number}" for number in range(6)), "compact yourself")
        [summary] = summaries_of(system.root)
        assert (summary.data["by"], summary.data["focus"]) == ("model", "the facts")
        before, asked, after = model.requests[-3:]
        assert len(before.messages) == 13
        assert "This matters most: the facts" in str(asked.messages[-1])
        assert len(after.messages) < 6
        assert results_in(after) == ["Your history is summarised before your next step.", "Your name is me now."]
        assert all(f"FACT-{number}" in model.sent for number in range(6))
        talk(system.root, "and on")
        assert len(summaries_of(system.root)) == 1
        sound(system)


def test_where_no_summary_comes_of_its_call_the_turn_of_a_model_goes_on_with_all(database: str) -> None:
    model = compacting(ToolCall("compact", {}, "a"))
    model.summaries = [ProviderError("no summary today")]
    with ActorSystem.open(database, model.provider) as system:
        talk(system.root, "compact yourself")  # too little is there
        talk(system.root, *(f"remember FACT-{number}" for number in range(6)), "compact yourself")
        assert len(model.requests[-1].messages) == 19
        assert summaries_of(system.root) == []
        assert [message.kind for message in system.root.history()][-2:] == ["tool_result", "assistant"]
        sound(system)


@pytest.mark.slow("takes a tenth of a second")
def test_a_summary_that_did_not_come_is_asked_for_again_when_a_good_deal_more_was_said() -> None:
    model = Model(*[ProviderError("no summary today")] * 99)
    asked: list[int] = []

    def answer(request: Request) -> Reply:
        size = len(json.dumps(list(request.messages))) // 3
        if SUMMARISE in str(request.messages[-1]):
            asked.append(size)
        return Reply(model.answer(request).text, usage=Usage(size, 10))

    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        system.root.configure(context_window=10_000, compact_at=2_000)
        talk(system.root, *(f"prompt {number}" for number in range(14)))
        assert len(asked) > 1
        assert all(later - earlier > 300 for earlier, later in pairwise(asked))


@pytest.mark.slow("takes a tenth of a second")
def test_a_summary_that_a_model_has_asked_for_comes_first_after_a_restart(durable: str) -> None:
    hanging, model = Hanging("the notes so far"), compacting(ToolCall("compact", {"focus": "the facts"}, "a"))
    with ActorSystem.open(durable, model.provider, providers={"notes": hanging}) as system:
        system.root.configure(compact_model="notes:m")
        talk(system.root, *(f"remember FACT-{number}" for number in range(6)))
        system.root.prompt("compact yourself")
        hanging.wait_until_asked()
    again = Model()
    with ActorSystem.open(durable, again.provider, providers={"notes": again.provider}, resume=False) as system:
        assert system.root.resume()
        system.root.reply(timeout=DEADLINE)
        asked, went_on = again.requests
        assert "This matters most: the facts" in str(asked.messages[-1])
        assert len(went_on.messages) < 6
        assert len(summaries_of(system.root)) == 1
        sound(system)
