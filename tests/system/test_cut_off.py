"""Turns that were cut off with their host: who goes on, who leaves them, and that everybody hears the truth."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    Stream,
    ToolCall,
    TurnInterrupted,
    tool,
)
from ikigai_actors.records.figures import gauges
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.hosts.liveness import latest_signs
from ikigai_actors.records.log.moments import glances
from ikigai_actors.shell.agent_lists import list_lines, read_list
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.remote.client import Client
from ikigai_actors.testing import Simulation, simulated
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging
from tests.kit.databases import eventually
from tests.kit.echo import kinds
from tests.kit.program import run


def prompted(request: Request) -> str:
    """Answers with the last prompt."""
    return f"heard {request.messages[-1]['content'][-1]['text']}"


def said(agent: AgentRef) -> list[str]:
    """The prompts in the view of an agent."""
    return [message.content for message in agent.history() if message.kind == "user"]


def cut_off(database: str, text: str = "review") -> str:
    """Cut off the turn of an agent ``kid``; returns its uuid."""
    hanging = Hanging("")
    with ActorSystem.open(database, hanging) as system:
        kid = system.root.fork(name="kid")
        kid.prompt(text)
        hanging.wait_until_asked()
        return kid.uuid


def hang(world: Simulation, text: str = "review") -> AgentRef:
    """Open a system whose agent ``kid`` is in a turn that does not end."""
    kid = world.open(Hanging("")).root.fork(name="kid")
    kid.prompt(text)
    world.settle()
    return kid


@pytest.mark.slow("takes a tenth of a second")
def test_a_program_goes_on_with_what_was_cut_off_and_whoever_asks_for_the_reply_waits(durable: str) -> None:
    cut_off(durable)
    gate = Gate()
    with ActorSystem.open(durable, gate.provider) as system:
        reply = system.agent("kid").aio.reply()
        gate.wait_until_asked()
        assert (system.agent("kid").state, system.agent("kid").record.cut_off) == ("waiting for the model", 0)
        gate.open()
        assert reply.get(timeout=DEADLINE).text == "done"


@pytest.mark.slow("takes a tenth of a second")
def test_a_turn_that_is_left_is_interrupted_for_every_process_and_shows_no_sign_of_life(durable: str) -> None:
    kid = cut_off(durable)
    with (
        ActorSystem.open(durable, ScriptedProvider(prompted), resume=False) as system,
        AttachedSystem.open(durable) as attached,
        closing(open_store(durable)) as store,
    ):
        assert [side.agent(kid).state for side in (system, attached)] == ["interrupted", "interrupted"]
        assert store.read(latest_signs) == {}
        overview = read_list(Client(store))
        [line] = [row.text for row in list_lines(overview, overview.state, "ikigai agents") if "kid" in row.text]
        assert "interrupted" in line
        assert "heartbeat" not in line
        assert [glance.cut_off for glance in store.read(glances) if glance.uuid == kid] == [
            system.agent(kid).record.turn
        ]
        assert store.read(gauges).cut_off == 1
        for agent in (system.agent(kid), attached.agent(kid)):
            with pytest.raises(TurnInterrupted, match=r"kid's turn was cut off; resume\(\) goes on with it"):
                agent.reply(timeout=DEADLINE)
        listed = {row["uuid"]: row for row in json.loads(run("--database", durable, "agents", "--json").stdout)}
        assert listed[kid]["state"] == "interrupted"
        assert attached.agent(kid).resume(timeout=DEADLINE)
        assert system.agent(kid).reply(timeout=DEADLINE).text == "heard review"
        assert system.agent(kid).record.cut_off == 0
        assert check(system._store) == []


def test_without_a_host_an_open_turn_is_interrupted_and_has_none(durable: str) -> None:
    kid = cut_off(durable)
    with AttachedSystem.open(durable) as attached:
        assert attached.agent(kid).state == "interrupted, no host"


@pytest.mark.slow("takes a tenth of a second")
def test_a_turn_that_comes_no_further_is_left_after_it_was_cut_off_three_times_and_a_person_may_go_on() -> None:
    with simulated() as world:
        hang(world)
        for _ in range(2):
            world.crash()
            system = world.reopen(resume=True)
            world.settle()
            assert (system.agent("kid").state, system.agent("kid").record.cut_off) == ("waiting for the model", 0)
        world.crash()
        system = world.reopen(resume=True)
        world.settle()
        kid = system.agent("kid")
        assert (kid.state, kid.record.cut_off) == ("interrupted", kid.record.turn)
        with pytest.raises(
            TurnInterrupted, match=r"kid's turn was cut off 3 times, and came no further in between; res"
        ):
            kid.reply(timeout=DEADLINE)
        assert kid.resume(timeout=DEADLINE)
        world.settle()
        assert kid.state == "waiting for the model"
        assert len(world.requests) == 4


@pytest.mark.slow("takes a tenth of a second")
def test_a_message_of_the_turn_begins_the_count_again() -> None:
    @tool(idempotent=True)
    def look() -> str:
        """Look."""
        return "seen"

    def calls(request: Request) -> Reply:
        return Reply("", (ToolCall("look", {}, str(len(request.messages))),))

    with simulated() as world:
        kid = world.open(ScriptedProvider(calls), tools=[look]).root.fork("go", name="kid")
        for _ in range(4):  # once more than a turn may be cut off
            while not world.requests or len(kid.history()) < 4:
                world.agenda.step()
            world.crash()
            kid = world.reopen(resume=True).agent("kid")
            assert kid.record.cut_off == 0
            before = len(kid.history())
            while len(kid.history()) <= before:
                world.agenda.step()


def test_agents_are_left_or_go_on_or_are_closed_by_their_kind(durable: str) -> None:
    hanging = Hanging("")
    with ActorSystem.open(durable, hanging) as system:
        for kind in ("permanent", "transient", "temporary"):
            system.root.fork("go", name=kind, restart=kind)
        eventually(lambda: all(child.record.turn for child in system.root.children()), "the turns")
    with ActorSystem.open(durable, ScriptedProvider(prompted), resume=False) as system:
        assert [child.state for child in system.root.children()] == ["interrupted"] * 3
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        for kind in ("permanent", "transient"):
            assert system.agent(kind).reply(timeout=DEADLINE).text == "heard go"
        with pytest.raises(TurnInterrupted):
            system.agent("temporary").reply(timeout=DEADLINE)
        assert kinds(system.agent("temporary").history())[-2:] == ["user", "interrupted"]
        assert system.statistics().steps == 2


def test_timers_and_prompts_by_mail_wait_after_a_turn_that_is_left_and_missed_times_are_counted() -> None:
    with simulated() as world:
        kid = hang(world)
        kid.remind("nightly", every="* * * * *", prompt=True)
        world.crash()
        system = world.reopen()
        world.sleep(200)
        kid = system.agent("kid")
        assert (kid.state, said(kid), kid.timers()[0].missed >= 2) == ("interrupted", ["review"], True)
        kid.prompt("mine")
        world.settle()
        assert said(kid) == ["review", "mine"]  # a person's prompt ends it
        assert kid.state == "waiting for the model"


@pytest.mark.thorough("a timer behind a turn that was cut off, as in the test above")
def test_a_nightly_timer_fires_again_after_a_crash_within_a_turn() -> None:
    with simulated() as world:
        kid = hang(world)
        kid.remind("nightly", every="* * * * *", prompt=True)
        world.crash()
        system = world.reopen(resume=True)
        world.sleep(1)
        kid = system.agent("kid")
        kid.signal(Signal.INT)
        world.sleep(120)
        assert said(kid)[:2] == ["review", "nightly"]


@pytest.mark.sample(1, "a prompt that replaces the one before, and one that does not")
@pytest.mark.parametrize("ends", [True, False])
def test_a_prompt_that_repeats_the_one_that_was_cut_off_replaces_it(durable: str, ends: bool) -> None:
    cut_off(durable, "Plan the mast.")
    with ActorSystem.open(durable, ScriptedProvider(prompted), resume=False) as system:
        kid = system.agent("kid")
        assert kid.prompt("Plan the mast." if ends else "Plan the sail.").get(timeout=DEADLINE).text.startswith("heard")
        assert said(kid) == (["Plan the mast."] if ends else ["Plan the mast.", "Plan the sail."])
        assert check(system._store) == []


@pytest.mark.thorough("a turn that goes on, as in the first test, behind a CONT")
def test_a_stopped_agent_goes_on_with_what_was_cut_off_when_it_is_continued(durable: str) -> None:
    cut_off(durable)
    with ActorSystem.open(durable, ScriptedProvider(prompted), resume=False) as system:
        system.agent("kid").signal(Signal.STOP)
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        assert system.agent("kid").state == "stopped"
        reply = system.agent("kid").aio.reply()
        system.agent("kid").signal(Signal.CONT)
        assert reply.get(timeout=DEADLINE).text == "heard review"


def test_a_shell_on_a_file_leaves_it_and_says_how_to_go_on_and_a_host_goes_on(tmp_path: Path) -> None:
    where = str(tmp_path / "team.db")
    kid = cut_off(where)
    done = run("--database", where, "--provider", "offline", lines="/switch kid\n/agents\n")
    assert "Cut off with the process before: the turn of kid. /switch NAME and /resume go on with one" in done.stderr
    assert "interrupted" in done.stdout
    with AttachedSystem.open(where) as attached:
        assert attached.agent(kid).state == "interrupted"  # as the shell has left it
    with ActorSystem.open(where, ScriptedProvider(prompted)) as system:
        assert system.agent("kid").reply(timeout=DEADLINE).text == "heard review"


@pytest.mark.slow("takes a tenth of a second")
def test_a_turn_that_waits_for_a_person_goes_on_however_often_its_host_ends() -> None:
    @tool(policy="ask")
    def pay() -> str:
        """Pay."""
        return "paid"

    def calls(request: Request) -> Reply:
        return Reply("", (ToolCall("pay", {}, "1"),)) if len(request.messages) == 1 else Reply("done")

    with simulated() as world:
        kid = world.open(ScriptedProvider(calls), tools=[pay], approvals="ask").root.fork("go", name="kid")
        world.settle()
        for _ in range(4):
            world.crash()
            kid = world.reopen(resume=True).agent("kid")
            world.settle()
            assert (kid.state, kid.record.cut_off) == ("waiting for approval", 0)
        [question] = world.system.questions.pending()
        world.system.questions.answer(question.id, "allow")
        assert kid.reply(timeout=DEADLINE).text == "done"


class SlowToClose(ScriptedProvider):
    async def close(self) -> None:
        await asyncio.sleep(3)


@pytest.mark.slow("takes a tenth of a second")
def test_a_wait_that_begins_while_the_system_closes_goes_on_when_it_is_opened_again() -> None:
    waits = ToolCall("wait", {"timeout": 1}, "first"), ToolCall("wait", {"agents": ["kid"]}, "second")
    with simulated() as world:
        world.open(
            ScriptedProvider([Reply("", waits), "done"]), {"slow": SlowToClose(lambda _: Stream(("late",), delay=1000))}
        )
        world.system.root.fork(name="kid", model="slow").prompt("go")
        boss = world.system.root.fork(name="boss")
        boss.prompt("go")
        world.settle()
        boss = world.reopen(resume=True).agent("boss")
        world.settle()
        calls = [message for message in boss.history() if "tool_use_id" in message.data]
        called = [(message.kind, message.data["tool_use_id"]) for message in calls]
        assert called == [("tool_call", "first"), ("tool_result", "first"), ("tool_call", "second")]
        assert boss.state == "waits for kid"
