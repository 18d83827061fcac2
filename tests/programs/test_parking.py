"""Parking: a program that only waits is a row, and goes on when what it waits for has come, whoever runs it then."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRef,
    FunctionProvider,
    ProviderError,
    Request,
    ScriptedProvider,
    Signal,
    SystemClosed,
    TurnInterrupted,
    current_agent,
)
from ikigai_actors.errors import StepFailed
from ikigai_actors.programs import Program, first, gather, program, step
from ikigai_actors.reach.metrics import read_metrics
from ikigai_actors.records.agents import registry
from ikigai_actors.records.fsck.check import check
from ikigai_actors.shell.agent_lists import list_lines, read_list
from ikigai_actors.store import open_store
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.rows import open_hosts
from ikigai_actors.system.remote.client import Client, shown_state
from ikigai_actors.testing import simulated
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging
from tests.kit.databases import eventually
from tests.system.test_cut_off import prompted

SOON = 0.05
"""Seconds after which programs are parked here."""

DONE: list[str] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


def do(what: str) -> str:
    DONE.append(what)
    return what.upper()


@program
def lead(task: str) -> str:
    """Waits for two children, then for one."""
    me = current_agent()
    kids = [me.fork(name=name, model=name) for name in ("mast", "sail")]
    begun = step(do, "begin")
    replies = gather(*(kid.prompt(task) for kid in kids))
    return f"{begun} {' '.join(reply.text for reply in replies)}"


@contextmanager
def gated(database: str, model: Program = lead, **options: Any) -> Iterator[tuple[ActorSystem, AgentRef, Gate, Gate]]:
    """A system with a program, and the gates of its two children, whose requests wait for a test."""
    mast, sail = Gate("mast"), Gate("sail")
    providers = {"mast": mast.provider, "sail": sail.provider, "script": ScriptedProvider(prompted)}
    options = {"park_after": SOON, "provider": "offline", "providers": providers, **options}
    with ActorSystem.open(database, programs=[model], **options) as system:
        try:
            yield system, system.root.fork(name="boss", model=model, key="boss"), mast, sail
        finally:
            mast.open()
            sail.open()


def parks(boss: AgentRef, lack: int) -> None:
    """Wait until a program is parked, and lacks so much."""
    eventually(lambda: boss.record.parked == lack and not at_work(boss), f"{lack} that it lacks")
    name = f"program {boss.uuid}"
    eventually(lambda: name not in [thread.name for thread in threading.enumerate()], "the end of its thread")


def at_work(agent: AgentRef) -> bool:
    return agent.system._processes.get(agent.uuid) is not None


def is_sound(database: str) -> None:
    with closing(open_store(database)) as store:
        assert check(store) == []


def test_a_program_that_only_waits_has_no_actor_and_no_thread_and_answers_when_the_last_end_has_come(
    durable: str,
) -> None:
    with gated(durable) as (_, boss, mast, sail):
        reply = boss.prompt("go")
        parks(boss, 2)
        sail.open()
        parks(boss, 1)
        is_sound(durable)
        mast.open()
        assert reply.get(timeout=DEADLINE).text == "BEGIN mast sail"
        assert boss.record.parked == 0
    assert DONE == ["begin"]
    is_sound(durable)


def test_parked_turns_are_counted_and_are_not_silent(durable: str) -> None:
    with gated(durable) as (system, boss, mast, sail):
        boss.prompt("go")
        parks(boss, 2)
        mast.wait_until_asked()
        sail.wait_until_asked()
        system._store.write(lambda tx: tx.schema.execute("UPDATE messages SET created_at = created_at - 90000"))
        counted = {metric.name: [*metric.values.values()] for metric in read_metrics(system)}
        assert [counted[f"ikigai_turns_{which}"] for which in ("parked", "open", "silent")] == [[1], [3], [2]]


@program
def chooses(task: str) -> str:
    me = current_agent()
    mast, sail = (me.fork(name=name, model=name).prompt(task) for name in ("mast", "sail"))
    quick, reply = first(mast, sail)
    return f"{reply.text} {quick is sail} {mast.get().text}"


def test_the_first_of_several_wakes_a_parked_program(durable: str) -> None:
    with gated(durable, chooses) as (_, boss, mast, sail):
        reply = boss.prompt("go")
        parks(boss, 1)
        sail.open()
        eventually(
            lambda: sum(message.kind == "tool_result" and message.data["name"] == "wait" for message in boss.history()),
            "it",
        )
        parks(boss, 1)
        mast.open()
        assert reply.get(timeout=DEADLINE).text == "sail True mast"


@program
def asks(task: str) -> str:
    return f"{current_agent().ask('Sail?')} {step(do, 'end')}"


def test_a_program_that_waits_for_a_person_is_parked_and_its_question_stays_open(durable: str) -> None:
    with gated(durable, asks) as (system, boss, _, _):
        boss.prompt("go")
        parks(boss, 1)
        assert [asked.agent for asked in system.questions.pending()] == [boss.uuid]
    with gated(durable, asks) as (system, boss, _, _):
        assert not at_work(boss)
        [question] = system.questions.pending()
        assert system.questions.answer(question.id, True)
        assert boss.reply(timeout=DEADLINE).text == "True END"
    is_sound(durable)


@program
def sleeps(task: str) -> str:
    current_agent().sleep(float(task))
    return "awake"


def test_a_parked_program_goes_on_when_its_time_has_come_also_on_another_host(durable: str) -> None:
    with gated(durable, sleeps) as (_, boss, _, _):
        reply = boss.prompt("0.5")
        parks(boss, 1)
        assert reply.get(timeout=DEADLINE).text == "awake"
        boss.prompt("1")
        parks(boss, 1)
    with gated(durable, sleeps) as (_, boss, _, _):
        assert boss.reply(timeout=DEADLINE).text == "awake"
    is_sound(durable)


@program
def catches(task: str) -> str:
    kid = current_agent().fork(name="mast", model="mast")
    try:
        return str(kid.prompt(task).get().text)
    except StepFailed as error:
        return str(error)


def test_the_death_of_who_was_asked_wakes_a_parked_program(durable: str) -> None:
    with gated(durable, catches) as (system, boss, _, _):
        reply = boss.prompt("go")
        parks(boss, 1)
        system.agent("mast").signal(Signal.KILL)
        assert "is dead" in reply.get(timeout=DEADLINE).text
    is_sound(durable)


HANGS = {"mast": Hanging(""), "sail": Hanging("")}


def test_a_boot_looks_at_no_parked_program_and_what_it_waits_for_wakes_it(durable: str) -> None:
    with gated(durable, providers=HANGS) as (_, boss, _, _):
        boss.prompt("go")
        parks(boss, 2)
    with gated(durable, resume=False) as (system, boss, mast, sail):
        assert not at_work(boss)
        assert boss.record.cut_off == 0
        for name in ("mast", "sail"):
            system.agent(name).resume()
        mast.open()
        sail.open()
        assert boss.reply(timeout=DEADLINE).text == "BEGIN mast sail"
    assert DONE == ["begin"]
    is_sound(durable)


def test_an_int_ends_the_turn_of_a_parked_program_and_what_it_has_asked_for(durable: str) -> None:
    with gated(durable) as (system, boss, mast, _):
        reply = boss.prompt("go")
        parks(boss, 2)
        mast.wait_until_asked()
        boss.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            reply.get(timeout=DEADLINE)
        assert boss.record.turn == boss.record.parked == 0
        kid = system.agent("mast")
        eventually(lambda: kid.history()[-1].kind == "interrupted", "the end of what it has asked for")
        boss.prompt("again").cancel()
    is_sound(durable)


def test_a_parked_program_that_is_stopped_goes_no_further_until_it_is_continued(durable: str) -> None:
    with gated(durable) as (_, boss, mast, sail):
        reply = boss.prompt("go")
        parks(boss, 2)
        boss.signal(Signal.STOP)
        mast.open()
        sail.open()
        eventually(lambda: boss.record.parked <= 0, "the ends")
        assert boss.state == "stopped"
        assert not reply.done()
        boss.signal(Signal.CONT)
        assert reply.get(timeout=DEADLINE).text == "BEGIN mast sail"
    is_sound(durable)


def test_who_waits_for_a_parked_turn_hears_of_the_death_of_its_agent_and_of_the_end_of_the_system(durable: str) -> None:
    with gated(durable) as (system, boss, _, _):
        reply = boss.prompt("go")
        parks(boss, 2)
        boss.signal(Signal.KILL)
        with pytest.raises(AgentDead):
            reply.get(timeout=DEADLINE)
        other = system.root.fork(name="other", model=lead)
        reply = other.prompt("go")
    with pytest.raises(SystemClosed):
        reply.get(timeout=DEADLINE)
    is_sound(durable)


def test_a_prompt_to_a_parked_program_waits_for_the_end_of_its_turn(durable: str) -> None:
    with gated(durable) as (_, boss, mast, sail):
        answer = boss.prompt("go")
        parks(boss, 2)
        two = boss.prompt("on")
        mast.open()
        sail.open()
        assert answer.get(timeout=DEADLINE).text == "BEGIN mast sail"
        with pytest.raises(Exception, match="mast"):  # the names of its children are taken
            two.get(timeout=DEADLINE)
    is_sound(durable)


def elsewhere(store: Store, agent: AgentRef) -> str:
    """The state of an agent as a process says it that runs nobody."""
    return store.read(lambda tx: shown_state(registry.get(tx, agent.uuid), open_hosts(tx)))


def test_every_process_says_for_whom_a_program_waits(durable: str) -> None:
    with gated(durable) as (_, boss, mast, sail), closing(open_store(durable)) as store:
        boss.prompt("go")
        parks(boss, 2)
        assert boss.state == "waits for mast, sail"
        assert elsewhere(store, boss) == boss.state
        sail.open()
        parks(boss, 1)
        assert elsewhere(store, boss) == "waits for mast"
        mast.open()
        boss.reply(timeout=DEADLINE)


def test_a_program_says_whose_turn_was_cut_off_for_which_it_waits_and_goes_on_once_that_is_resumed(
    durable: str,
) -> None:
    cut_off = {name: Hanging("") for name in ("mast", "sail")}
    with gated(durable, park_after=None, providers=cut_off) as (_, boss, _, _):
        boss.prompt("go")
        for provider in cut_off.values():
            provider.wait_until_asked()
    with gated(durable, resume=False) as (system, boss, mast, sail), closing(open_store(durable)) as store:
        assert boss.resume()
        assert system.agent("sail").resume()
        eventually(lambda: boss.state == "waits for mast (interrupted), sail", "that the wait goes on")
        sail.open()
        parks(boss, 1)
        assert [boss.state, elsewhere(store, boss)] == ["waits for mast (interrupted)"] * 2
        listed = list_lines(overview := read_list(Client(store)), overview.state, "ikigai agents")
        assert [line.text for line in listed if "waits for mast (interrupted)" in line.text]
        assert system.agent("mast").resume()
        mast.wait_until_asked()
        assert boss.state == "waits for mast"
        mast.open()
        assert boss.reply(timeout=DEADLINE).text == "BEGIN mast sail"


@pytest.mark.thorough("both turns cut off, of which one is in the test above")
def test_a_program_with_an_actor_says_whose_turns_were_cut_off_for_which_it_waits() -> None:
    with simulated() as world:
        hanging = {name: Hanging("") for name in ("mast", "sail")}
        world.open(ScriptedProvider([]), hanging, programs=[lead], park_after=None)
        world.system.root.fork(name="boss", model=lead).prompt("go")
        world.settle()
        assert world.system.agent("boss").state == "waits for mast, sail"
        world.crash()
        boss = world.reopen(resume=False).agent("boss")
        assert boss.resume()
        world.settle()
        assert (boss.state, at_work(boss)) == ("waits for mast (interrupted), sail (interrupted)", True)


def test_a_program_that_waits_for_a_time_says_so() -> None:
    with gated(":memory:", sleeps) as (_, boss, _, _):
        boss.prompt("99")
        parks(boss, 1)
        assert boss.state == "waits for its time"


@program
def asks_captain(task: str) -> str:
    return str(current_agent().ask("Sail?", to=["role:captain"] if task == "captain" else None))


@pytest.mark.sample(2, "whom it waits for")
@pytest.mark.parametrize(("task", "whom"), [("captain", " by role:captain"), ("anybody", "")])
@pytest.mark.parametrize("seconds", [SOON, None])
def test_every_process_says_that_an_agent_waits_for_a_person_and_for_whom(
    durable: str, task: str, whom: str, seconds: float | None
) -> None:
    with (
        gated(durable, asks_captain, park_after=seconds) as (system, boss, _, _),
        closing(open_store(durable)) as store,
    ):
        boss.prompt(task)
        eventually(lambda: system.questions.pending() and at_work(boss) == (seconds is None), "the question")
        said = f"waiting for approval{whom}"
        eventually(lambda: boss.state == said, "its state")  # its actor takes the call up behind the row
        assert elsewhere(store, boss) == said


GO = threading.Event()


def wait_for_go(what: str) -> str:
    GO.wait(DEADLINE)
    return what


@program
def asks_back(task: str) -> str:
    """Asks a second program, which asks back; what of that is refused says so."""
    me = current_agent()
    if task == "go":
        return str(me.fork(name="other", model="asks_back").prompt("back").get().text)
    step(wait_for_go, task)
    boss = me.system.agent("boss")
    try:
        return str(boss.prompt("never").get().text)
    except StepFailed as error:
        return str(error)


def test_a_circle_of_waits_is_found_although_one_of_its_agents_is_parked(durable: str) -> None:
    GO.clear()
    with gated(durable, asks_back) as (_, boss, _, _):
        reply = boss.prompt("go")
        parks(boss, 1)
        GO.set()
        assert "other waits for boss waits for other" in reply.get(timeout=DEADLINE).text
    is_sound(durable)


def answers_or_says(asked: AgentRef, prompt: str) -> str:
    """The answer to a prompt of a program, or why there is none."""
    try:
        return str(asked.prompt(prompt).get().text)
    except StepFailed as error:
        return str(error)


@program
def waits_for_one_of_two(task: str) -> str:
    """Takes the first answer of two, or both; the first child may ask back."""
    me = current_agent()
    if task in ("tea", "coffee"):
        return task
    if task == "back":
        return answers_or_says(me.system.agent("boss"), "tea")
    other, mast = me.fork(name="other", model="waits_for_one_of_two"), me.fork(name="mast", model="mast")
    if task == "first":
        return str(first(other.prompt("back"), mast.prompt(task))[1].text)
    return " ".join(reply.text for reply in gather(other.prompt("coffee"), mast.prompt(task)))


@pytest.mark.sample(1, "ways to wait")
@pytest.mark.parametrize("seconds", [SOON, None])
@pytest.mark.parametrize(("task", "answer"), [("first", "mast"), ("both", "coffee mast")])
def test_an_agent_without_which_a_wait_ends_may_wait_for_whoever_waits(
    durable: str, seconds: float | None, task: str, answer: str
) -> None:
    with gated(durable, waits_for_one_of_two, park_after=seconds) as (system, boss, mast, _):
        reply = boss.prompt(task)
        mast.wait_until_asked()
        eventually(lambda: boss.history()[-1].kind == "tool_call", "its wait")
        other = system.agent("other")
        if task == "both":
            eventually(lambda: not other.record.turn and len(other.history()) > 1, "the first answer")
            other.prompt("back")
        eventually(lambda: other.history()[-1].kind == "tool_call", "the wait of the other one")
        for _ in range(2):  # the circles of its wait were looked for
            boss.wait([system.agent("mast")], timeout=0)
        mast.open()
        assert reply.get(timeout=DEADLINE).text == answer
        eventually(lambda: other.history()[-1].content == "tea", "the answer to the other one")
    is_sound(durable)


@program
def chooses_one(task: str) -> str:
    mast, sail = (current_agent().fork(name=name, model="circle").prompt(task) for name in ("mast", "sail"))
    return str(first(mast, sail)[1].text)


@pytest.mark.sample(1, "ways to wait")
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("park_after", [SOON, None])
def test_a_program_that_waits_for_one_of_two_is_in_a_circle_if_both_wait_for_it(
    durable: str, both: bool, park_after: float | None
) -> None:
    """Where one of the two answers, nobody is refused."""

    def circle(request: Request) -> str:
        me = current_agent()
        boss = me.system.agent("boss")
        if park_after:
            eventually(lambda: boss.record.parked > 0, "the boss is parked")
        if request.name == "sail" and not both:
            return "sail"
        return str(me.wait([boss]))

    providers = {"circle": FunctionProvider(circle)}
    with ActorSystem.open(durable, "offline", providers, programs=[chooses_one], park_after=park_after) as system:
        reply = system.root.fork(name="boss", model=chooses_one).prompt("go")
        if both:
            with pytest.raises(ProviderError, match=r"waits for .* waits for"):
                reply.get(timeout=DEADLINE)
        else:
            assert reply.get(timeout=DEADLINE).text == "sail"
        system.agent("boss").signal(Signal.KILL)
    is_sound(durable)
