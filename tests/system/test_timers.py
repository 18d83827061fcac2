"""Timers of a running system: who hears of them, over restarts, crashes, other processes, and clocks that are set."""

import asyncio
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentDead, AgentRef, BadInput, OfflineProvider, Reply, ScriptedProvider, ToolCall
from ikigai_actors.errors import TimerNotFound
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.testing import CrashPoint, ProcessCrashed, Simulation, simulated
from ikigai_actors.verbs.text.timers import timer_line
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import echo

HOURLY = "0 * * * *"


def prompts(world: Simulation) -> list[str]:
    """What agent 0 was prompted."""
    return [message.content for message in world.system.root.history() if message.kind == "user"]


def until_it_crashes(world: Simulation) -> None:
    """Let time pass, and make further commits, until the process has ended."""
    world.sleep(100)
    while True:
        world.system.root.mark()


def test_a_reminder_comes_as_mail_or_as_a_prompt_when_it_is_due() -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(echo)).root
        assert root.remind("tea", after=60, zone="UTC") == 1
        assert root.remind("work", after=90, zone="UTC", prompt=True) == 2
        world.sleep(59)
        assert (root.read_mail(), prompts(world)) == ([], [])
        world.sleep(1)
        [mail] = root.read_mail()
        assert (mail.body, mail.kind, mail.sender) == ("tea", "notice", root.uuid)
        world.sleep(30)
        assert prompts(world) == ["work"]
        assert root.history()[-1].kind == "assistant"
        assert root.timers() == []


def test_a_delayed_mail_ends_a_wait_and_is_a_timer_of_its_recipient_until_then() -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(echo)).root
        kid = root.fork(name="kid")
        number = root.send(kid, "later", after=120)
        assert [(timer.id, timer.fires_as, timer.sender) for timer in kid.timers()] == [(number, "mail", root.uuid)]
        assert kid.wait(timeout=200) == {root: "mail"}
        assert [mail.body for mail in kid.read_mail(root)] == ["later"]


def test_what_nobody_ran_for_comes_once_and_says_how_much_that_was() -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(echo)).root
        root.remind("look", every=HOURLY, zone="UTC", prompt=True)
        root.remind("once", after=60, zone="UTC", prompt=True)
        world.close()
        world.clock.advance(5 * 3_600)
        world.reopen()
        world.sleep(1)
        assert sorted(prompts(world)) == [
            "look\n\n(Missed 4 times since 1970-01-12 14:00, UTC.)",
            "once\n\n(This was due at 1970-01-12 13:47, UTC.)",
        ]


@pytest.mark.sample(1, "below the limit and above it")
@pytest.mark.parametrize(
    ("days", "words", "unread"), [(0.5, "719", "721"), (1.05, "more than 1,000", "more than 1,000")]
)
def test_what_was_missed_is_counted_up_to_a_thousand(days: float, words: str, unread: str) -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(echo)).root
        root.remind("look", every="* * * * *", zone="UTC")
        root.remind("tea", every="1m", zone="UTC")
        world.clock.jump(days * 86_400)
        world.sleep(15)
        world.clock.jump(days * 86_400)
        world.sleep(15)
        assert f" (missed {unread}): look" in " ".join(timer_line(timer, None) for timer in root.timers())
        assert [mail.body.partition("\n\n(Missed ")[2].split(" times")[0] for mail in root.read_mail()] == [words] * 2


def test_the_next_times_are_shown_before_a_timer_is_set() -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(echo)).root  # it is 13:46:40 on the 12th
        hours = root.next_times(every=HOURLY, zone="UTC", count=3)
        assert [f"{time:%H:%M %z}" for time in hours] == ["14:00 +0000", "15:00 +0000", "16:00 +0000"]
        assert [f"{time:%d %H:%M}" for time in root.next_times(every="36h", zone="UTC", count=2)] == [
            "14 01:46",
            "15 13:46",
        ]
        assert len(root.next_times(after=60, zone="UTC")) == 1
        with pytest.raises(BadInput, match="count"):
            root.next_times(every=HOURLY, count=0)
        assert root.timers() == []
        root.remind("tea", every="36m", zone="UTC")
        world.sleep(4 * 1_800)
        [timer] = root.timers()
        assert timer.when == "1970-01-12 16:10 UTC, then every 36m"


@pytest.mark.sample(2, "crash points")
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("commit", [1, 2, 3])
def test_a_crash_at_any_commit_of_a_firing_neither_loses_nor_repeats_it(commit: int, committed: bool) -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(echo)).root
        root.remind("tea", after=60, zone="UTC")
        root.remind("work", after=60, zone="UTC", prompt=True)
        world.crash_at(CrashPoint(commit, committed=committed))
        with pytest.raises(ProcessCrashed):
            until_it_crashes(world)
        world.recover()
        world.sleep(30)
        assert [mail.body.partition("\n")[0] for mail in world.system.root.read_mail()] == ["tea"]
        assert [text.partition("\n")[0] for text in prompts(world)] == ["work"]


@pytest.mark.sample(1, "a direction each")
@pytest.mark.parametrize("ahead", [True, False])
def test_a_clock_that_is_set_fires_early_or_late_and_never_twice(ahead: bool) -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(echo)).root
        root.remind("look", every=HOURLY, zone="UTC")  # at 14:00; it is 13:46:40
        world.clock.jump(3 * 3_600 if ahead else -3 * 3_600)
        world.sleep(15)
        early = [mail.body for mail in root.read_mail()]
        assert early == (["look\n\n(Missed 2 times since 1970-01-12 14:00, UTC.)"] if ahead else [])
        world.clock.jump(-3 * 3_600 if ahead else 3 * 3_600)
        world.sleep(3_600)
        assert [mail.body for mail in root.read_mail()] == ([] if ahead else ["look"])


@pytest.mark.thorough("two hosts; every run has the crash of one")
@pytest.mark.slow("several simulated hosts")
def test_a_timer_fires_once_on_whichever_host_has_the_agent_by_then() -> None:
    with simulated(hosts=3) as world:
        world.open(ScriptedProvider(echo))
        world.sleep(5)
        a, b, c = world.hosts
        kid = a.system.root.fork(name="kid")
        a.move(kid, b)
        c.system.handle(kid.uuid).remind("from elsewhere", after=30, zone="UTC", prompt=True)  # c does not run it
        c.system.handle(kid.uuid).remind("after the end of its host", after=90, zone="UTC")
        world.sleep(40)
        assert [message.content for message in kid.history() if message.kind == "user"] == ["from elsewhere"]
        b.kill()
        world.sleep(80)
        assert [mail.body.partition("\n")[0] for mail in kid.read_mail()] == ["after the end of its host"]
        assert kid.timers() == []


def test_an_attached_process_sets_and_cancels_timers_that_the_host_fires(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system, AttachedSystem.open(durable) as attached:
        root = attached.root
        later = root.remind("never", after=3_600)
        root.remind("soon", after=0, prompt=True)
        root.cancel_timer(later)
        while not system.root.history():
            system.root.wait([], timeout=0.01)
        assert system.root.reply(timeout=DEADLINE).text
        assert system.root.timers() == root.timers() == []
        with pytest.raises(TimerNotFound):
            root.cancel_timer(later)


def test_an_asyncio_program_sets_and_cancels_timers() -> None:
    async def run(root: AgentRef) -> None:
        first, second = await root.aio.remind("tea", after=60), await root.aio.send(root, "mail", after=60)
        await root.aio.cancel_timer(first)
        assert [timer.id for timer in root.timers()] == [second]

    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        asyncio.run(run(system.root))


def test_bad_input_is_refused_before_anything_is_set() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        root = system.root
        kid = root.fork()
        kid.kill()
        bad: list[dict[str, Any]] = [{"at": "2020-01-01"}, {"every": "x"}, {"after": 1, "zone": "Mars"}, {}]
        for wrong in bad:
            with pytest.raises(BadInput):
                root.remind("tea", **wrong)
        with pytest.raises(BadInput, match="True or False"):
            root.remind("tea", after=1, prompt="yes")  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="got at and after"):
            root.send(root, "tea", at="09:00", after=1)
        with pytest.raises(BadInput, match="zone alone"):
            root.send(root, "tea", zone="Europe/Berlin")  # it would be sent now
        with pytest.raises(AgentDead):
            kid.remind("tea", after=1)
        assert root.timers() == []
        assert [mail.kind for mail in root.read_mail()] == ["exit"]


def test_a_model_reminds_itself_and_cancels_and_is_told_what_it_may_not() -> None:
    calls = [
        ToolCall("remind", {"text": "build", "every": "0 9 * * 1-5", "zone": "UTC", "prompt": True}),
        ToolCall("remind", {"text": "often", "every": "*/5 * * * *"}),
        ToolCall("remind", {"text": "when"}),
        ToolCall("cancel_reminder", {"timer": 7}),
        ToolCall("remind", {"text": "soon", "after": 30, "prompt": True}),
        ToolCall("cancel_reminder", {"timer": 1}),
    ]
    script: list[str | Reply] = [Reply("", tuple(calls)), "done", "awake"]
    with simulated() as world:
        root = world.open(ScriptedProvider(lambda request: script.pop(0))).root
        root.prompt("go").get(timeout=60)
        results = [message.content for message in root.history() if message.kind == "tool_result"]
        assert results[0] == "Timer 1: 1970-01-13 09:00 UTC, then 0 9 * * 1-5, as a prompt."
        assert "at least 10 minutes apart" in results[1]
        assert "one of at, after and every" in results[2]
        assert "has no timer 7" in results[3]
        assert results[5] == "Cancelled."
        world.sleep(31)
        assert [message.content for message in root.history()][-2:] == ["soon", "awake"]
