"""``kill -9`` at random moments: nothing acknowledged is lost, nothing is done twice, and every history is true."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from ikigai_actors import AgentRecord, Message, Signal
from ikigai_actors.records.messages.messages import Kind
from tests.conftest import NewDatabase
from tests.torture import judge
from tests.torture.campaign import torture
from tests.torture.script import ONCE, World, open_when_free
from tests.torture.snapshot import NOTHING, Snapshot, take
from tests.torture.victim import (
    PATIENCE,
    Bereft,
    Died,
    Doomed,
    Entered,
    Forked,
    Heard,
    Joined,
    Reminded,
    Report,
    Said,
    TookBack,
    Wrote,
    outcome,
)

KILLS = 2


@pytest.mark.sample(1, "a second database")
def test_kill_9_at_random_moments_loses_nothing_and_does_nothing_twice(
    durable_url: NewDatabase, tmp_path: Path
) -> None:
    tally = torture(durable_url, tmp_path, KILLS, seed=1)
    assert tally.violations == []
    assert tally.counts["kills"] == KILLS
    assert tally.counts["messages"] > 0


@pytest.mark.thorough("twenty kills on each database")
def test_kill_9_with_words_in_flight_loses_no_word(durable_url: NewDatabase, tmp_path: Path) -> None:
    tally = torture(durable_url, tmp_path, 20, seed=4)
    assert tally.violations == []
    assert tally.counts["words"] > 20
    assert tally.counts["unread"] > 0


# The judge finds what it is there for.


class Life(NamedTuple):
    """What there is to judge."""

    reports: list[Report]
    now: Snapshot
    ran: Counter[str]

    def faults(self) -> list[str]:
        """What the judge says, each violation as its first word."""
        faults = [*judge.lost(self.reports, self.now), *judge.doubled(self.now), *judge.untrue(self.now, self.ran)]
        faults += judge.undead(NOTHING, self.reports, self.now)
        return sorted({fault.split(":")[0] for fault in faults})

    def change(self, message: Message, instead: Message | None) -> "Life":
        """A message is another one, or missing; nobody was told of it."""
        log = {**self.now.logs[message.agent_uuid], message.id: instead}
        kept = {position: entry for position, entry in log.items() if entry is not None}
        reports = [report for report in self.reports if report != Heard(message)]
        return self._replace(reports=reports, now=self.now._replace(logs={**self.now.logs, message.agent_uuid: kept}))

    def first(self, kind: str, *names: str) -> Message:
        """The first message of a kind that is of a call of one of these tools, or of any; no child's news."""
        return next(
            message
            for message in self.now.messages
            if message.kind == kind
            and (not names or message.data.get("name") in names)
            and not message.content.startswith("You are the child")
            and not message.data.get("is_error")
        )


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A life without crashes."""
    path = tmp_path_factory.mktemp("world") / "did"
    world, reports = World(path), list[Report]()
    with open_when_free("sqlite:///:memory:", world, pytest.fail) as system:
        root = system.root
        for number in range(8):
            prompt = f"prompt {number}"
            reports.append(outcome(0, root, prompt, partial(root.prompt(prompt).get, timeout=PATIENCE)))
        reports.append(Wrote(0, root.uuid, root.mark("here"), Kind.MARK, "here"))
        receipt = root.steer("word")
        reports.append(Said(0, root.uuid, receipt.kept.get(timeout=PATIENCE), "word"))
        reports.append(Entered(0, root.uuid, receipt.get(timeout=PATIENCE).position, "word"))
        reports.append(Forked(0, root.uuid, root.fork("prompt 8").uuid, "prompt 8"))
        reports.append(Wrote(0, root.uuid, root.undo(), Kind.REWIND, ""))
        root.remind("later", after=1000)
        root.join("some")
        reports += [Reminded(0, root.uuid, "later"), Joined(0, root.uuid, "some", True)]
        top = root.fork()
        kid = top.fork(on_orphan="continue")
        grandchild = kid.fork()
        heads = tuple((agent.uuid, agent.history(all=True)[-1].id) for agent in (kid, top))
        kid.kill(reason="first")
        top.kill(reason="second")
        reports += [Died(0, heads[:1], "first"), Died(0, heads[1:], "second"), Bereft(0, kid.uuid)]
        grandchild.signal(Signal.TERM)
        reports.append(Doomed(0, grandchild.uuid))
        while working := [system.handle(record.uuid) for record in system.agents() if record.turn]:
            reports += [outcome(0, agent, None, partial(agent.reply, PATIENCE)) for agent in working]
        now = take(system._store)
    world.close()
    return Life([*reports, *map(Heard, now.messages)], now, world.runs())


def test_the_judge_has_nothing_to_say_of_a_life_without_crashes(life: Life) -> None:
    assert life.faults() == []
    assert list(judge.altered(life.now, life.now)) == []
    kinds = Counter(message.kind for message in life.now.messages)
    assert kinds[Kind.FORK] > 2
    assert kinds[Kind.TOOL_CALL] > 10


def ran_twice(life: Life) -> Life:
    """A tool that is not idempotent."""
    key = next(key for key in life.ran if key.split()[0] in ONCE)
    return life._replace(ran=life.ran + Counter([key]))


def result_missing(life: Life) -> Life:
    return life.change(life.first(Kind.TOOL_RESULT, *ONCE), None)


def result_twice(life: Life) -> Life:
    record = life.first(Kind.TOOL_CALL, *ONCE)
    [result] = [
        message
        for message in life.now.messages
        if message.kind == Kind.TOOL_RESULT and message.data["tool_use_id"] == record.data["tool_use_id"]
    ]
    log = [*life.now.logs[result.agent_uuid].values()]
    log.insert(log.index(result), result)
    return Life([], life.now._replace(logs={**life.now.logs, result.agent_uuid: dict(enumerate(log))}), life.ran)


def prompt_twice(life: Life) -> Life:
    return life.change(life.first(Kind.MARK), life.first(Kind.USER))


def mark_lost(life: Life) -> Life:
    return life.change(life.first(Kind.MARK), None)


def word_lost(life: Life) -> Life:
    """Its mail is gone, and nothing says that it was withdrawn."""
    return life._replace(now=life.now._replace(words={}))


def word_not_withdrawn(life: Life) -> Life:
    """Its mail is there."""
    [said] = [report for report in life.reports if isinstance(report, Said)]
    return life._replace(reports=[*life.reports, TookBack(*said)])


def word_elsewhere(life: Life) -> Life:
    """Its receipt names another position."""
    return life._replace(
        reports=[report._replace(position=1) if isinstance(report, Entered) else report for report in life.reports]
    )


def timer_lost(life: Life) -> Life:
    return life._replace(now=life.now._replace(reminders={}))


def member_lost(life: Life) -> Life:
    return life._replace(now=life.now._replace(members=frozenset()))


def answer_lost(life: Life) -> Life:
    answer = next(message for message in life.now.messages if message.content == "done with prompt 7")
    return life.change(answer, replace(answer, content="something else"))


def child_lost(life: Life) -> Life:
    [report] = [report for report in life.reports if isinstance(report, Forked)]
    records = {uuid: record for uuid, record in life.now.records.items() if uuid != report.child}
    return life._replace(now=life.now._replace(records=records))


def dead_of(life: Life, reason: str) -> AgentRecord:
    """Who died so."""
    return next(record for record in life.now.records.values() if record.exit_reason == reason)


def with_record(life: Life, record: AgentRecord) -> Life:
    return life._replace(now=life.now._replace(records={**life.now.records, record.uuid: record}))


def came_back(life: Life) -> Life:
    return with_record(life, replace(dead_of(life, "second"), status="running"))


def wrote_after_its_death(life: Life) -> Life:
    victim = dead_of(life, "second").uuid
    late = Message(victim, 10_000, Kind.ASSISTANT, "I still live.", {}, 1)
    return life._replace(now=life.now._replace(logs={**life.now.logs, victim: {**life.now.logs[victim], 10_000: late}}))


def survived_a_term(life: Life) -> Life:
    [uuid] = [report.agent for report in life.reports if isinstance(report, Doomed)]
    return with_record(life, replace(life.now.records[uuid], status="running"))


def nobody_told(life: Life) -> Life:
    return life._replace(now=life.now._replace(obituaries=life.now.obituaries[1:]))


def left_alone(life: Life) -> Life:
    """The policy of the dead supervisor is another one than that which leaves orphans."""
    lonely = next(report.child for report in life.reports if isinstance(report, Forked))
    return with_record(life, replace(life.now.records[lonely], supervisor_uuid=dead_of(life, "second").uuid))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (ran_twice, "untrue"),
        (result_missing, "untrue"),
        (result_twice, "untrue"),
        (prompt_twice, "doubled"),
        (mark_lost, "lost"),
        (word_lost, "lost"),
        (word_not_withdrawn, "lost"),
        (word_elsewhere, "lost"),
        (timer_lost, "lost"),
        (member_lost, "lost"),
        (answer_lost, "lost"),
        (child_lost, "lost"),
        (came_back, "undead"),
        (wrote_after_its_death, "undead"),
        (survived_a_term, "undead"),
        (nobody_told, "undead"),
        (left_alone, "undead"),
    ],
)
def test_the_judge_sees_damage(life: Life, damage: Callable[[Life], Life], expected: str) -> None:
    assert expected in damage(life).faults()


def test_the_judge_sees_logs_that_do_not_only_grow(life: Life) -> None:
    message = life.first(Kind.ASSISTANT)
    edited = life.change(message, replace(message, content="I never said that."))
    assert len(list(judge.altered(life.now, edited.now))) == 1
    assert len(list(judge.altered(life.now, life.change(message, None).now))) == 1
    dead = dead_of(life, "second")
    assert list(judge.undead(life.now, [], life.now)) == []
    assert len(list(judge.undead(life.now, [], with_record(life, replace(dead, mailed=9)).now))) == 1
    assert len(list(judge.undead(life.now, [], wrote_after_its_death(life).now))) == 1
    gone = list(judge.altered(life.now, NOTHING))
    assert len(gone) == len(life.now.records) + len(list(life.now.messages))
