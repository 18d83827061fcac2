"""Tokens are learned from what replies tell of their requests, and the same text is sized the same at any time."""

from collections.abc import Callable
from typing import Any

import pytest

from ikigai_actors import ActorSystem, Reply, Request, ScriptedProvider, Usage
from ikigai_actors.agent.sizes import request_tokens
from ikigai_actors.agent.turn.plan import plan_of
from ikigai_actors.agent.turn.tokens import UNTOLD, tokens_per_byte
from ikigai_actors.providers.base import SUMMARISE
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.messages.messages import Kind, Message
from tests.kit.blocking_provider import DEADLINE

KB = "x" * 1_000
MODEL = {"model": "m:1"}

Said = tuple[str, str, dict[str, Any]]


def prompt(text: str = KB, **data: Any) -> Said:
    return Kind.USER, text, data


def reply(read: int, text: str = KB, **data: Any) -> Said:
    return Kind.ASSISTANT, text, {**MODEL, "usage": {"input_tokens": read - 10, "cache_read_input_tokens": 10}, **data}


def log_of(*said: Said) -> Log:
    messages = [Message("a", place, kind, text, data, 0) for place, (kind, text, data) in enumerate(said, start=1)]
    return Log("a", 0, None, messages)


def learned(*said: Said) -> float:
    log = log_of(*said)
    return tokens_per_byte(log, log.head)


PICTURE: dict[str, Any] = {"attached": [{"sha256": "0" * 64, "media": "image/png", "size": 1, "name": "x"}]}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([], UNTOLD),
        ([prompt(), reply(5_000)], UNTOLD),  # of which how many are the tools' nobody tells
        ([prompt(), reply(5_000), prompt(), reply(5_500)], 0.25),
        ([prompt(), reply(5_000), prompt(), reply(5_500), prompt(KB * 40)], 0.25),
        ([prompt(), reply(5_000), prompt(), reply(5_500), prompt(), reply(6_600)], 0.4),
        ([prompt(), reply(5_000), prompt(KB * 40), reply(15_250), prompt(), reply(16_000)], 0.2558),
        ([prompt(), reply(0), prompt(KB * 40), reply(10_000), prompt(KB * 40), reply(14_100, usage=None)], UNTOLD),
        ([prompt(), reply(5_000), prompt(), reply(5_001)], 0.15),
        ([prompt(), reply(5_000), prompt(), reply(9_000)], 0.6),
        ([prompt(), reply(5_000), prompt(), reply(5_000)], UNTOLD),
        ([prompt(), reply(5_000, "x"), prompt("x"), reply(5_003)], UNTOLD),
        ([prompt(), reply(5_000), prompt(), reply(5_500, model="m:2")], UNTOLD),
        ([prompt(), reply(5_000), prompt(**PICTURE), reply(7_500)], UNTOLD),
        ([prompt(), reply(5_000), (Kind.CONFIGURE, "", {"tools": []}), prompt(), reply(5_500)], UNTOLD),
        ([prompt(), reply(5_000), (Kind.SUMMARY, "s", {"keep_from": 2}), prompt(), reply(5_500)], UNTOLD),
        ([prompt(), reply(5_000), prompt(), reply(5_500), (Kind.SUMMARY, "", {"elide": 4}), prompt()], 0.25),
    ],
)
def test_two_replies_of_a_model_tell_the_tokens_of_what_was_said_between(said: list[Said], expected: float) -> None:
    assert learned(*said) == expected


def test_a_long_result_that_is_shown_by_reference_counts_as_one() -> None:
    result: Said = (Kind.TOOL_RESULT, KB * 40, {"tool_use_id": "1"})
    elided: Said = (Kind.SUMMARY, "", {"elide": 5})
    learned_from = reply(5_000, KB * 4, tool_calls=[{"id": "1", "name": "f", "input": {}}])
    assert learned(prompt(), learned_from, result, elided, prompt(), reply(6_265)) == UNTOLD
    assert learned(elided, prompt(), learned_from, result, prompt(), reply(6_265)) == 0.25
    again = reply(6_265, KB), prompt(), reply(6_765)
    assert learned(prompt(), learned_from, result, elided, prompt(), *again) == 0.25


def test_behind_a_summary_its_sizes_go_on_until_replies_tell_others() -> None:
    before = prompt(), reply(5_000), prompt(), reply(5_500), prompt(), reply(6_000)
    log = log_of(*before)
    plan = plan_of(log, log.head, 0)
    assert plan is not None
    assert plan.tokens_per_byte == 0.25
    assert plan.replaced + plan.kept == 6 * 251
    summary = (Kind.SUMMARY, KB, {"keep_from": 7, "tokens_per_byte": 0.25})
    assert learned(*before, summary, prompt()) == 0.25
    assert learned(*before, summary, prompt(), reply(700)) == 0.25
    assert learned(*before, summary, prompt(), reply(700), prompt(), reply(1_500)) == 0.4
    log = log_of(*before, summary, prompt())
    assert request_tokens(log, log.head, "m:1") == -(-(251 + 251) * 11 // 10)


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize(
    ("text", "tokens"), [("word " * 150, lambda size: size // 4), ("字" * 250, lambda size: size // 2)]
)
def test_a_request_is_sized_by_what_its_model_has_told_before_a_restart_and_after(
    durable: str, text: str, tokens: Callable[[int], int]
) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Reply:
        size = sum(len(block["text"].encode()) for message in request.messages for block in message["content"])
        if size > 9_000:
            asked.append(request)
        return Reply(text, usage=Usage(2_000 + tokens(size), 10))

    provider = ScriptedProvider(answer)
    sizes = []
    for _ in range(2):
        with ActorSystem.open(durable, provider) as system:
            for _ in range(3):
                system.root.prompt(text).get(timeout=DEADLINE)
            log = system._log_cache.load(system.root.uuid)
            sizes.append(tokens_per_byte(log, log.head))
    with ActorSystem.open(durable, provider) as system:
        log = system._log_cache.load(system.root.uuid)
        assert tokens_per_byte(log, log.head) == sizes[-1]
    assert sizes == pytest.approx([tokens(10_000) / 10_000] * 2, abs=0.002)
    assert not any(SUMMARISE in str(request.messages[-1]) for request in asked)
