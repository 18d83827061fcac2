"""Supervisors whose children fail too often: they give up, and trouble climbs until somebody's restart cures it."""

from collections import Counter

import pytest

from ikigai_actors import ActorSystem, AgentDead, FunctionProvider, ProviderError, Request, Signal
from ikigai_actors.records.lives.supervision import StopChildren
from ikigai_actors.store import open_store
from ikigai_actors.store.unit import write_alone
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.system.test_restarts import Worker


def test_an_orphan_that_fails_too_often_is_buried_alone(database: str) -> None:
    worker = Worker()
    with worker.open(database) as system:
        top = system.root.fork(on_orphan="continue")
        top.supervise(intensity=0)
        kid, other = top.fork(name="kid"), top.fork(name="other")
        top.kill()
        worker.failures["kid"] = 1
        with pytest.raises(AgentDead, match="gave up"):
            kid.prompt("go").get(timeout=DEADLINE)
        assert other.prompt("go").get(timeout=DEADLINE).text == "other is done"


def test_the_crash_that_a_supervisor_gives_up_on_counts_for_the_turn(database: str) -> None:
    worker = Worker(kid=3)
    with worker.open(database) as system:
        top = system.root.fork()
        top.supervise(intensity=1)
        kid = top.fork(name="kid")
        with pytest.raises(ProviderError, match="crashed its agent 2 times"):
            kid.prompt("go").get(timeout=DEADLINE)
        assert worker.failures["kid"] == 1
        eventually(lambda: kid.record.status == top.record.status == "running", "the restart")


def test_all_below_come_back_when_several_supervisors_give_up_in_a_row(database: str) -> None:
    worker = Worker(leaf=1)
    with worker.open(database) as system:
        top = system.root.fork(name="top")
        middle = top.fork(name="middle")
        leaf = middle.fork(name="leaf")
        for agent in (top, middle):
            agent.supervise(intensity=0)
        assert leaf.prompt("go").get(timeout=DEADLINE).text == "leaf is done"
        assert [agent.record.status for agent in (top, middle, leaf)] == ["running"] * 3


@pytest.mark.slow("takes a tenth of a second")
def test_a_process_that_ended_while_a_supervisor_gave_up_leaves_nobody_stopped(durable: str) -> None:
    worker = Worker()
    with worker.open(durable) as system:
        top = system.root.fork(name="top")
        _, _, three = (top.fork(name=name) for name in ("one", "two", "three"))
        three.signal(Signal.STOP)
    store = open_store(durable)
    write_alone(store, StopChildren(top.uuid, 9))
    store.close()
    with worker.open(durable) as system:
        assert system.agent("one").prompt("go").get(timeout=DEADLINE).text == "one is done"
        assert [system.agent(name).record.status for name in ("one", "two", "three")] == [*["running"] * 2, "stopped"]


@pytest.mark.thorough("children that stand still, of which test_reasons says why")
def test_the_children_of_a_supervisor_that_was_buried_when_it_gave_up_wait_for_a_person(database: str) -> None:
    worker = Worker(kid=1)
    with worker.open(database) as system:
        boss = system.root.fork(name="boss", restart="temporary")
        boss.supervise(intensity=0)
        kid = boss.fork(name="kid")
        waiting = kid.prompt("go")
        eventually(lambda: boss.state == "dead", "the burial")
        why = "its supervisor boss gave up, and died"
        assert (kid.state, kid.record.exit_reason, kid.supervisor) == ("stopped", why, system.root)
        worker.failures["root"] = 1
        system.root.prompt("go").get(timeout=DEADLINE)
        assert kid.state == "stopped"
        kid.signal(Signal.CONT)
        assert waiting.get(timeout=DEADLINE).text == "kid is done"


@pytest.mark.slow("takes a tenth of a second")
def test_a_storm_of_restarts_asks_no_more_than_the_intensity_allows(database: str) -> None:
    worker = Worker(**dict.fromkeys("abcdef", 1000))
    asked = Counter[str]()

    def count(request: Request) -> str:
        asked["all"] += 1
        return worker(request)

    with ActorSystem.open(database, provider=FunctionProvider(count, "code")) as system:
        boss = system.root.fork(name="boss")
        kids = [boss.fork(name=name) for name in "abcdef"]
        answers = [kid.prompt("go") for kid in kids]
        for answer in answers:
            with pytest.raises((AgentDead, ProviderError)):
                answer.get(timeout=DEADLINE)
        # Two crashes close each turn. Every fourth crash lets the boss give up, which cuts all six; the third time he
        # is restarted for that is the last that agent 0 allows.
        assert asked["all"] <= 6 * 2 + 3 * 6
        assert boss.record.status == "running"
