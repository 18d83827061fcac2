"""The invariants that the machine of the kit looks at after each rule and at rest: each finds what is planted here."""

import asyncio
from collections.abc import Iterator
from dataclasses import astuple

import pytest

from ikigai_actors import Reply, Request, Signal
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.providers.base import OnDelta, Provider
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.mail.mail import Mail
from ikigai_actors.records.mail.prompts import KeepPrompt
from ikigai_actors.records.outbox.deliveries import DeliveryKey, DeliveryRecord
from ikigai_actors.store.unit import write_alone
from ikigai_actors.testing import AgentTreeMachine, Broken, Faults, Schedule
from ikigai_actors.testing.machine.delivery_oracle import due_deliveries
from ikigai_actors.testing.machine.fixtures import OwnCode
from ikigai_actors.testing.machine.model import Ledger, check_wait
from ikigai_actors.testing.simulation.changes import Written
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


@pytest.mark.parametrize("numbers", [[1], [2, 1], [3, 3]])
def test_mails_that_are_read_twice_or_out_of_order_are_found(numbers: list[int]) -> None:
    ledger = Ledger()
    ledger.oracle.committed([Written("mail", astuple(mail(number))) for number in (1, 2, 3)])
    ledger.reads("b", [mail(1)])
    with pytest.raises(Broken, match="mail: agent b read"):
        ledger.reads("b", [mail(number) for number in numbers])


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


@pytest.mark.slow("takes a tenth of a second")
def test_who_has_not_heard_of_its_commit_yet_need_not_remember_it() -> None:
    """While the store does not answer the journal asks again, a little later: until then nothing happens."""
    behind = 0
    for number in range(3, 12, 4):
        with begun(schedule=Schedule({number: 1}), misfortunes=Faults(unanswered=1)) as machine:
            machine.prompt(who=1, text="go", answers=[])
            machine.world.settle()
            uuid = machine.agent(1).uuid
            [held] = machine.system._log_cache.load_many([uuid])
            assert isinstance(held, Log)
            behind += held.head < machine.ledger.oracle.histories[uuid].head
            machine.history_is_what_copying_gives()
            machine.comes_to_rest()
            machine.history_is_what_copying_gives()
    assert behind


def test_a_dead_agent_that_lives_is_found(machine: AgentTreeMachine) -> None:
    machine.kill(who=1, spread=False)
    machine.what_was_acknowledged_is_there()
    execute(machine, "UPDATE agents SET status = 'running', ended_at = NULL WHERE status = 'dead'")
    with pytest.raises(Broken, match=r"acknowledged: agent .* lives, and was said to be dead"):
        machine.what_was_acknowledged_is_there()


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


@pytest.mark.slow("takes a tenth of a second")
def test_prompts_may_wait_behind_a_turn_that_was_cut_off_and_waits_for_a_person(machine: AgentTreeMachine) -> None:
    machine.remind(who=1, seconds=20, prompt=True)
    machine.prompt_slow_model(who=1)
    machine.take_over(resume=False)
    machine.comes_to_rest()
    assert machine.agent(1).state == "interrupted"
    machine.resume(who=1)
    machine.comes_to_rest()
    prompts = [message.content for message in machine.agent(1).history() if message.kind == "user"]
    assert prompts == ["go", "reminder 1"]


def test_a_prompt_that_nothing_can_answer_is_found_unless_somebody_is_stopped(machine: AgentTreeMachine) -> None:
    machine.ledger.open.append(Future(machine.agent(1).uuid))
    with pytest.raises(Broken, match="quiescence: 1 prompts have no answer, and nothing can happen"):
        machine.comes_to_rest()
    machine.signal(who=2, signal=Signal.STOP, spread=False)
    machine.comes_to_rest()


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


def test_a_delivery_is_not_due_while_an_earlier_one_of_its_agent_waits() -> None:
    def row(position: int, due: int | None, agent: str = "a") -> DeliveryRecord:
        return DeliveryRecord(DeliveryKey("one", agent, position, "turn.done", ""), 0, 0, due, None, "")

    received, waits, behind, other = row(3, None), row(9, 9_000), row(16, 400), row(2, 400, "b")
    assert due_deliveries([behind, waits, received, other], 500) == [other]
    assert due_deliveries([behind, waits, received, other], 9_000) == [waits, other]
