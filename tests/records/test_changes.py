"""What has changed in the registry since a version of the tree."""

import pytest

from ikigai_actors.errors import MailNotFound
from ikigai_actors.records.agents.registry import Rename
from ikigai_actors.records.hosts.changes import AgentChange, Changes, changes_since
from ikigai_actors.records.lives.exit_mails import End
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.mail.mail import PROMPT, Send
from ikigai_actors.records.mail.prompts import PromptInterrupted, new_prompts
from ikigai_actors.store import Store
from supervisors.causes import Cause
from supervisors.signals import Signal, Status
from tests.kit.trees import HOST, append
from tests.records.test_units import Desk

NOW = 5


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def changes(desk: Desk, version: int) -> Changes:
    return desk.store.read(lambda tx: changes_since(tx, version))


def test_a_birth_and_a_message_are_no_changes(desk: Desk) -> None:
    before = changes(desk, 0)
    desk.write(append("a", 1, turn=1))
    assert changes(desk, 0) == before


def test_a_signal_a_death_and_a_name_are_changes_since_then_and_not_since_later(desk: Desk) -> None:
    start = changes(desk, 0).version
    desk.write(SendSignal("a", Signal.STOP, NOW, reason="lunch"))
    stopped = changes(desk, start)
    assert stopped.agents == [AgentChange("a", Status.STOPPED, "STOP by a person: lunch", None, None, 0, 0)]
    desk.write(Rename("b", "bee", 9))
    desk.write(SendSignal("c", Signal.KILL, NOW, reason="over"))
    later = changes(desk, stopped.version)
    assert {agent.uuid: (agent.status, agent.end, agent.name) for agent in later.agents} == {
        "b": (Status.RUNNING, None, "bee"),
        "c": (Status.DEAD, End(Cause.KILLED, "over"), None),
    }
    assert changes(desk, later.version) == Changes(later.version, [])


def test_int_marks_the_open_turns_of_agents_that_its_sender_does_not_run(desk: Desk) -> None:
    desk.write(append("a", 1, turn=1), append("b", 1, turn=1))
    start = changes(desk, 0).version
    desk.write(SendSignal("a", Signal.INT, NOW, host=HOST))
    assert changes(desk, start).agents == []
    desk.write(SendSignal("a", Signal.INT, NOW))
    assert [(agent.uuid, agent.interrupted) for agent in changes(desk, start).agents] == [("a", 1)]
    desk.write(append("a", 2, turn=0))
    assert [(agent.uuid, agent.interrupted) for agent in changes(desk, start).agents] == [("a", 0)]


def test_int_without_an_open_turn_marks_the_oldest_prompt_of_agents_that_its_sender_does_not_run(desk: Desk) -> None:
    desk.write(append("a", 1), append("b", 1, turn=1))
    desk.write(*(Send(agent, None, text, NOW, PROMPT) for agent in "ab" for text in ("one", "two")))
    start = changes(desk, 0).version
    desk.write(SendSignal("a", Signal.INT, NOW, host=HOST))
    assert changes(desk, start).agents == []
    desk.write(SendSignal("a", Signal.INT, NOW, spread=True))
    assert {agent.uuid: (agent.interrupted, agent.prompt) for agent in changes(desk, start).agents} == {
        "a": (0, 1),
        "b": (1, 0),
    }
    marked = {(prompt.agent, prompt.text) for prompt in desk.store.read(new_prompts) if prompt.interrupted}
    assert marked == {("a", "one")}
    desk.write(SendSignal("a", Signal.INT, NOW))
    assert [agent.prompt for agent in changes(desk, start).agents if agent.uuid == "a"] == [2]
    before = changes(desk, 0).version
    desk.write(SendSignal("a", Signal.INT, NOW))  # all of them are marked
    assert changes(desk, before).agents == []


def test_a_prompt_that_is_marked_is_taken_up_by_a_unit_that_ends_its_turn_alone(desk: Desk) -> None:
    desk.write(append("a", 1))
    desk.write(Send("a", None, "one", NOW, PROMPT))
    desk.write(SendSignal("a", Signal.INT, NOW))
    desk.refuses(append("a", 2, turn=2, prompt=1), PromptInterrupted)
    desk.accepts(append("a", 2, turn=0, prompt=1))
    desk.refuses(append("a", 3, turn=3, prompt=1), MailNotFound)
