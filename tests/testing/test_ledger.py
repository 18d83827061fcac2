"""The invariants that the machine of the kit looks at after each rule and at rest: each finds what is planted here."""

import asyncio
from collections.abc import Iterator
from dataclasses import astuple

import pytest

from ikigai_actors import Reply, Request, Signal
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.providers.base import OnDelta, Provider
from ikigai_actors.records.mail import KeepPrompt, Mail
from ikigai_actors.store.unit import write_alone
from ikigai_actors.testing import AgentTreeMachine, Broken, Faults, Schedule
from ikigai_actors.testing.machine.fixtures import OwnCode
from ikigai_actors.testing.machine.model import Ledger, check_wait
from ikigai_actors.testing.simulation.store import Written
from tests.kit.planted import begun


@pytest.fixture
def machine() -> Iterator[AgentTreeMachine]:
    """One in which something wrong can be planted."""
    with begun() as made:
        yield made


def execute(machine: AgentTreeMachine, sql: str) -> None:
    """Change the database past everybody who looks at commits."""
    machine.world.checks = False
    machine.world.process.store.write(lambda tx: tx.schema.execute(sql))


def mail(number: int, body: str = "x") -> Mail:
    return Mail("b", number, "a", "mail", body, 1, None)


def test_mails_of_one_sender_that_are_numbered_in_another_order_are_found() -> None:
    ledger = Ledger()
    ledger.was_sent("a", "b", 2, "x")
    ledger.was_sent("c", "b", 1, "x")
    with pytest.raises(Broken, match="mail: mail 1 of a to b was sent after mail 2"):
        ledger.was_sent("a", "b", 1, "x")


@pytest.mark.parametrize("numbers", [[1], [2, 1], [3, 3]])
def test_mails_that_are_read_twice_or_out_of_order_are_found(numbers: list[int]) -> None:
    ledger = Ledger()
    ledger.oracle.committed([Written("mail", astuple(mail(number))) for number in (1, 2, 3)])
    ledger.reads("b", [mail(1)])
    with pytest.raises(Broken, match="mail: agent b read"):
        ledger.reads("b", [mail(number) for number in numbers])


def test_a_mail_that_says_something_else_than_was_sent_is_found() -> None:
    ledger = Ledger()
    ledger.oracle.committed([Written("mail", astuple(mail(1)))])
    with pytest.raises(Broken, match="mail: agent b read 'y' as mail 1, which is not what was sent"):
        ledger.reads("b", [mail(1, "y")])


def test_who_lives_below_whom_a_cascade_has_hit_is_found(machine: AgentTreeMachine) -> None:
    child = machine.agent(1)
    machine.ledger.check_cascade([], machine.living())
    with pytest.raises(Broken, match=f"cascade: {child.uuid} outlived it"):
        machine.ledger.check_cascade([child.uuid], machine.living())


def test_a_history_that_is_not_what_copying_gives_is_found(machine: AgentTreeMachine) -> None:
    uuid = machine.agent(1).uuid
    copy = machine.ledger.oracle.histories[uuid]
    copy.stored.append(copy.head + 1)
    with pytest.raises(Broken, match=f"history: expected .* in the ranges of agent {uuid}"):
        machine.history_is_what_copying_gives()
    copy.visible.append(copy.head + 1)
    with pytest.raises(Broken, match=f"history: expected .* for agent {uuid} in memory"):
        machine.history_is_what_copying_gives()


def test_a_message_that_is_remembered_and_lost_in_the_database_is_found(machine: AgentTreeMachine) -> None:
    machine.mark(who=1, label="here")
    machine.history_is_what_copying_gives()
    machine.mark(who=1, label="there")
    execute(machine, "DELETE FROM messages WHERE content = 'there'")
    with pytest.raises(Broken, match=r"history: expected .* in the database"):
        machine.history_is_what_copying_gives()


@pytest.mark.parametrize("living", [True, False])
def test_a_message_that_is_not_remembered_when_all_is_at_rest_is_found(machine: AgentTreeMachine, living: bool) -> None:
    if not living:
        machine.kill(who=1, spread=False)
        machine.world.settle()
    uuid = machine.agent(1).uuid
    head = machine.ledger.oracle.histories[uuid].head
    machine.ledger.oracle.committed([Written("messages", (uuid, head + 1, "user", "x", "{}", 1))])
    with pytest.raises(Broken, match=r"history: expected .* in memory"):
        machine.history_is_what_copying_gives()


def test_who_has_not_heard_of_its_commit_yet_need_not_remember_it() -> None:
    """While the store does not answer the journal asks again, a little later: until then nothing happens."""
    behind = 0
    for number in range(20):
        with begun(schedule=Schedule({number: 1}), misfortunes=Faults(unanswered=1)) as machine:
            machine.prompt(who=1, text="go", answers=[])
            machine.world.settle()
            uuid = machine.agent(1).uuid
            behind += machine.system.log_cache.load(uuid).head < machine.ledger.oracle.histories[uuid].head
            machine.history_is_what_copying_gives()
            machine.comes_to_rest()
            machine.history_is_what_copying_gives()
    assert behind


def test_siblings_with_a_clear_of_their_parent_between_them_share_nothing(machine: AgentTreeMachine) -> None:
    for text in ("one", "two"):
        machine.prompt(who=0, text=text, answers=[])
        machine.world.settle()
        machine.fork(who=0, prompt="go", reply="ok")
        machine.world.settle()
        machine.clear(who=0)
    machine.siblings_share_what_they_were_sent()
    first, second = [request for request in machine.world.requests if request.agent != machine.system.root.uuid]
    assert first.shared == second.shared
    assert first.messages[0] != second.messages[0]


def test_an_agent_that_is_not_there_any_more_is_found(machine: AgentTreeMachine) -> None:
    machine.ledger.known["nobody"] = None
    with pytest.raises(Broken, match="acknowledged: agent nobody is not in the registry"):
        machine.what_was_acknowledged_is_there()


def test_a_dead_agent_that_lives_is_found(machine: AgentTreeMachine) -> None:
    machine.kill(who=1, spread=False)
    machine.what_was_acknowledged_is_there()
    execute(machine, "UPDATE agents SET status = 'running', ended_at = NULL WHERE status = 'dead'")
    with pytest.raises(Broken, match=r"acknowledged: agent .* lives, and was said to be dead"):
        machine.what_was_acknowledged_is_there()


def test_a_mail_that_is_not_kept_as_it_was_sent_is_found(machine: AgentTreeMachine) -> None:
    machine.send(sender=0, recipient=1, body="x")
    machine.what_was_acknowledged_is_there()
    execute(machine, "UPDATE mail SET body = 'y'")
    with pytest.raises(Broken, match=r"acknowledged: mail 1 of agent .* is not what was sent"):
        machine.what_was_acknowledged_is_there()


def test_a_version_of_a_document_that_is_lost_is_found(machine: AgentTreeMachine) -> None:
    for _ in range(2):
        machine.write_document(path="plan.md", author=0, careful=True)
    machine.what_was_acknowledged_is_there()
    execute(machine, "DELETE FROM documents WHERE version = 2")
    with pytest.raises(Broken, match=r"acknowledged: version 2 of document plan\.md is lost"):
        machine.what_was_acknowledged_is_there()


def test_a_mark_that_is_not_where_it_was_said_to_be_is_found(machine: AgentTreeMachine) -> None:
    machine.mark(who=1, label="here")
    machine.what_was_acknowledged_is_there()
    [(agent, position)] = machine.ledger.marks
    machine.ledger.marks[agent, position + 1] = "here"
    with pytest.raises(Broken, match=f"acknowledged: mark 'here' of agent {agent} is not at {position + 1}"):
        machine.what_was_acknowledged_is_there()


def test_who_lives_and_has_a_dead_supervisor_is_found(machine: AgentTreeMachine) -> None:
    parent = machine.agent(1)
    child = parent.fork()
    machine.what_was_acknowledged_is_there()
    execute(machine, f"UPDATE agents SET status = 'dead', ended_at = 1 WHERE uuid = '{parent.uuid}'")
    with pytest.raises(Broken, match=f"supervised: the supervisor of agent {child.uuid} is dead"):
        machine.what_was_acknowledged_is_there()


def test_who_terminates_and_lives_on_without_a_turn_is_found(machine: AgentTreeMachine) -> None:
    uuid = machine.agent(1).uuid
    execute(machine, f"UPDATE agents SET status = 'terminating' WHERE uuid = '{uuid}'")
    with pytest.raises(Broken, match=f"signals: agent {uuid} terminates, its turn is over, and it lives"):
        machine.ledger.check_rest(machine.world)


class Mute(AgentTreeMachine):
    """Its models never answer, and nothing says so."""

    def provider(self) -> Provider:
        class Never(OwnCode):
            async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
                never: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
                return await never

        return Never([])


def test_a_turn_that_nothing_can_end_is_found() -> None:
    with begun(Mute) as machine:
        machine.prompt(who=1, text="go", answers=[])
        with pytest.raises(Broken, match=f"quiescence: agent {machine.agent(1).uuid} is waiting for the model"):
            machine.comes_to_rest()


def test_a_prompt_by_mail_that_an_idle_agent_leaves_where_it_is_is_found(machine: AgentTreeMachine) -> None:
    agent = machine.agent(1)
    write_alone(machine.world.process.looked_at, KeepPrompt(agent.uuid, "x", 1, 0))
    with pytest.raises(Broken, match=f"quiescence: agent {agent.uuid} is idle, and leaves prompt 1 'x' where it is"):
        machine.ledger.check_rest(machine.world)


def test_a_prompt_that_nothing_can_answer_is_found_unless_somebody_is_stopped(machine: AgentTreeMachine) -> None:
    machine.ledger.open.append(Future(machine.agent(1).uuid))
    with pytest.raises(Broken, match="quiescence: 1 prompts have no answer, and nothing can happen"):
        machine.comes_to_rest()
    machine.signal(who=2, signal=Signal.STOP, spread=False)
    machine.comes_to_rest()


def test_a_wait_that_says_nothing_of_somebody_is_found(machine: AgentTreeMachine) -> None:
    root, children = machine.agent(0), [machine.agent(1), machine.agent(2)]
    check_wait(machine.system, root, children, dict.fromkeys(children, WaitResult.IDLE), None)
    with pytest.raises(Broken, match="wait: expected answers for"):
        check_wait(machine.system, root, children, {children[0]: WaitResult.IDLE}, None)


def test_a_wait_that_mail_of_a_person_has_ended_is_true(machine: AgentTreeMachine) -> None:
    machine.system.send(machine.agent(1), "hello")
    machine.wait(who=1, others=None, seconds=600)
    assert machine.agent(1).wait() == {"": WaitResult.MAIL}


def test_a_wait_for_who_could_not_go_on_has_not_been_in_vain(machine: AgentTreeMachine) -> None:
    root, child = machine.agent(0), machine.agent(1)
    machine.signal(who=1, signal=Signal.STOP, spread=False)
    machine.world.sleep(60)
    check_wait(machine.system, root, [child], {child: WaitResult.TIMEOUT}, machine.world.clock.now_ms())
    machine.signal(who=1, signal=Signal.CONT, spread=False)
    machine.world.settle()
    with pytest.raises(Broken, match=r"wait: .* in vain"):
        check_wait(machine.system, root, [child], {child: WaitResult.TIMEOUT}, machine.world.clock.now_ms())
