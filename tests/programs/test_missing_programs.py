"""Programs that a process lacks: their turns wait, untouched, for a process that has them."""

from contextlib import closing

import pytest

from ikigai_actors import ActorSystem, AgentRef, ScriptedProvider, Signal, TimedOut, TurnInterrupted, current_agent
from ikigai_actors.errors import ProviderError
from ikigai_actors.programs import program, step
from ikigai_actors.reach.metrics import read_metrics
from ikigai_actors.records.fsck.check import check
from ikigai_actors.shell.agent_lists import list_lines, read_list
from ikigai_actors.store import open_store
from ikigai_actors.verbs.text.colours import Meaning, meaning_of_agent
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.kit.databases import eventually
from tests.system.test_cut_off import prompted, said

LACKS = "waiting for program lead"
DONE: list[str] = []
SCRIPT = {"script": ScriptedProvider(prompted)}


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


def do(what: str) -> str:
    DONE.append(what)
    return what.upper()


@program
def lead(task: str) -> str:
    me = current_agent()
    kid = me.fork(name="kid", model="script")
    begun = step(do, task, idempotent=True)
    return f"{begun} {kid.prompt(task).get().text} {me.ask('Sail?')}"


def is_sound(database: str) -> None:
    with closing(open_store(database)) as store:
        assert check(store) == []


@pytest.fixture
def cut_off(durable: str) -> str:
    """A database with a turn of the program that was cut off while its child worked."""
    hanging = {"script": Hanging("")}
    with ActorSystem.open(durable, "offline", hanging, programs=[lead]) as system:
        system.root.fork(name="boss", model=lead).prompt("go")
        hanging["script"].wait_until_asked()
    return durable


def waits(boss: AgentRef) -> None:
    eventually(lambda: boss.state == LACKS, LACKS)


def test_a_turn_waits_for_its_program_says_so_and_goes_on_where_that_is(cut_off: str) -> None:
    with ActorSystem.open(cut_off, "offline", SCRIPT) as system:
        boss = system.agent("boss")
        length = len(boss.history())
        waits(boss)
        assert boss.statistics().state == LACKS
        assert next(each for each in read_metrics(system) if each.name == "ikigai_requests_put_off").values[()] == 1
        with pytest.raises(TimedOut, match="boss is waiting for program lead: start a process that has the program"):
            boss.reply(timeout=0.01)
        assert boss.resume()
        waits(boss)
        assert len(boss.history()) == length
        eventually(lambda: system.agent("kid").history()[-1].kind == "assistant", "the child's answer")
        assert not system._processes.is_at_work()
    for _ in range(4):  # no boot without the program counts as a cut-off
        with ActorSystem.open(cut_off, "offline", SCRIPT) as system:
            waits(system.agent("boss"))
    is_sound(cut_off)
    with ActorSystem.open(cut_off, "offline", SCRIPT, programs=[lead]) as system:
        eventually(lambda: bool(system.questions.pending()), "the question")
        assert system.questions.answer(system.questions.pending()[0].id, True)
        assert system.agent("boss").reply(timeout=DEADLINE).text == "GO heard go True"
        assert (DONE, said(system.agent("kid"))) == (["go"], ["go"])
    is_sound(cut_off)


@pytest.mark.thorough("waits for the lease of a process; every run has the wait itself")
def test_attached_processes_and_lists_see_the_wait(cut_off: str) -> None:
    with ActorSystem.open(cut_off, "offline", SCRIPT) as system, ActorSystem.attach(cut_off) as attached:
        waits(attached.agent("boss"))
        overview = read_list(attached)
        [line] = [row.text for row in list_lines(overview, overview.state, "ikigai agents") if "boss" in row.text]
        assert LACKS in line
        assert meaning_of_agent(system.agent("boss").record, LACKS) is Meaning.PERSON


def test_int_ends_the_turn_that_waits_and_a_prompt_behind_it_waits_as_well(cut_off: str) -> None:
    with ActorSystem.open(cut_off, "offline", SCRIPT) as system:
        boss = system.agent("boss")
        waits(boss)
        turn, behind = boss.record.turn, boss.prompt("more")
        with pytest.raises(TimedOut):
            behind.get(timeout=0.01)
        assert boss.fork(name="look").parent == boss
        assert boss.record.turn == turn
        boss.signal(Signal.INT)
        eventually(lambda: boss.record.turn > turn, "the next turn")
        waits(boss)
        boss.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            behind.get(timeout=DEADLINE)
    is_sound(cut_off)


@program
def short(task: str) -> str:
    return f"done {task}"


def test_a_prompt_to_an_agent_that_a_program_has_answered_waits_and_another_model_may_answer_it(durable: str) -> None:
    with ActorSystem.open(durable, "offline", SCRIPT, programs=[short]) as system:
        boss = system.root.fork(name="boss", model=short)
        assert boss.prompt("one").get(timeout=DEADLINE).text == "done one"
    with ActorSystem.open(durable, "offline", SCRIPT) as system:
        boss = system.agent("boss")
        answer = boss.prompt("two")
        eventually(lambda: boss.state == "waiting for program short", "that it waits")
        boss.undo()
        with pytest.raises(TurnInterrupted, match="taken back while it waited for program short"):
            answer.get(timeout=DEADLINE)
        answer = boss.prompt("three")
        eventually(lambda: boss.state == "waiting for program short", "that it waits")
        boss.configure(model="script")
        assert answer.get(timeout=DEADLINE).text == "heard three"
        boss.configure(model=None)
    is_sound(durable)


def test_a_name_of_which_no_reply_says_that_it_is_a_program_is_an_error_at_once(durable: str) -> None:
    with ActorSystem.open(durable, "offline", SCRIPT, programs=[short]) as system:
        with pytest.raises(ProviderError, match="names provider 'shrot', which is not registered"):
            system.root.fork(name="typo", model="shrot").prompt("go").get(timeout=DEADLINE)
        system.root.fork(name="boss", model=short)
    with (
        ActorSystem.open(durable, "offline", SCRIPT) as system,
        pytest.raises(ProviderError, match="names provider 'short', which is not registered"),
    ):
        system.agent("boss").prompt("go").get(timeout=DEADLINE)
