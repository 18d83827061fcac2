"""What an agent has yet to begin, and which of it may pass which."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors import FunctionProvider, Request, Signal, TimedOut
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.backlog import Backlog
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import Call, Progress
from ikigai_actors.agent.turn.state import UNKNOWN, LifecycleState, Phase, State
from ikigai_actors.records.log.history import EMPTY
from ikigai_actors.testing import simulated
from supervisors.signals import Status

IDLE = State("me", 5, phase=Phase.IDLE)
IN_TURN = replace(IDLE, turn=3, phase=Phase.WAITING_FOR_MODEL)
AT_BOUNDARY = replace(IDLE, turn=3, phase=Phase.RUNNING_TOOLS)
UNLOADED = State("me", 5)
STOPPED = replace(IDLE, lifecycle=LifecycleState(Status.STOPPED))
NOTIFIED = replace(IDLE, view=EMPTY._replace(settings={"notify": True}))


def prompt(text: str = "go", mail: int = 0) -> on.Prompt:
    return on.Prompt(text, Future[Any](), mail)


def fork() -> on.Fork:
    return on.Fork("child", None, None, {}, "transient", Future[Any]())


def backlog_of(*commands: on.Deferrable) -> Backlog:
    backlog = Backlog()
    for command in commands:
        backlog.add(command)
    return backlog


def test_commands_of_turns_keep_their_order() -> None:
    first, second = prompt("one"), on.Clear(Future())
    backlog = backlog_of(first, second)
    assert backlog.next(IN_TURN) is None
    assert [backlog.next(IDLE), backlog.next(IDLE), backlog.next(IDLE)] == [first, second, None]


def test_a_fork_passes_commands_and_needs_only_a_step_boundary() -> None:
    waiting, child = prompt(), fork()
    backlog = backlog_of(waiting, child)
    assert backlog.next(IN_TURN) is None
    assert backlog.next(AT_BOUNDARY) is child
    assert backlog.next(AT_BOUNDARY) is None
    assert backlog.next(IDLE) is waiting


def test_a_fork_needs_no_log_unless_the_log_is_being_read_or_its_head_is_unknown() -> None:
    child = fork()
    backlog = backlog_of(child)
    assert backlog.next(UNLOADED, loading=True) is None
    assert backlog.next(replace(UNLOADED, head=UNKNOWN)) is None
    assert backlog.next(UNLOADED) is child


def test_a_command_or_a_fork_is_taken_back_once_and_a_prompt_that_is_mail_is_not() -> None:
    undo, child, asked, kept = on.Undo(Future()), fork(), on.GetOutcome(Future()), prompt(mail=7)
    backlog = backlog_of(undo, child, asked, kept)
    taken = [backlog.take_back(command.caller) for command in (undo, child, undo, child, kept)]
    assert taken == [True, True, False, False, False]
    assert backlog.next(IN_TURN) is asked  # it may still pass what is left
    assert [backlog.next(IDLE), backlog.next(IDLE)] == [kept, None]


@pytest.mark.parametrize("asked", [on.GetOutcome(Future()), on.Interrupt(Future())])
def test_what_waits_for_no_turn_passes_what_does(asked: on.Deferrable) -> None:
    waiting = prompt()
    backlog = Backlog([waiting, asked])
    assert backlog.next(IN_TURN) is asked
    assert backlog.next(IN_TURN) is None
    assert backlog.next(IDLE) is waiting


def test_a_prompt_to_a_stopped_agent_stays_until_it_is_kept_and_is_then_passed_by_all() -> None:
    put_aside, later = prompt(), on.Clear(Future())
    backlog = backlog_of(put_aside, later)
    assert backlog.next(STOPPED) is put_aside is backlog.next(STOPPED)
    assert backlog.volatile == 2
    backlog.keep(put_aside.caller, mail=7)
    assert backlog.volatile == 1
    assert backlog.next(STOPPED) is later
    assert backlog.next(STOPPED) is None
    assert backlog.next(IDLE) == replace(put_aside, mail=7)


def test_a_prompt_that_must_be_stored_is_kept_while_its_agent_is_busy_and_keeps_its_place() -> None:
    first, stored, last = prompt("first"), replace(prompt("stored"), stored=Future[None]()), on.Clear(Future())
    backlog = backlog_of(first, stored, last)
    assert backlog.next(UNLOADED, loading=True) is None
    assert backlog.next(IN_TURN) is stored is backlog.next(AT_BOUNDARY)
    assert (backlog.volatile, backlog.kept) == (3, [])
    backlog.keep(stored.caller, mail=7)
    assert (backlog.volatile, backlog.kept) == (2, [replace(stored, mail=7)])
    assert backlog.next(IN_TURN) is None
    assert backlog.next(STOPPED) is first
    backlog.keep(first.caller, mail=8)
    assert [backlog.next(IDLE) for _ in range(4)] == [replace(first, mail=8), replace(stored, mail=7), last, None]


def test_a_prompt_that_must_be_stored_is_taken_up_at_once_by_an_idle_agent() -> None:
    stored = replace(prompt(), stored=Future[None]())
    backlog = backlog_of(stored)
    assert [backlog.next(IDLE), backlog.next(IN_TURN)] == [stored, None]
    for command in (stored, replace(stored, caller=Future[Any]())):
        backlog.add(command)
    assert backlog.take_all()[0] is stored
    assert backlog.next(IN_TURN) is None


def test_a_prompt_that_could_not_be_kept_is_gone() -> None:
    put_aside = prompt()
    backlog = backlog_of(put_aside)
    backlog.discard(put_aside.caller)
    assert backlog.next(STOPPED) is None
    assert len(backlog) == 0


def test_a_prompt_of_another_process_goes_by_its_number_among_the_mails() -> None:
    kept = prompt("kept", mail=5)
    backlog = backlog_of(kept)
    for mail in (4, 6):
        backlog.add_remote(prompt("remote", mail))
    taken = [backlog.next(IDLE) for _ in range(3)]
    assert [command.mail for command in taken if isinstance(command, on.Prompt)] == [4, 5, 6]


def test_a_prompt_of_another_process_waits_for_commands_that_are_no_mail() -> None:
    local, remote = prompt("here"), prompt("there", mail=1)
    backlog = backlog_of(local)
    backlog.add_remote(remote)
    assert [backlog.next(IDLE), backlog.next(IDLE)] == [local, remote]


def test_a_prompt_that_waited_in_the_mailbox_comes_before_a_later_command_of_this_process() -> None:
    kept, later, last = prompt("kept", mail=3), prompt("later"), prompt("last", mail=4)
    backlog = Backlog()
    backlog.add_remote(kept)
    backlog.add(later)
    backlog.add_remote(last)
    assert backlog.next(UNLOADED) is None
    assert [backlog.next(IDLE) for _ in range(4)] == [kept, later, last, None]


def test_a_prompt_of_another_process_is_taken_up_once_however_often_it_is_announced() -> None:
    backlog = backlog_of(prompt("kept", mail=1))
    for mail in (1, 2, 2):
        backlog.add_remote(prompt("remote", mail))
    taken = [backlog.next(IDLE) for _ in range(3)]
    assert [command.mail for command in taken if isinstance(command, on.Prompt)] == [1, 2]


def test_the_latest_mail_is_one_of_another_process_or_a_kept_prompt() -> None:
    put_aside = prompt()
    backlog = backlog_of(prompt("kept", mail=2), put_aside)
    assert backlog.latest_mail == 2
    backlog.add_remote(prompt("remote", mail=3))
    assert backlog.latest_mail == 3
    backlog.keep(put_aside.caller, mail=4)
    assert backlog.latest_mail == 4


@pytest.mark.thorough("ten thousand prompts; every run has some")
def test_ten_thousand_prompts_to_a_stopped_agent_are_kept_in_their_order_each_once() -> None:
    backlog, waiting = Backlog(), [prompt(str(number)) for number in range(10_000)]
    for item in waiting:
        backlog.add(item)
    for mail, item in enumerate(waiting, start=1):
        assert backlog.next(STOPPED) is item
        backlog.keep(item.caller, mail)
        assert backlog.next(IN_TURN) is None
    for mail in range(1, 10_001):
        backlog.add_remote(prompt("announced", mail))
    taken = [backlog.next(IDLE) for _ in range(10_001)]
    assert [command.mail for command in taken if isinstance(command, on.Prompt)] == list(range(1, 10_001))


def test_news_of_mail_comes_before_all_else_but_only_to_an_idle_agent_that_wants_it() -> None:
    waiting = prompt()
    backlog = backlog_of(waiting)
    backlog.has_news = True
    assert backlog.next(replace(NOTIFIED, turn=3, phase=Phase.WAITING_FOR_MODEL)) is None
    assert backlog.next(NOTIFIED) == on.LookAtMail(None)
    assert backlog.next(NOTIFIED) is waiting
    backlog.has_news = True
    assert backlog.next(IDLE) is None


def test_news_of_mail_is_no_reason_to_read_a_log_and_anything_else_is() -> None:
    news, remote = Backlog(), Backlog()
    news.has_news = True
    remote.add_remote(prompt("remote", mail=1))
    all_kinds = (news, remote, backlog_of(fork()), backlog_of(prompt()))
    assert [kind.needs_log(Status.RUNNING) for kind in all_kinds] == [False, True, True, True]
    # it takes no such prompt
    assert [kind.needs_log(Status.STOPPED) for kind in all_kinds] == [False, False, True, True]
    remote.discard_remote()
    assert not remote.needs_log(Status.RUNNING)


def test_all_that_waits_is_handed_over_in_order_forks_first() -> None:
    waiting, child, asked = prompt(), fork(), on.GetOutcome(Future())
    backlog = backlog_of(waiting, child, asked)
    handed_over = backlog.take_all()
    assert handed_over == (child, waiting, asked)
    assert len(backlog) == 0
    successor = Backlog(handed_over)
    assert successor.volatile == 2
    assert successor.next(AT_BOUNDARY) is child
    assert successor.next(AT_BOUNDARY) is asked


def test_what_goes_on_with_the_open_turn_comes_first_and_can_be_dropped() -> None:
    waiting, interrupted = prompt(), replace(IDLE, turn=3, phase=Phase.INTERRUPTED)
    backlog = backlog_of(waiting)
    backlog.add_first(on.TurnPoisoned("crashed too often"))
    backlog.discard_resumption()
    backlog.add_first(resume := on.Resume(Future()))
    assert [backlog.next(interrupted), backlog.next(interrupted)] == [resume, waiting]


def word(mail: int, *, at_once: bool = False, text: str = "word") -> on.Prompt:
    return on.Prompt(text, object(), mail, data={"steer": "now" if at_once else True})


def test_a_word_opens_no_turn_before_a_command_that_it_has_overtaken_in_the_inbox() -> None:
    backlog, idle = Backlog(), State("a", 1, phase=Phase.IDLE)
    backlog.add_remote(word(1))
    assert backlog.next(idle, more=True) is None
    prompt = on.Prompt("go", object())
    backlog.add(prompt)
    assert backlog.next(idle) is prompt
    assert [word.mail for word in backlog.words] == [1]
    assert backlog.next(idle) is not None


def test_words_and_prompts_of_other_processes_keep_one_order_and_a_step_takes_in_the_oldest_words() -> None:
    backlog, idle = Backlog(), State("a", 1, phase=Phase.IDLE)
    backlog.add_remote(on.Prompt("first", object(), 1))
    for mail in range(2, 200):
        backlog.add_remote(word(mail))
    assert [word.mail for word in backlog.words] == list(range(2, 102))
    opened = backlog.next(idle)
    assert isinstance(opened, on.Prompt)
    assert opened.mail == 1
    assert (backlog.durable, backlog.volatile) == (198, 0)
    backlog.drop_words([2, 3])
    opened = backlog.next(idle)
    assert isinstance(opened, on.Prompt)
    assert opened.mail == 4
    large = Backlog()
    for mail in range(1, 7):
        large.add_remote(word(mail, text="x" * 64 * 1024))
    assert [word.mail for word in large.words] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("phase", "at_once", "taken"),
    [
        (Phase.WAITING_FOR_MODEL, False, None),
        (Phase.WAITING_FOR_MODEL, True, on.TakeWords(at_once=True)),
        (Phase.RUNNING_TOOLS, False, None),
        (Phase.RUNNING_TOOLS, True, on.TakeWords(at_once=True)),
        (Phase.WAITING_FOR_BUDGET, False, on.TakeWords()),
        (Phase.COMPACTING, True, None),
        (Phase.MERGING, True, None),
        (Phase.INTERRUPTED, True, None),
        (Phase.UNLOADED, True, None),
    ],
)
def test_a_step_is_cut_off_for_words_that_do_not_wait_alone(phase: Phase, at_once: bool, taken: object) -> None:
    backlog, state = Backlog(), State("a", 3, turn=1, phase=phase, calls=(Call("1", "look", {}, Progress.RUNNING),))
    backlog.add_remote(word(1, at_once=at_once))
    assert backlog.next(state) == taken
    assert backlog.next(replace(state, lifecycle=LifecycleState(Status.STOPPED))) is None


def test_a_question_for_the_outcome_waits_for_the_command_that_goes_on_with_the_turn() -> None:
    cut_off = replace(STOPPED, turn=3, phase=Phase.INTERRUPTED)
    backlog = backlog_of(resume := on.Resume(Future()), outcome := on.GetOutcome(Future()))
    assert (backlog.resumes, backlog.next(cut_off)) == (True, None)
    going = replace(cut_off, lifecycle=LifecycleState(Status.RUNNING))
    assert [backlog.next(going), backlog.next(IN_TURN)] == [resume, outcome]
    alone = backlog_of(outcome)
    assert (alone.resumes, alone.next(cut_off)) == (False, outcome)


def test_an_int_is_for_the_oldest_prompt_and_the_next_one_for_the_next() -> None:
    first, kept, later = prompt("first"), prompt("kept", mail=5), on.Clear(Future())
    backlog = backlog_of(later, first, kept)
    for mail in (4, 6):
        backlog.add_remote(prompt(str(mail), mail))
    backlog.add_remote(word(7))
    texts = [backlog.interrupt() for _ in range(6)]
    assert [prompt and prompt.text for prompt in texts] == ["first", "4", "kept", "6", "word", None]
    assert backlog.interrupt(4) is None
    taken = [backlog.next(IDLE) for _ in range(6)]
    assert taken[0] is later
    assert [(command.text, command.interrupted) for command in taken if isinstance(command, on.Prompt)] == [
        ("first", True), ("4", True), ("kept", True), ("6", True), ("word", True),
    ]  # fmt: skip


def test_an_int_is_for_a_prompt_by_its_number_wherever_that_waits() -> None:
    backlog = backlog_of(prompt("kept", mail=2))
    backlog.add_remote(prompt("remote", mail=3))
    assert [prompt and prompt.text for prompt in (backlog.interrupt(3), backlog.interrupt(9))] == ["remote", None]
    assert [prompt.interrupted for prompt in (*backlog.kept, *backlog._remote)] == [False, True]


def test_a_stopped_agent_takes_a_prompt_that_an_int_came_for_and_keeps_the_others() -> None:
    kept, fresh = prompt("kept", mail=1), prompt("fresh")
    backlog = backlog_of(kept, fresh)
    backlog.add_remote(prompt("remote", mail=9))
    assert backlog.next(STOPPED) is fresh
    backlog.keep(fresh.caller, mail=2)
    assert backlog.next(STOPPED) is None
    taken = []
    for _ in range(3):
        backlog.interrupt()
        taken.append(backlog.next(STOPPED))
    assert [command.mail for command in taken if isinstance(command, on.Prompt)] == [1, 2, 9]
    remote, unkept = Backlog(), backlog_of(asked := prompt())
    remote.add_remote(prompt("remote", mail=1))
    remote.interrupt()
    unkept.interrupt()
    assert remote.needs_log(Status.STOPPED)
    assert unkept.next(STOPPED) == replace(asked, interrupted=True)
    assert (len(unkept), unkept.next(STOPPED)) == (0, None)


def test_an_int_of_an_open_turn_comes_before_what_goes_on_with_it() -> None:
    cut_off = replace(IDLE, turn=3, phase=Phase.INTERRUPTED)
    backlog = backlog_of(prompt())
    backlog.add_first(resume := on.Resume(Future()))
    backlog.add_first(interrupt := on.Interrupt(Future()))
    assert [backlog.next(cut_off), backlog.next(cut_off)] == [interrupt, resume]


async def late(request: Request) -> str:
    await asyncio.sleep(60)
    return "late"


@pytest.mark.slow("takes a tenth of a second")
def test_the_reply_of_a_stopped_agent_whose_turn_was_resumed_comes_when_it_goes_on() -> None:
    with simulated() as world:
        child = world.open(FunctionProvider(late)).root.fork(name="mast")
        child.prompt("hello")
        world.sleep(5)
        child.signal(Signal.STOP)
        world.crash()
        system = world.reopen()
        child = system.agent("mast")
        assert system.resume() == [child]
        with pytest.raises(TimedOut):
            child.reply(timeout=5)
        child.signal(Signal.CONT)
        assert child.reply(timeout=90).text == "late"
