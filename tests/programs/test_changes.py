"""Changed programs: what follows where a function does something else than the log of its turn holds."""

import re
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, ProviderError
from ikigai_actors.programs import Program, program, step
from ikigai_actors.records.fsck.check import check
from tests.kit.blocking_provider import DEADLINE

DONE: list[str] = []
AGE = ["old"]
"""Which of its versions the program is in now."""


@pytest.fixture(autouse=True)
def young() -> None:
    DONE.clear()
    AGE[:] = ["old"]


def do(what: str) -> str:
    DONE.append(what)
    return what


def work(task: str) -> str:
    if AGE[0] == "new":
        first = step(do, "before")
    else:
        first = step(do, "a")
        step(do, "b")
        raise ValueError("not yet")
    return f"{first} {step(do, 'b')}"


def lead(way: str = "fail") -> Program:
    made = program(work, on_change=way)
    made.name = "lead"
    return made


def failed(system: ActorSystem) -> AgentRef:
    """An agent whose turn has failed with two steps in its log; its program is another one since."""
    boss = system.root.fork(name="boss", model="lead")
    with pytest.raises(ProviderError, match="not yet"):
        boss.prompt("go").get(timeout=DEADLINE)
    AGE[:] = ["new"]
    return boss


def texts(boss: AgentRef) -> list[str]:
    return [message.content for message in boss.history() if message.kind == "assistant" and message.content]


@pytest.mark.parametrize("whose", ["program", "turn"])
@pytest.mark.parametrize(
    ("way", "done", "text"),
    [
        ("go_on", ["a", "b", "before"], r"goes on\. Nothing has asked yet for step\(do, \"a\"\) at message \d+, step"),
        ("restart", ["a", "b", "before", "b"], "begins again"),
    ],
)
def test_a_changed_program_goes_on_or_begins_again_where_it_or_the_turn_says_so(
    durable: str, whose: str, way: str, done: list[str], text: str
) -> None:
    options: dict[str, Any] = {"on_change": way} if whose == "turn" else {}
    with ActorSystem.open(durable, "offline", programs=[lead("fail" if options else way)]) as system:
        boss = failed(system)
        assert boss.resume(**options)
        assert boss.reply(timeout=DEADLINE).text == "before b"
        assert done == DONE
        assert any(re.search(text, line) for line in texts(boss))
        assert check(system._store) == []


def test_a_changed_program_fails_by_default_and_another_resumption_decides(durable: str) -> None:
    with ActorSystem.open(durable, "offline", programs=[lead()]) as system:
        boss = failed(system)
        boss.resume()
        with pytest.raises(ProviderError, match=r'line \d+ asks for step\(do, "before"\), which this turn'):
            boss.reply(timeout=DEADLINE)
        assert DONE == ["a", "b"]
        assert boss.resume(on_change="go_on")
        assert boss.reply(timeout=DEADLINE).text == "before b"


def test_a_way_that_is_none_is_refused_before_anything_is_written() -> None:
    with pytest.raises(BadInput, match="Expected on_change to be one of fail, go_on, restart; got 'hope'"):
        program(work, on_change="hope")
    with ActorSystem.open(":memory:", "offline", programs=[lead()]) as system:
        head = system.root.record
        with pytest.raises(BadInput, match="on_change"):
            system.root.resume(on_change="hope")
        assert system.root.record == head


def test_a_decorator_takes_the_way_and_a_version_is_that_of_the_syntax_tree() -> None:
    @program(on_change="restart")
    def named(task: str) -> str:
        return "tea"

    def same(task: str) -> str:  # a comment, and other layout
        return (
            "tea"
        )  # fmt: skip

    def other(task: str) -> str:
        return "coffee"

    same.__name__ = other.__name__ = "named"
    assert (named.name, named.on_change) == ("named", "restart")
    assert program(other).version != program(same).version
