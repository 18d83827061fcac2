"""Whatever is sent, read and deleted, in whatever batches: a mailbox is what a list of mails would be."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ikigai_actors.errors import MailNotFound
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.mail import mail as mailbox
from ikigai_actors.records.mail.mail import PERSON, Delete, Mail, Open, Read, Send, Taken
from ikigai_actors.store import Store
from ikigai_actors.store.journal import Committed, Refused
from ikigai_actors.store.unit import Unit
from tests.kit.databases import sql
from tests.kit.trees import record
from tests.records.test_units import Desk

AGENTS = ("a", "b", "c")
NOW = 7


class Sending(NamedTuple):
    """One mail, of an agent or of a person."""

    recipient: str
    sender: str | None
    length: int


class Reading(NamedTuple):
    """A read of a mailbox."""

    recipient: str
    sender: str | None
    limit: int | None


class Picking(NamedTuple):
    """One mail is opened or deleted."""

    recipient: str
    number: int
    deletes: bool


Action = Sending | Reading | Picking

agents = st.sampled_from(AGENTS)
actions = st.one_of(
    st.builds(Sending, agents, st.none() | agents, st.integers(1, 9)),
    st.builds(Sending, agents, st.none() | agents, st.integers(1, 9)),
    st.builds(Reading, agents, st.none() | st.just(PERSON) | agents, st.none() | st.integers(0, 30)),
    st.builds(Picking, agents, st.integers(1, 12), st.booleans()),
)


@dataclass
class Model:
    """What mailboxes are, in a few lines."""

    boxes: dict[str, list[Mail]] = field(default_factory=lambda: {agent: [] for agent in AGENTS})
    sent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(AGENTS, 0))

    def send(self, action: Sending, body: str) -> Mail:
        """Append; the next number."""
        self.sent[action.recipient] += 1
        mail = Mail(action.recipient, self.sent[action.recipient], action.sender, "mail", body, NOW, None)
        self.boxes[action.recipient].append(mail)
        return mail

    def read(self, action: Reading) -> Taken:
        """The oldest unread that fit."""
        taken: list[Mail] = []
        total = 0
        for mail in self.boxes[action.recipient]:
            if mail.read_at is None and action.sender in (None, mail.sender or PERSON):
                total += len(mail.body)
                if taken and action.limit is not None and total > action.limit:
                    break
                taken.append(mail)
        read = [self.replace(mail, replace(mail, read_at=NOW)) for mail in taken]
        return Taken(tuple(read), self.unread(action.recipient))

    def pick(self, action: Picking) -> Mail | None:
        """The mail as it is afterwards; None when there is none."""
        for mail in self.boxes[action.recipient]:
            if mail.id == action.number:
                if action.deletes:
                    self.boxes[action.recipient].remove(mail)
                    return mail
                return self.replace(mail, replace(mail, read_at=NOW))
        return None

    def replace(self, old: Mail, new: Mail) -> Mail:
        """Put one mail in the place of another."""
        box = self.boxes[old.recipient]
        box[box.index(old)] = new
        return new

    def unread(self, agent: str) -> int:
        """How many are unread."""
        return sum(mail.read_at is None for mail in self.boxes[agent])


def emptied(store: Store) -> Store:
    """The store without agents and mail: each example begins anew."""
    for statement in (
        "DELETE FROM mail",
        "DELETE FROM budgets",
        "DELETE FROM agents",
        "UPDATE shards SET host = NULL",
        "DELETE FROM hosts",
        "UPDATE tree SET version = 0",
    ):
        store.write(lambda tx, statement=statement: sql(tx, statement))  # type: ignore[misc]  # binds the loop's value
    return store


@pytest.mark.slow("takes half a second")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=st.lists(actions, max_size=25))
def test_a_mailbox_is_what_a_list_of_mails_would_be(store: Store, script: list[Action]) -> None:
    desk, model = Desk(emptied(store)), Model()
    for count, action in enumerate(script):
        verdict = desk.write(unit_of(action, count))["0"]
        match action:
            case Sending():
                assert verdict == Committed(model.send(action, body(action, count)))
            case Reading():
                assert verdict == Committed(model.read(action))
            case Picking():
                expected = model.pick(action)
                if expected is None:
                    assert isinstance(verdict, Refused)
                    assert isinstance(verdict.error, MailNotFound)
                else:
                    assert verdict == Committed(None if action.deletes else expected)
    agrees(desk, model)


@pytest.mark.slow("takes half a second")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(st.builds(Sending, agents, st.none() | agents, st.just(1)), max_size=12), max_size=6))
def test_ids_are_dense_and_the_mails_of_a_sender_in_order_in_whatever_batches(
    store: Store, batches: list[list[Sending]]
) -> None:
    desk, model = Desk(emptied(store)), Model()
    for place, batch in enumerate(batches):
        desk.write(*[unit_of(action, 100 * place + count) for count, action in enumerate(batch)])
        for count, action in enumerate(batch):
            model.send(action, body(action, 100 * place + count))
    agrees(desk, model)
    for agent in AGENTS:
        mails = store.read(lambda tx, agent=agent: mailbox.latest(tx, agent))  # type: ignore[misc]  # likewise
        assert [mail.id for mail in mails] == list(range(1, len(mails) + 1))


def body(action: Sending, count: int) -> str:
    """A text of its own for each mail."""
    return f"{count} " + "x" * action.length


def unit_of(action: Action, count: int) -> Unit:
    match action:
        case Sending():
            return Send(action.recipient, action.sender, body(action, count), NOW)
        case Reading():
            return Read(action.recipient, NOW, action.sender, action.limit)
        case Picking():
            wanted = (action.recipient, action.number)
            return Delete(*wanted) if action.deletes else Open(*wanted, NOW)


def agrees(desk: Desk, model: Model) -> None:
    """The rows and the counts are what the model says, and sound."""
    for agent in AGENTS:
        mails = desk.store.read(lambda tx, agent=agent: mailbox.latest(tx, agent))  # type: ignore[misc]  # likewise
        assert mails == model.boxes[agent]
        row = record(desk.store, agent)
        assert (row.mailed, row.unread) == (model.sent[agent], model.unread(agent))
    assert not [each for each in fsck.check(desk.store) if each.invariant in ("mail", "mail-id", "unread")]
