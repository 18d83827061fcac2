"""The machine of the kit over our own runtime: programs that Hypothesis makes up, and the invariants it must keep."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ikigai_actors import Signal
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.errors import AgentDead, StoreUnavailable
from ikigai_actors.store.queries import queries, query
from ikigai_actors.testing import AgentTreeMachine, Broken
from ikigai_actors.testing.machine.fixtures import SLOW
from ikigai_actors.testing.machine.key_oracle import keyed_text
from ikigai_actors.testing.machine.model import check_no_reply, check_wait
from ikigai_actors.testing.simulation.changes import Written, changes_rows
from ikigai_actors.testing.simulation.faults import NONE, Faults
from ikigai_actors.testing.simulation.process import LEAP
from ikigai_actors.testing.simulation.schedule import PLAIN, Schedule
from ikigai_actors.testing.simulation.store import BY_ROW
from tests.kit.programs import programs, run_programs


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are planned here: nobody wants to read of each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow("takes a tenth of a second")
@programs(few=3, many=60)
def test_made_up_programs_keep_every_invariant(examples: int) -> None:
    run_programs(AgentTreeMachine, examples, steps=20)


class Forgetful(AgentTreeMachine):
    """One whose agents drop their logs all the time."""

    def options(self) -> dict[str, Any]:
        return {"in_memory": 2}


@pytest.mark.thorough("the same programs with a smaller memory")
@pytest.mark.slow("takes a second")
@programs(few=1, many=30)
def test_made_up_programs_keep_every_invariant_though_logs_do_not_stay_in_memory(examples: int) -> None:
    run_programs(Forgetful, examples, steps=20)


@pytest.fixture
def machine() -> Iterator[AgentTreeMachine]:
    """One that has begun, to take rules by hand."""
    made = AgentTreeMachine()
    made.begin(schedule=PLAIN, misfortunes=NONE)
    yield made
    made.teardown()


def test_an_agent_that_asks_a_model_behind_an_int_is_found(machine: AgentTreeMachine) -> None:
    machine.prompt_and_interrupt(who=0)
    history = machine.agent(0).history()
    assert [message.kind for message in history] == ["user", "interrupted", "user", "assistant"]
    assert [machine.ledger.open[0].exception() is None, machine.ledger.open[1].get().text] == [False, "ok"]
    machine.interrupts.sent(machine.agent(0).uuid, "later")
    machine.agent(0).prompt("later")
    with pytest.raises(Broken, match=r"int: .* asks its model for 'later'"):
        machine.world.settle()


@pytest.mark.thorough("a second aimed program; every run has made-up ones")
def test_a_question_is_answered_once_whoever_crashes_and_expires_where_nobody_answers(
    machine: AgentTreeMachine,
) -> None:
    steps = {"remind": "20s", "escalate": ["role:lead", "above"]}
    for commit in range(1, 5):
        machine.ask_person(who=0, within="2m", default=True, steps=steps)
        machine.answer_question(back=1, answers=[False, True], crash=(commit, commit % 2 == 0))
        machine.answer_question(back=1, answers=[None], crash=None)
        machine.comes_to_rest()
    machine.ask_person(who=0, within="45s", default=True, steps=steps)
    for seconds in (10, 50):
        machine.nobody_answers(seconds=seconds)
    machine.answer_question(back=1, answers=[False], crash=None)
    machine.ask_person(who=0, within="3s", default=None, steps=None)
    machine.comes_to_rest()
    rows = [machine.system.questions.get(name) for name in machine.questions.to_people]
    assert [row.how for row in rows[:4]] == ["answered"] * 4
    assert [(row.how, row.level) for row in rows[4:]] == [("expired", 3), ("expired", 1)]


@pytest.mark.slow("takes a tenth of a second")
def test_a_deadline_that_comes_later_since_the_clock_was_set_back_is_waited_for(machine: AgentTreeMachine) -> None:
    machine.ask_person(who=0, within="45s", default=True, steps=None)
    machine.world.clock.jump(-LEAP)
    machine.comes_to_rest()
    [question] = machine.questions.to_people
    assert machine.system.questions.get(question).how == "expired"


@pytest.mark.slow("takes a tenth of a second")
def test_what_is_asked_for_under_a_key_is_done_once_whatever_crashes_between(machine: AgentTreeMachine) -> None:
    for _ in range(3):
        machine.prompt_under_keys(who=0, keys=["k1", "k2", "k1"])
        machine.fork_under_a_key(who=0, key="c1")
        machine.restart()
    machine.comes_to_rest()
    said = [message.content.split()[-1] for message in machine.agent(0).history() if message.kind == "user"]
    assert (sorted(said), len(machine.system.agents())) == (["k1", "k2"], 2)


def test_an_act_whose_key_is_not_written_with_it_is_found(machine: AgentTreeMachine) -> None:
    with pytest.raises(Broken, match=r"key: a prompt under key k1"):
        machine.agent(0).prompt(keyed_text("prompt", machine.agent(0).uuid, "k1"), key="k2")


def test_a_reply_that_is_lost_with_its_agent_is_found(machine: AgentTreeMachine) -> None:
    for who, prompt in ((1, "go"), (2, None)):
        machine.fork(who=0, prompt=prompt, reply="ok")
        machine.comes_to_rest()
        machine.agent(who).signal(Signal.KILL)
    gone = AgentDead("it is dead")
    with pytest.raises(Broken, match=r"reply: agent .* is dead, and its caller did not get"):
        check_no_reply(machine.agent(1), gone)
    check_no_reply(machine.agent(2), gone)


def test_the_crash_of_an_agent_leads_to_a_restart_and_the_prompt_is_answered(machine: AgentTreeMachine) -> None:
    machine.fork(who=0, prompt=None, reply="ok")
    machine.crash_agent(who=1, times=1)
    [answer] = machine.ledger.open
    machine.comes_to_rest()
    assert answer.get().text == "ok"
    assert [line.text for line in machine.world.trace.lines if "add_restart" in line.text]


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(2, "summarisers")
@pytest.mark.parametrize(
    ("window", "answer", "refusal", "made"),
    [
        (600, "short", None, ("model", "auto")),
        (600, "fails", None, ("digest", "auto")),
        (9_000, "short", "context_length_exceeded", ("model", "refusal")),
        (9_000, "blank", "context_length_exceeded", ("digest", "refusal")),
    ],
)
def test_a_small_window_makes_an_agent_summarise_whatever_its_summariser_gives(
    machine: AgentTreeMachine, window: int, answer: str, refusal: str | None, made: tuple[str, str]
) -> None:
    machine.fill_window(who=0, window=window, answer=answer, refusal=refusal)
    machine.comes_to_rest()
    history = machine.system.root.history(all=True)
    assert made in {(message.data["how"], message.data["by"]) for message in history if message.kind == "summary"}
    assert "error" not in {message.kind for message in history}


@pytest.mark.slow("takes a tenth of a second")
def test_a_host_that_has_ended_asks_no_model_when_its_threads_are_unwound() -> None:
    """As a long run has found it."""
    machine = AgentTreeMachine()
    drawn = Schedule.parse("0:1 25:11 29:10 37:12 38:3 40:1 47:4 59:6")
    machine.begin(schedule=drawn, misfortunes=Faults(back=1))
    machine.write_document(author=0, careful=True, path="plan.md")
    machine.fail_beside(who=0)
    machine.restart()
    machine.restart()
    machine.prompt_slow_model(signal=None, who=0)
    machine.restart()
    machine.take_over(resume=True)
    machine.mark(label="here", who=0)
    machine.restart()
    machine.restart()
    machine.teardown()


@pytest.mark.slow("takes a tenth of a second")
def test_an_agent_that_crashes_again_and_again_leaves_a_tree_that_keeps_every_invariant(
    machine: AgentTreeMachine,
) -> None:
    machine.fork(who=0, prompt=None, reply="ok")
    machine.fork(who=1, prompt=None, reply="ok")
    for _ in range(3):
        machine.crash_agent(who=2, times=4)
        machine.comes_to_rest()
        machine.what_was_acknowledged_is_there()
    assert sum("add_restart" in line.text for line in machine.world.trace.lines) > 3


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("pause", [False, True])
def test_a_second_crash_is_one_too_many_at_once_and_exactly_at_the_end_of_the_period(
    machine: AgentTreeMachine, pause: bool
) -> None:
    machine.fork(who=0, prompt=None, reply="ok")
    machine.crash_twice(who=1, pause=pause)
    [first, *_] = [line.text for line in machine.world.trace.lines if "add_restart" in line.text]
    assert machine.agent(1).uuid in first
    assert machine.agent(1).record.exit_cause == "gave up"


@pytest.mark.slow("takes a tenth of a second")
def test_who_waits_in_vain_while_nobody_is_stopped_is_found(machine: AgentTreeMachine) -> None:
    machine.script(machine.agent(0), SLOW, SLOW)
    with pytest.raises(Broken, match="quiescence: nobody is stopped or asked, and "):
        machine.attempt(lambda: machine.agent(0).prompt("go").get(timeout=SLOW.delay / 2))
    machine.fork(who=0, prompt=None, reply="ok")
    machine.signal(who=1, signal=Signal.STOP, spread=False)
    machine.attempt(lambda: machine.agent(0).prompt("go").get(timeout=SLOW.delay / 2))


def test_an_outage_of_the_store_that_nobody_has_planned_fails_the_run(
    machine: AgentTreeMachine,
) -> None:
    machine.world.process.unreadable_until = machine.world.clock.monotonic() + 1
    with pytest.raises(StoreUnavailable):
        machine.attempt(lambda: machine.agent(0).prompt("go").get())
    machine.world.sleep(1)


@pytest.mark.sample(2, "ends of a wait")
@pytest.mark.parametrize("result", [WaitResult.MAIL, WaitResult.DEAD, WaitResult.UNKNOWN, WaitResult.TIMEOUT])
def test_a_false_end_of_a_wait_is_found(machine: AgentTreeMachine, result: WaitResult) -> None:
    machine.fork(who=0, prompt=None, reply="ok")
    machine.comes_to_rest()
    machine.world.sleep(60)
    root, child = machine.agent(0), machine.agent(1)
    with pytest.raises(Broken, match="wait: "):
        check_wait(machine.system, root, [child], {child: result}, machine.world.clock.now_ms())


def test_a_wait_that_only_its_deadline_has_ended_is_found_and_one_that_ended_before_is_none(
    machine: AgentTreeMachine,
) -> None:
    machine.fork(who=0, prompt=None, reply="ok")
    machine.comes_to_rest()
    machine.world.sleep(60)
    root, child, now = machine.agent(0), machine.agent(1), machine.world.clock.now_ms()
    check_wait(machine.system, root, [child], {child: WaitResult.IDLE}, now, now - 1)
    with pytest.raises(Broken, match=r"wait: .* in vain"):
        check_wait(machine.system, root, [child], {child: WaitResult.IDLE}, now, now)


def message(agent: str, position: int, kind: str = "user", data: str = "{}") -> Written:
    return Written("messages", (agent, position, kind, "x", data, 1))


def test_an_invariant_that_does_not_hold_is_named(machine: AgentTreeMachine) -> None:
    machine.work.runs["7"] = 2
    with pytest.raises(Broken, match="once: work ran again for call 7"):
        machine.look_at_work()


@pytest.mark.slow("takes a tenth of a second")
def test_a_branch_that_was_moved_and_is_not_what_it_was_is_found(machine: AgentTreeMachine) -> None:
    machine.prune_line(who=0, deep=True, moves=True)
    machine.ledger.oracle.mails[machine.system.root.uuid, 9] = "lost"
    with pytest.raises(Broken, match=r"transfer: agent .* has the mails"):
        machine.check_transfer(machine.system.root.uuid)


@pytest.mark.slow("takes a tenth of a second")
def test_a_branch_that_dies_at_once_is_dead_to_all_who_follow_the_changes(machine: AgentTreeMachine) -> None:
    machine.fork(who=0, prompt="go", reply="ok")
    machine.fork(who=1, prompt="go", reply="ok")
    machine.kill(who=1, spread=True)
    machine.prune(seconds=0)
    assert machine.upkeep.pruned == {*machine.ledger.known} - {machine.system.root.uuid}


def test_a_statement_that_names_agents_by_their_rows_is_told_as_one_that_names_their_uuids() -> None:
    assert {name for name in queries() if changes_rows(name) and "row_key" in query(name)} == BY_ROW.keys()


@pytest.mark.slow("takes a tenth of a second")
def test_a_history_that_is_left_of_a_pruned_agent_is_found(machine: AgentTreeMachine) -> None:
    machine.prune_line(who=0, deep=False, moves=False)
    assert len(machine.upkeep.pruned) == 2
    machine.upkeep.pruned.add(machine.system.root.uuid)
    with pytest.raises(Broken, match=r"prune: agent .* is pruned, and this is left"):
        machine.upkeep.check_pruned(machine.system._store)
    machine.upkeep.pruned.remove(machine.system.root.uuid)


@pytest.mark.slow("takes a tenth of a second")
def test_a_prune_that_was_the_last_of_its_process_leaves_rows_that_are_no_violation(machine: AgentTreeMachine) -> None:
    machine.fork_line(who=0, length=2)
    for number in (1, 2):
        machine.kill(who=number, spread=False)
    machine.crash_soon(commit=2, committed=False)
    machine.prune(seconds=0)
    assert len(machine.upkeep.pruned) == 2
    with pytest.raises(Broken, match=r"prune: agent .* is pruned, and this is left"):
        machine.upkeep.check_pruned(machine.system._store)
    machine.comes_to_rest()
    machine.upkeep.check_pruned(machine.system._store)


@pytest.mark.slow("takes a tenth of a second")
def test_a_prompt_to_a_stopped_agent_survives_a_crash_and_is_answered_once(machine: AgentTreeMachine) -> None:
    machine.fork(who=0, prompt=None, reply="ok")
    machine.stop_and_prompt(who=1)
    machine.crash()
    machine.signal(who=1, signal=Signal.CONT, spread=False)
    machine.world.settle()
    machine.crash()
    machine.world.settle()
    assert [message.content for message in machine.agent(1).history() if message.kind == "user"] == ["go"]
    machine.ledger.check_rest(machine.world)


def test_a_prompt_that_a_stopped_agent_gets_after_its_turn_was_left_ends_that_turn_by_the_law() -> None:
    """As a long run has found it."""
    machine = AgentTreeMachine()
    machine.begin(schedule=Schedule({}), misfortunes=Faults())
    machine.prompt_slow_model(signal=None, who=0)
    machine.take_over(resume=False)
    machine.sleep_with_prompt(who=0)
    machine.world.settle()
    assert [message.kind for message in machine.system.root.history(all=True)][-3:] == ["rewind", "user", "assistant"]
    machine.teardown()
