"""What the log says of agents that crash: one line for each decision, with the frames of the user's code."""

import asyncio
import json
import logging
import traceback

import pytest

from ikigai_actors import ActorSystem, AgentDead, Budget, FunctionProvider, Request, ScriptedProvider
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.system.host.crash_log import span, users_frames
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually

REASON = "LookupError: no tea for buyer"


def buy(name: str) -> str:
    raise LookupError(f"no tea\nfor {name}")


def shop(*failing: str) -> FunctionProvider:
    """Agents of which these crash, each time when they are first asked in a turn."""
    asked: list[tuple[str, str]] = []

    def work(request: Request) -> str:
        turn = (request.name or "", str(request.messages))
        if request.name in failing and turn not in asked:
            asked.append(turn)
            buy(request.name)
        return "bought"

    return FunctionProvider(work)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def functions(record: logging.LogRecord) -> list[str]:
    assert record.exc_info is not None
    return [frame.name for frame in traceback.extract_tb(record.exc_info[2])]


def test_a_restart_is_one_line_with_the_frames_of_the_users_code_and_whole_at_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "ikigai_actors")
    with ActorSystem.open(":memory:", shop("buyer")) as system:
        lead = system.root.fork(name="lead")
        buyer = lead.fork(name="buyer")
        for text in ("go", "and again"):
            buyer.prompt(text).get(timeout=DEADLINE)
    assert said(caplog) == [
        f"buyer restarted by lead: {REASON} (1 of 3 in 10 min)",
        f"buyer restarted by lead: {REASON} (2 of 3 in 10 min)",
    ]
    [line, *_] = [record for record in caplog.records if record.levelno == logging.WARNING]
    [whole, *_] = [record for record in caplog.records if record.levelno == logging.DEBUG and record.exc_info]
    assert functions(line) == ["work", "buy"]
    assert functions(whole)[-2:] == ["work", "buy"]
    assert len(functions(whole)) > 2


def test_a_supervisor_that_gives_up_and_an_agent_that_dies_are_one_line_each(caplog: pytest.LogCaptureFixture) -> None:
    with ActorSystem.open(":memory:", shop("buyer", "once")) as system:
        lead = system.root.fork(name="lead")
        lead.supervise(intensity=0, period=1.5)
        buyer = lead.fork(name="buyer")
        buyer.prompt("go").get(timeout=DEADLINE)
        with pytest.raises(AgentDead):
            system.root.fork(name="once", restart="temporary").prompt("go").get(timeout=DEADLINE)
        eventually(lambda: len(said(caplog)) == 3, "the line of the death")
        root = words_of(system.root.uuid)
    assert said(caplog) == [
        f"lead gave up: buyer failed too often (more than 0 in 1.5 s): {REASON}",
        f"lead restarted by {root}: gave up: buyer failed too often: {REASON} (1 of 3 in 10 min)",
        "once is dead: crashed: LookupError: no tea for once",
    ]


def test_a_request_that_waits_for_a_budget_is_one_line_with_the_way_on(caplog: pytest.LogCaptureFixture) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider([])) as system:
        lead = system.root.fork(name="lead", budget=Budget(tokens=100))
        lead.charge(tokens=100)
        buyer = lead.fork("go", name="buyer")
        eventually(lambda: buyer.state == "waiting for budget", "the pause")
    [line] = said(caplog)
    assert line.startswith("buyer waits for budget: Too little is left of the 100 tokens of lead")
    assert "or grant(), lets it go on." in line


def test_an_agent_that_is_paused_by_the_death_of_its_supervisor_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider([])) as system:
        lead = system.root.fork(name="lead", on_orphan="stop")
        lead.fork(name="buyer")
        lead.kill()
    assert said(caplog) == ["buyer paused: its supervisor died, whose policy is stop"]


def test_the_frames_of_libraries_that_the_user_calls_stay_and_those_of_threads_go() -> None:
    def parse() -> None:
        json.loads("{")

    async def task() -> None:
        parse()

    with pytest.raises(json.JSONDecodeError) as failed:
        asyncio.run(task())
    names = [frame.name for frame in traceback.extract_tb(users_frames(failed.value))]
    assert names[0].startswith("test_the_frames")
    assert names[-4:] == ["parse", "loads", "decode", "raw_decode"]


def test_without_frames_of_the_user_the_traceback_stays_whole() -> None:
    with pytest.raises(TypeError) as failed:
        span(None)  # type: ignore[arg-type]
    error = failed.value
    error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ is not None else None
    assert users_frames(error) is error.__traceback__ is not None


@pytest.mark.parametrize(("period", "text"), [(600_000, "10 min"), (60_000, "1 min"), (90_000, "90 s"), (1, "0.001 s")])
def test_a_span_is_told_in_minutes_or_seconds(period: int, text: str) -> None:
    assert span(period) == text
