"""What people do to a program and to those whom it asks: no wait hangs, and none ends with what is no reply."""

from collections.abc import Callable
from contextlib import closing

import pytest

from ikigai_actors import AgentRef, Signal, current_agent
from ikigai_actors.errors import StepFailed
from ikigai_actors.programs import program, step
from ikigai_actors.records.mail.prompts import WithdrawPrompt, waiting_prompts
from ikigai_actors.system.attached import AttachedSystem
from supervisors.signals import Status
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.programs.test_parking import GO, gated, is_sound, parks, wait_for_go

SOON, NEVER = 0.05, None
"""When a program is parked."""


@program
def leads(task: str) -> str:
    kid = current_agent().fork(name="mast", model="mast")
    try:
        return str(kid.prompt(task).get().text)
    except StepFailed as error:
        return str(error)


def waits(boss: AgentRef) -> None:
    """Wait until a program waits."""
    eventually(lambda: boss.history()[-1].kind == "tool_call", "its wait")


@pytest.mark.sample(2, "ways to wait")
@pytest.mark.parametrize("parked", [SOON, NEVER])
@pytest.mark.parametrize("at_once", [False, True])
def test_a_word_to_a_program_does_not_end_its_wait(durable: str, parked: float | None, at_once: bool) -> None:
    with gated(durable, leads, park_after=parked) as (_, boss, mast, _):
        reply = boss.prompt("go")
        mast.wait_until_asked()
        parks(boss, 1) if parked else waits(boss)
        word = boss.steer("hurry", now=at_once)
        assert not word.done()
        mast.open()
        assert reply.get(timeout=DEADLINE).text == "mast"
        word.get(timeout=DEADLINE)
        assert [message.content for message in boss.history() if message.kind == "steer"] == ["hurry"]
    is_sound(durable)


def here(database: str, kid: AgentRef) -> None:
    [prompt] = kid.system._store.read(lambda tx: waiting_prompts(tx, kid.uuid))
    assert kid.system._writer.perform(WithdrawPrompt(kid.uuid, prompt.mail))


def elsewhere(database: str, kid: AgentRef) -> None:
    with closing(AttachedSystem.open(database)) as system:
        here(database, system.agent("mast"))


@program
def asks_one_that_is_busy(task: str) -> str:
    try:
        return str(current_agent().system.agent("mast").prompt(task).get().text)
    except StepFailed as error:
        return str(error)


@pytest.mark.sample(2, "ways to wait")
@pytest.mark.parametrize("parked", [SOON, NEVER])
@pytest.mark.parametrize("withdraw", [here, elsewhere])
def test_a_program_whose_prompt_is_withdrawn_hears_of_it(
    durable: str, parked: float | None, withdraw: Callable[[str, AgentRef], None]
) -> None:
    with gated(durable, asks_one_that_is_busy, park_after=parked) as (system, boss, mast, _):
        kid = system.root.fork(name="mast", model="mast")
        kid.prompt("first")
        mast.wait_until_asked()
        reply = boss.prompt("go")
        parks(boss, 1) if parked else waits(boss)
        withdraw(durable, kid)
        assert reply.get(timeout=DEADLINE).text == "The prompt was withdrawn."
    is_sound(durable)


@program
def forks_late(task: str) -> str:
    step(wait_for_go, task)
    return str(current_agent().fork(name="mast", model="mast").prompt(task).get().text)


def test_stop_and_cont_of_another_process_around_a_fork_leave_no_program_stopped(durable: str) -> None:
    GO.clear()
    with (
        gated(durable, forks_late) as (system, boss, mast, _),
        closing(AttachedSystem.open(durable)) as other,
    ):
        mast.open()
        reply = boss.prompt("go")
        eventually(lambda: boss.history()[-1].kind == "tool_call", "its step")
        with system._supervision.remote_commands._following:  # its host does not look until both have come
            other.agent("boss").signal(Signal.STOP)
            GO.set()
            actor = system._processes._actors[boss.uuid]
            eventually(lambda: actor.state.lifecycle.status is Status.STOPPED, "the fork that is refused")
            other.agent("boss").signal(Signal.CONT)
        assert reply.get(timeout=DEADLINE).text == "mast"
    is_sound(durable)
