"""Hosts that share agents, under faults of every kind, while hands do all that agents can be asked for."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import psycopg
import pytest

from ikigai_actors import ActorSystem, FunctionProvider, Reply
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.store import open_store
from ikigai_actors.store.migrations import ensure_schema
from tests.conftest import NewDatabase
from tests.torture.fleet.audit import audit, audited, second_writers
from tests.torture.fleet.campaign import torture
from tests.torture.fleet.facts import Asked, Fact, Reminded, Sent
from tests.torture.fleet.hands import DEEDS, MEMBERS, Hand, Work
from tests.torture.fleet.hosts import PRICE, SHORT_LEASE
from tests.torture.fleet.judge import Found, blamed, find, violations
from tests.torture.script import place
from tests.torture.victim import Died

EVERY = {"kill": 2, "stop": 1, "freeze": 1, "drain": 1, "cut": 1}


@pytest.mark.thorough("hosts as processes under faults; the simulation has them in the suite")
def test_hosts_under_faults_lose_nothing_and_answer_everything_once() -> None:
    result = torture(faults=5, seed=1, weights=EVERY, leases=(SHORT_LEASE,))
    assert result.violations == []
    assert sum(result.counts[kind] for kind in EVERY) == 5
    assert result.counts["prompt"] > 0


@pytest.fixture
def work() -> Iterator[Work]:
    """Hands without a fleet."""
    provider = FunctionProvider(lambda request: Reply(f"answer to {place(request)[0]}", usage=PRICE), "code")
    with ActorSystem.open("sqlite:///:memory:", provider=provider) as system:
        made = Work(system, "1.0")
        made.populate(MEMBERS + 1)
        yield made


# The judge finds what it is there for.


class Life(NamedTuple):
    """What there is to judge."""

    facts: list[Fact]
    now: Found
    ran: Counter[str]

    def faults(self) -> set[str]:
        """What the judge says, each violation as its first word."""
        return {violation.partition(":")[0] for violation in violations(self.facts, self.now, self.ran)}


@pytest.fixture
def life(work: Work) -> Life:
    """Every deed, done once."""
    hand = Hand(work, 0)
    for deed, token in zip(DEEDS, hand.tokens(), strict=False):
        hand.do(deed, token)
    work.agents[0].remind("later", after=3_600)  # the hand may have been in time to take its own back
    work.facts.append(Reminded(work.agents[0].uuid, "later", False))
    assert work.complaints == []
    assert blamed(work.history) == []
    return Life(work.facts, find(work.system._store), Counter())


def test_a_mail_that_a_later_look_has_not_is_blamed(work: Work) -> None:
    hand = Hand(work, 0)
    for deed, token in zip(["send", "publish", *["look"] * 20], hand.tokens(), strict=False):
        hand.do(deed, token)
    looks = [operation for operation in work.history if operation["ops"][0][0] == "read" and operation["ops"][0][2]]
    assert looks
    assert blamed(work.history) == []
    looks[0]["ops"][0][2].clear()
    assert {blame.split(": ")[1] for blame in blamed(work.history)} == {"G-single-process"}


def test_the_judge_finds_nothing_wrong_with_what_was_done(life: Life) -> None:
    assert {type(fact).__name__ for fact in life.facts} == {
        "Asked",
        "Sent",
        "Published",
        "Forked",
        "Died",
        "Said",
        "Entered",
        "Wrote",
        "Reminded",
        "Addressed",
        "Grouped",
        "TookIn",
        "Granted",
    }
    assert life.faults() == set()


def test_a_prompt_that_was_answered_twice_or_never_is_found(life: Life) -> None:
    [asked, *_] = [fact for fact in life.facts if isinstance(fact, Asked)]
    log = life.now.agents.logs[asked.agent]
    answer = next(
        message for message in log.values() if message.kind == Kind.ASSISTANT and message.content.endswith(asked.text)
    )
    without = {number: message for number, message in log.items() if message is not answer}
    for logs in ({**log, 99: replace(answer, id=99)}, without):
        agents = life.now.agents._replace(logs={**life.now.agents.logs, asked.agent: logs})
        assert "unanswered" in life._replace(now=life.now._replace(agents=agents)).faults()


def test_a_mail_that_is_lost_or_there_twice_is_found(life: Life) -> None:
    [sent] = [fact for fact in life.facts if isinstance(fact, Sent)]
    place, mail = (sent.recipient, sent.number), life.now.mails[sent.recipient, sent.number]
    others = {number: kept for number, kept in life.now.mails.items() if kept != mail}
    for mails in (others, {**others, place: mail, (sent.recipient, 99): mail}):
        assert life._replace(now=life.now._replace(mails=mails)).faults() == {"undelivered"}


def test_an_agent_that_lives_below_a_tree_that_was_killed_is_found(life: Life) -> None:
    [died] = [fact for fact in life.facts if isinstance(fact, Died)]
    top = died.heads[-1][0]
    records = life.now.agents.records
    [late, *_] = [record for record in records.values() if record.living and record.parent_uuid is not None]
    born = replace(late, uuid="late", parent_uuid=top)
    agents = life.now.agents._replace(records={**records, "late": born}, logs={**life.now.agents.logs, "late": {}})
    assert life._replace(now=life.now._replace(agents=agents)).faults() == {"escaped"}


def never_reminded(now: Found) -> Found:
    return now._replace(notices=Counter(), waiting=frozenset())


def out_of_its_groups(now: Found) -> Found:
    return now._replace(groups={})


def merged_elsewhere(now: Found) -> Found:
    logs = {uuid: {message.id + 1: message for message in log.values()} for uuid, log in now.agents.logs.items()}
    return now._replace(agents=now.agents._replace(logs=logs))


def spent_too_much(now: Found) -> Found:
    return now._replace(
        budgets={owner: (limit, limit + 1, booked) for owner, (limit, _, booked) in now.budgets.items()}
    )


def spent_by_nobody(now: Found) -> Found:
    return now._replace(
        budgets={owner: (limit, booked - 1, booked) for owner, (limit, _, booked) in now.budgets.items()}
    )


def written_by_another_clock(now: Found) -> Found:
    logs = {
        uuid: {
            message.id: replace(message, created_at=message.created_at - 60_000 * (message.id % 2))
            for message in log.values()
        }
        for uuid, log in now.agents.logs.items()
    }
    return now._replace(agents=now.agents._replace(logs=logs))


@pytest.mark.sample(2, "laws")
@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (never_reminded, "forgotten"),
        (out_of_its_groups, "scattered"),
        (merged_elsewhere, "unmerged"),
        (spent_too_much, "overspent"),
        (spent_by_nobody, "overspent"),
        (written_by_another_clock, "back"),
    ],
)
def test_the_judge_sees_damage(life: Life, damage: Callable[[Found], Found], expected: str) -> None:
    assert expected in life._replace(now=damage(life.now)).faults()


MESSAGE = "INSERT INTO messages VALUES ('agent', %s, 'user', 'text', NULL, 1, 'none')"


def test_who_writes_for_an_agent_of_another_host_is_found_and_so_are_two_in_one_epoch(
    new_postgres: NewDatabase,
) -> None:
    url = new_postgres()
    with (
        closing(open_store(url)) as store,
        psycopg.connect(url, autocommit=True) as admin,
        psycopg.connect(url, application_name="ikigai a") as a,
        psycopg.connect(url, application_name="ikigai b") as b,
    ):
        ensure_schema(store)
        audit(admin)
        admin.execute(
            "INSERT INTO hosts (id, hostname, pid, epoch, started_at, lease_until)"
            " VALUES ('a', '', 1, 1, 1, 1), ('b', '', 2, 2, 1, 1)"
        )
        admin.execute(
            "INSERT INTO agents (uuid, fork_message_id, status, created_at) VALUES ('agent', 0, 'running', 1)"
        )
        admin.execute("UPDATE shards SET host = 'a', epoch = 1 WHERE id = 0")
        a.execute(MESSAGE, [1])
        a.commit()
        assert [*second_writers(store.read(audited))] == []
        a.execute(MESSAGE, [2])  # which is committed when b has the agent
        admin.execute("UPDATE shards SET host = 'b', epoch = 2 WHERE id = 0")
        a.commit()
        assert [*second_writers(store.read(audited))] == ["writer: ikigai a wrote 2 of agent, which was ikigai b's"]
        b.execute(MESSAGE, [3])
        b.commit()
        admin.execute("UPDATE hosts SET ended_at = 1 WHERE id = 'b'")
        b.execute(MESSAGE, [4])
        b.commit()
        assert [*second_writers(store.read(audited))][1:] == [
            "writer: ikigai a and ikigai b have both written in epoch 2 of shard 0",
            "writer: ikigai b wrote 4 of agent, which was ikigai b's, which had ended",
            "writer: ikigai a and ikigai b have both written in epoch 2 of shard 0",
        ]
