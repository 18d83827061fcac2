"""Groups and monitors in a store, by a journal that writes when the test says so."""

import pytest

from ikigai_actors.errors import AgentDead, AgentNotFound, BadInput, GroupEmpty, GroupFull, MailboxFull
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.lives.membership import (
    MOST_MEMBERS,
    Demonitor,
    GroupSent,
    JoinGroup,
    LeaveGroup,
    MonitorAgent,
    SendToGroup,
    every_group,
    group_in,
)
from ikigai_actors.records.mail.mail import EXIT, MAILBOX_CAPACITY
from ikigai_actors.store import Store
from ikigai_actors.store.journal import Committed
from ikigai_actors.store.unit import Unit
from supervisors.causes import Cause
from tests.kit.databases import sql
from tests.kit.mailboxes import every, fill
from tests.kit.trees import HOST
from tests.records.test_units import Desk


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def answer(desk: Desk, unit: Unit) -> object:
    verdict = desk.write(unit)["0"]
    assert isinstance(verdict, Committed)
    return verdict.value


def send(desk: Desk, sender: str | None = "a", body: str = "tea") -> GroupSent:
    sent = answer(desk, SendToGroup("team", sender, body, 9))
    assert isinstance(sent, GroupSent)
    return sent


def exits(desk: Desk, uuid: str) -> list[tuple[str | None, str]]:
    return [(mail.sender, mail.body) for mail in every(desk.store, uuid) if mail.kind == EXIT]


def test_a_mail_to_a_group_reaches_all_members_but_its_sender(desk: Desk) -> None:
    assert [answer(desk, JoinGroup(uuid, "team", now)) for now, uuid in enumerate("cab")] == [True, True, True]
    assert answer(desk, JoinGroup("a", "team", 7)) is False
    assert desk.store.read(every_group) == {"team": ["c", "a", "b"]}
    assert [mail.recipient for mail in send(desk).mails] == ["b", "c"]
    assert [mail.recipient for mail in send(desk, None).mails] == ["a", "b", "c"]
    assert answer(desk, LeaveGroup("b", "team", 9)) is True
    assert answer(desk, LeaveGroup("b", "team", 9)) is False
    assert [mail.recipient for mail in send(desk).mails] == ["c"]


def test_a_group_without_others_takes_no_mail(desk: Desk) -> None:
    desk.refuses(SendToGroup("team", "a", "tea", 9), GroupEmpty)
    desk.accepts(JoinGroup("a", "team", 1))
    desk.refuses(SendToGroup("team", "a", "tea", 9), GroupEmpty)
    desk.accepts(JoinGroup("d", "team", 1))
    desk.accepts(WriteDeath("d", HOST, "old age", 6))
    desk.refuses(SendToGroup("team", "a", "tea", 9), GroupEmpty)
    assert desk.store.read(every_group) == {"team": ["a"]}


@pytest.mark.slow("takes a tenth of a second")
def test_who_has_a_full_mailbox_is_passed_over_and_named(desk: Desk) -> None:
    for uuid in "bc":
        desk.accepts(JoinGroup(uuid, "team", 1))
    fill(desk.store, "b", MAILBOX_CAPACITY)
    sent = send(desk)
    assert ([mail.recipient for mail in sent.mails], sent.full) == (["c"], ("b",))
    desk.accepts(LeaveGroup("c", "team", 9))
    desk.refuses(SendToGroup("team", "a", "tea", 9), MailboxFull)


def test_the_dead_and_strangers_join_nothing_and_a_group_has_a_thousand_members_at_most(desk: Desk) -> None:
    desk.accepts(WriteDeath("d", HOST, "old age", 6))
    desk.refuses(JoinGroup("d", "team", 7), AgentDead)
    desk.refuses(JoinGroup("nobody", "team", 7), AgentNotFound)
    desk.refuses(SendToGroup("team", "d", "tea", 9), AgentDead)
    rows = ", ".join(f"('m{number}', 'root', 'root', 0, 'running', 1)" for number in range(MOST_MEMBERS))
    columns = "uuid, parent_uuid, supervisor_uuid, fork_message_id, status, created_at"
    desk.store.write(lambda tx: sql(tx, f"INSERT INTO agents ({columns}) VALUES {rows}"))
    members = ", ".join(f"('team', 'm{number}', 1)" for number in range(MOST_MEMBERS))
    desk.store.write(lambda tx: sql(tx, f"INSERT INTO groups (name, agent_uuid, joined_at) VALUES {members}"))
    desk.refuses(JoinGroup("a", "team", 7), GroupFull)


@pytest.mark.parametrize("name", ["", " ", "a b", "group:x", "-x", 5, None, "x" * 200])
def test_a_group_has_a_name_as_agents_have(name: str) -> None:
    with pytest.raises(BadInput, match="name"):
        JoinGroup("a", name, 1)
    with pytest.raises(BadInput, match="name"):
        LeaveGroup("a", name, 9)
    if isinstance(name, str):
        with pytest.raises(BadInput, match="name"):
            group_in(f"group:{name}")
    assert group_in("buyer") is group_in(5) is None
    assert group_in("group:team") == "team"


def test_who_monitors_hears_of_a_death_once_and_its_supervisor_does_as_well(desk: Desk) -> None:
    for watcher in ("d", "root", "b"):
        assert answer(desk, MonitorAgent("a", watcher, 1)) is None
    desk.accepts(MonitorAgent("a", "d", 2))  # a second time changes nothing
    desk.accepts(WriteDeath("a", HOST, "old age", 6, Cause.CRASHED))
    assert exits(desk, "d") == exits(desk, "root") == exits(desk, "b") == [("a", "crashed: old age")]
    assert desk.store.read(lambda tx: tx.run("all_monitors")) == []


def test_of_an_agent_that_is_dead_already_a_watcher_hears_at_once(desk: Desk) -> None:
    desk.accepts(WriteDeath("a", HOST, "old age", 6))
    desk.accepts(MonitorAgent("a", "d", 7))
    assert exits(desk, "d") == [("a", "damaged: old age")]
    assert desk.store.read(lambda tx: tx.run("all_monitors")) == []


def test_a_monitor_is_taken_back_and_ends_with_the_watcher(desk: Desk) -> None:
    desk.accepts(MonitorAgent("a", "d", 1))
    assert answer(desk, Demonitor("a", "d")) is True
    assert answer(desk, Demonitor("a", "d")) is False
    desk.accepts(MonitorAgent("c", "d", 1))
    desk.accepts(WriteDeath("d", HOST, "old age", 6))
    desk.accepts(WriteDeath("c", HOST, "old age", 7))
    assert exits(desk, "d") == []
    desk.refuses(MonitorAgent("a", "d", 8), AgentDead)
    desk.refuses(MonitorAgent("nobody", "a", 8), AgentNotFound)
    with pytest.raises(BadInput, match="itself"):
        MonitorAgent("a", "a", 8)
