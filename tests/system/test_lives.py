"""Signals and deaths through the real system: what is committed, who hears, who goes on."""

import asyncio
import threading

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    BadInput,
    FunctionProvider,
    Future,
    Request,
    ScriptedProvider,
    Signal,
    StoreError,
    TurnInterrupted,
    tool,
)
from ikigai_actors.agent.messages import Reset
from ikigai_actors.errors import Fenced, RootProtected
from ikigai_actors.providers.base import Exit
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.store import open_store
from tests.kit.assembly import assemble
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.faults import FaultyStore, Overtaken
from tests.kit.open_on import open_on
from tests.kit.tool_scripts import calling, faults, requests_of, results, scripted
from tests.kit.trees import change


def test_a_killed_agent_is_dead_at_once_and_its_work_is_cancelled(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, provider=gate.provider) as system:
        child = system.root.fork("work", name="child")
        gate.wait_until_asked()
        waiting = child.aio.reply()
        assert child.kill(reason="no longer needed") == [child]
        with pytest.raises(AgentDead, match="killed: no longer needed"):
            waiting.get(timeout=DEADLINE)
        record = child.record
        assert (record.status, record.exit_cause, record.exit_reason) == ("dead", "killed", "no longer needed")
        assert record.turn == 0
        gate.open()
        with pytest.raises(AgentDead):
            child.prompt("again").get(timeout=DEADLINE)
        assert [message.kind for message in child.history()] == ["fork", "user"]
        [mail] = system.root.read_mail()
        assert (mail.kind, mail.sender, mail.body) == ("exit", child.uuid, "killed: no longer needed")


def test_the_late_result_of_a_tool_whose_agent_was_killed_is_dropped(database: str) -> None:
    entered, leave, left = threading.Event(), threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        entered.set()
        assert leave.wait(DEADLINE)
        left.set()
        return "too late"

    with ActorSystem.open(database, provider=scripted(child=[calling("slow"), "done"]), tools=[slow]) as system:
        child = system.root.fork("go", name="child")
        assert entered.wait(DEADLINE)
        child.kill()
        before = child.history(all=True)
        leave.set()
        assert left.wait(DEADLINE)
        assert system.root.fork(name="later").record.living
        assert child.history(all=True) == before


def test_children_of_the_dead_go_where_its_policy_says(database: str) -> None:
    with ActorSystem.open(database, provider=scripted([], kid=["hello"])) as system:
        fates = {}
        for policy in ("reparent", "cascade", "stop", "continue"):
            parent = system.root.fork(name=policy, on_orphan=policy)
            kid = parent.fork(name=f"kid-of-{policy}")
            parent.kill()
            above = kid.record.supervisor_uuid
            fates[policy] = (kid.record.status, "root" if above == system.root.uuid else "dead parent")
            assert kid.parent == parent
        assert fates == {
            "reparent": ("running", "root"),
            "cascade": ("dead", "dead parent"),
            "stop": ("stopped", "root"),
            "continue": ("running", "dead parent"),
        }
        stopped = system.agent("kid-of-stop")
        system.root.adopt(stopped)
        assert stopped.record.status == "running"
        orphan = system.agent("kid-of-continue")
        system.root.adopt("kid-of-continue")
        assert orphan.supervisor == system.root
        with pytest.raises(BadInput, match="above"):
            orphan.adopt(system.root)


def test_a_child_inherits_the_orphan_policy_and_may_have_its_own(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider([])) as system:
        top = system.root.fork(on_orphan="cascade")
        assert top.fork().record.on_orphan == "cascade"
        assert top.fork(on_orphan="stop").record.on_orphan == "stop"
        with pytest.raises(BadInput, match="on_orphan"):
            top.fork(on_orphan="explode")


def test_the_orphan_policy_of_a_system_is_that_of_all_who_are_forked_from_then_on(durable: str) -> None:
    with ActorSystem.open(durable, provider=ScriptedProvider([])) as system:
        before = system.root.fork()
    with ActorSystem.open(durable, provider=ScriptedProvider([]), on_orphan="cascade") as system:
        child = system.root.fork(name="child")
        kid = child.fork()
        policies = [agent.record.on_orphan for agent in (system.agent(before.uuid), child, kid)]
        assert policies == ["reparent", "cascade", "cascade"]
        child.kill()
        assert kid.state == "dead"


def test_how_an_agent_looks_after_its_children_is_kept_over_a_restart(durable: str) -> None:
    with ActorSystem.open(durable, provider=ScriptedProvider([])) as system:
        child = system.root.fork(name="child", restart="permanent")
        child.supervise(strategy="rest_for_one", intensity=5, period=60, on_orphan="stop")
        child.supervise(intensity=7)
    with ActorSystem.open(durable, provider=ScriptedProvider([])) as system:
        row = system.agent("child").record
        assert (row.restart, row.strategy, row.intensity, row.period, row.on_orphan) == (
            "permanent", "rest_for_one", 7, 60_000, "stop",
        )  # fmt: skip


def test_exit_is_the_normal_end_and_its_result_is_mailed_to_the_supervisor(database: str) -> None:
    script = scripted(worker=[calling(("exit", {"result": "the answer is 42"}))])
    with ActorSystem.open(database, provider=script) as system:
        worker = system.root.fork("go", name="worker")
        eventually(lambda: worker.state == "dead", "the end")
        assert (worker.record.exit_cause, worker.record.exit_reason) == ("exited", "the answer is 42")
        assert [mail.body for mail in system.root.read_mail(sender=worker)] == ["the answer is 42"]
        other = system.root.fork(name="other")
        other.exit("enough")
        assert other.state == "dead"
        assert [mail.body for mail in system.root.read_mail(sender=other)] == ["enough"]
        with pytest.raises(RootProtected):
            system.root.exit()


def test_agent_0_cannot_exit_by_tool_and_its_turn_goes_on() -> None:
    script = scripted([calling("exit"), "I stay"])
    with ActorSystem.open(":memory:", provider=script) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "I stay"
        [result] = results(requests_of(script, None)[1])
        assert result.is_error
        assert "agent 0" in result.content


def test_a_code_driven_agent_ends_itself_by_raising_exit(database: str) -> None:
    def worker(request: Request) -> str:
        raise Exit(f"{len(request.messages)} read")

    with ActorSystem.open(database, providers={"code": FunctionProvider(worker, "code")}) as system:
        agent = system.root.fork("go", model="code:")
        eventually(lambda: agent.state == "dead", "the end")
        assert (agent.record.exit_cause, agent.record.exit_reason) == ("exited", "1 read")


def test_a_model_kills_another_agent_but_neither_itself_nor_one_above(database: str) -> None:
    script = scripted(
        [calling(("fork", {"name": "a", "prompt": "go"})), "forked"],
        a=[
            calling(
                ("kill", {"agent": "victim", "reason": "in the way"}),
                ("kill", {"agent": "a"}),
                ("kill", {"agent": "nobody-here"}),
                ("kill", {}),
            ),
            "done",
        ],
    )
    with ActorSystem.open(database, provider=script) as system:
        victim = system.root.fork(name="victim")
        system.root.prompt("go").get(timeout=DEADLINE)
        a = system.agent("a")
        assert a.reply(timeout=DEADLINE).text == "done"
        seen = results(requests_of(script, "a")[1])
        assert [result.is_error for result in seen] == [False, True, True, True]
        assert "Use exit" in seen[1].content
        assert (victim.record.exit_cause, victim.record.exit_sender) == ("killed", a.uuid)


def test_the_history_of_a_victim_assembles_to_a_valid_request(database: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    @tool
    async def hang() -> str:
        entered.set()
        await asyncio.Event().wait()
        return ""

    with ActorSystem.open(database, provider=scripted(child=[calling("hang", "fork")]), tools=[hang]) as system:
        child = system.root.fork("go", name="child")
        assert entered.wait(DEADLINE)
        child.kill()
        request = assemble(child.history(), {}, agent=child.uuid, name=None, model="scripted:")
        assert faults(request) == []
        leave.set()


def test_an_end_without_a_result_leaves_a_sound_database(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider([])) as system:
        child = system.root.fork()
        child.exit()
        assert fsck.check(system._store) == []


def test_an_interrupt_of_a_branch_ends_its_turns(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, provider=gate.provider) as system:
        top = system.root.fork()
        idle, kid, dead = top.fork(), top.fork("work"), top.fork("work")
        dead.kill()
        top.prompt("work")
        eventually(lambda: top.record.turn, "the turn")
        turns = [agent.aio.reply() for agent in (top, kid)]
        assert top.signal(Signal.INT, cascade=True)
        for turn in turns:
            with pytest.raises(TurnInterrupted):
                turn.get(timeout=DEADLINE)
        assert idle.state == "idle"
        gate.open()


def test_an_interrupt_of_a_branch_reaches_those_beside_one_who_dies_meanwhile(database: str) -> None:
    gate = Gate()
    store = Overtaken(open_store(database))
    with open_on(store, gate.provider) as system:
        top = system.root.fork()
        dying, kid = top.fork("work"), top.fork("work")
        turn = kid.aio.reply()
        eventually(lambda: kid.record.turn, "the turn")

        def meanwhile(read: object) -> None:
            assert isinstance(read, list)
            assert [record.uuid for record in read] == [dying.uuid, kid.uuid]
            dying.kill()

        store.meanwhile = meanwhile
        system._lifecycle.interrupt(top.uuid, cascade=True)
        with pytest.raises(TurnInterrupted):
            turn.get(timeout=DEADLINE)
        gate.open()


def test_an_actor_of_an_older_epoch_acts_no_more_and_does_not_hide_the_agent(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider(["back"])) as system:
        child = system.root.fork()
        actor = system._actor(child.uuid)
        change(system._store, child.uuid, "epoch = epoch + 1")
        with pytest.raises(Fenced):
            child.prompt("go").get(timeout=DEADLINE)
        eventually(lambda: actor.actor_inbox.closed, "its end")
        assert system._processes.get(child.uuid) is None
        assert child.prompt("again").get(timeout=DEADLINE).text == "back"
        cut = Future[None]()
        actor.actor_inbox.put_urgent(Reset(cut))  # as the supervision loop does when a sibling fails
        cut.get(timeout=DEADLINE)


def test_a_model_that_asks_who_is_there_reads_why_it_cannot_be_told(database: str) -> None:
    store = FaultyStore(open_store(database))
    store.unreadable, store.unreadable_by = StoreError("unreadable, as planned"), "ikigai-tool agents"
    script = ScriptedProvider([calling("agents"), "alone then"])
    with open_on(store, script) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "alone then"
        assert results(script.requests[1]) == [("1", "unreadable, as planned", True)]
