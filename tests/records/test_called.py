"""Units about agents that are given by name: who is meant is decided in the transaction that writes."""

from typing import Any

import pytest

from ikigai_actors.errors import AgentNotFound, BadInput
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.agents.registry import Rename
from ikigai_actors.records.lives.delivery import delivery
from ikigai_actors.records.lives.membership import MonitorAgent
from ikigai_actors.records.mail.mail import Mail, Send
from ikigai_actors.records.mail.timers import Timer
from ikigai_actors.store import Store
from ikigai_actors.store.journal import Committed
from ikigai_actors.store.unit import Unit
from tests.kit.mailboxes import every
from tests.records.test_units import Desk


@pytest.fixture
def desk(store: Store) -> Desk:
    made = Desk(store)
    for uuid, name in (("a", "ann"), ("b", "ben")):
        made.accepts(Rename(uuid, name, 9))
    return made


def answer(desk: Desk, unit: Unit) -> Any:
    verdict = desk.write(unit)["0"]
    assert isinstance(verdict, Committed)
    return verdict.value


def test_a_name_means_whoever_has_it_when_the_unit_is_written(desk: Desk) -> None:
    unit = delivery("root", "ben", "tea", 5)
    desk.accepts(Rename("b", None, 9))
    desk.accepts(Rename("a", "ben", 9))
    sent = answer(desk, unit)
    assert isinstance(sent, Mail)
    assert (sent.recipient, sent.id) == ("a", 1)
    assert every(desk.store, "b") == []


def test_the_same_unit_can_be_written_again_for_somebody_else(desk: Desk) -> None:
    unit = delivery(None, "ben", "tea", 5)
    assert answer(desk, unit).recipient == "b"
    desk.accepts(Rename("b", None, 9))
    desk.refuses(unit, AgentNotFound)
    desk.accepts(Rename("a", "ben", 9))
    assert answer(desk, unit).recipient == "a"


def test_a_name_that_nobody_has_is_refused_when_the_unit_is_written_and_so_is_what_the_unit_refuses(desk: Desk) -> None:
    desk.refuses(delivery(None, "nobody", "tea", 5), AgentNotFound)
    desk.refuses(about("ann", MonitorAgent, lambda uuid: MonitorAgent(uuid, "a", 5)), BadInput)
    assert answer(desk, about("ben", MonitorAgent, lambda uuid: MonitorAgent(uuid, "a", 5))) is None


def test_mail_for_later_is_a_timer_of_the_recipient(desk: Desk) -> None:
    timer = answer(desk, delivery("a", "ben", "tea", 5, after=60))
    assert isinstance(timer, Timer)
    assert (timer.agent_uuid, timer.sender, timer.due_at) == ("b", "a", 60_005)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"recipient": 5}, "Expected an agent, or its uuid, name or prefix; got 5"),
        ({"body": " "}, "Expected a mail that says something"),
        ({"zone": "Europe/Berlin"}, "got zone alone"),
        ({"recipient": "group:team", "after": 5}, "Expected an agent for a mail that is sent later"),
        ({"at": "yesterday"}, "Expected"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_a_unit_is_made(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        delivery(**{"sender": None, "recipient": "ben", "body": "tea", "now": 5, **arguments})


def test_a_handle_and_a_whole_uuid_are_not_looked_up() -> None:
    uuid = "0123456789abcdefghijkl"
    for recipient in (uuid, type("Handle", (), {"uuid": uuid})()):
        assert isinstance(delivery(None, recipient, "tea", 5), Send)
