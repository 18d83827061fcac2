"""What can be done in a turn that waits for a budget: nothing waits for a grant that needs none."""

from collections.abc import Callable

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BudgetExceeded,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    TurnInterrupted,
    Usage,
)
from ikigai_actors.providers.base import SUMMARISE
from ikigai_actors.records.fsck.check import check
from tests.kit.blocking_provider import DEADLINE

WAITING = "waiting for budget"


def thirty(request: Request) -> Reply:
    return Reply("ok", usage=Usage(0, 30))


class Dear(ScriptedProvider):
    """A service that bills by tokens, so that a long request needs much."""

    counts = True


def settled(agent: AgentRef) -> str:
    """How an agent is, once it has nothing to do, or waits for a budget."""
    return str(agent.system.root.wait([agent], timeout=DEADLINE)[agent])


def test_another_model_lets_a_waiting_request_leave_that_fits_by_then(database: str) -> None:
    cheap = ScriptedProvider(thirty)
    with ActorSystem.open(database, Dear(thirty), providers={"cheap": cheap}, budget={"tokens": 300}) as system:
        buyer = system.root.fork("word " * 1_000, name="buyer")
        assert settled(buyer) == "budget"
        later = buyer.prompt("and then?")  # waits for the end of the turn, and holds up nobody
        buyer.configure(model="cheap", timeout=DEADLINE)
        assert later.get(timeout=DEADLINE).text == "ok"
        assert len(cheap.requests) == 2
        assert buyer.budget is not None
        assert (buyer.budget.waiting, buyer.budget.spent, buyer.budget.held) == (0, {"tokens": 60}, {"tokens": 0})
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_change_that_does_not_help_keeps_the_place_of_who_waits_also_over_a_restart(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(thirty), budget={"tokens": 0}) as system:
        for name in ("ann", "ben"):
            assert settled(system.root.fork("go", name=name)) == "budget"
    provider = ScriptedProvider(lambda request: Reply(str(request.settings.get("temperature")), usage=Usage(0, 30)))
    with ActorSystem.open(durable, provider) as system:
        ann, ben = system.agent("ann"), system.agent("ben")
        ann.configure(temperature=0.5, timeout=DEADLINE)
        ann.mark("here", timeout=DEADLINE)
        assert (ann.state, check(system._store)) == (WAITING, [])
        system.root.grant(tokens=1)
        assert ann.reply(timeout=DEADLINE).text == "0.5"
        assert (ben.state, len(provider.requests)) == (WAITING, 1)


@pytest.mark.slow("takes a tenth of a second")
def test_a_summary_that_fits_makes_a_waiting_request_small_enough_and_one_that_does_not_is_refused(
    database: str,
) -> None:
    def words(request: Request) -> Reply:
        return Reply("so many words " * 500, usage=Usage(len(str(request.messages)) // 4, 1_750))

    notes = ScriptedProvider([Reply("notes", usage=Usage(0, 10))])
    with ActorSystem.open(database, Dear(words), providers={"notes": notes}, budget={"tokens": 100_000}) as system:
        system.root.configure(tools=[])
        buyer = system.root.fork(name="buyer")
        for _ in range(4):
            buyer.prompt("word " * 2_000).get(timeout=DEADLINE)
        assert buyer.budget is not None
        buyer.charge(tokens=100_000 - int(buyer.budget.spent["tokens"]))
        asked = buyer.prompt("go on")
        assert settled(buyer) == "budget"
        buyer.configure(compact_model="notes", timeout=DEADLINE)
        with pytest.raises(BudgetExceeded, match="Too little is left"):
            buyer.compact(timeout=DEADLINE)
        assert (buyer.state, notes.requests) == (WAITING, [])
        buyer.grant(tokens=8_000)
        assert settled(buyer) == "budget"
        assert buyer.compact(timeout=DEADLINE).usage == Usage(0, 10)
        assert asked.get(timeout=DEADLINE).text.startswith("so many words")
        assert notes.requests[0].messages[-1]["content"][-1]["text"].startswith(SUMMARISE)
        assert check(system._store) == []


@pytest.mark.sample(1, "acts")
@pytest.mark.parametrize("take_back", [AgentRef.undo, AgentRef.clear, AgentRef.rewind])
def test_what_takes_the_prompt_back_ends_the_turn_free_of_charge(take_back: Callable[[AgentRef], int]) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(thirty), budget={"tokens": 0}) as system:
        buyer = system.root.fork(name="buyer")
        buyer.mark("before")
        asked = buyer.prompt("go")
        assert settled(buyer) == "budget"
        take_back(buyer)
        with pytest.raises(TurnInterrupted, match="taken back while it waited for a budget"):
            asked.get(timeout=DEADLINE)
        assert (buyer.state, [message.content for message in buyer.history() if message.kind == "user"]) == ("idle", [])
        assert buyer.budget is not None
        assert (buyer.budget.waiting, buyer.budget.spent) == (0, {"tokens": 0})
        assert check(system._store) == []


@pytest.mark.sample(1, "what is merged")
@pytest.mark.parametrize("how", ["result", "summary"])
def test_a_merge_into_a_turn_that_waits_is_refused_at_once(how: str) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(thirty), budget={"tokens": 30}) as system:
        buyer = system.root.fork(name="buyer")
        child = buyer.fork("go", name="child")
        child.reply(timeout=DEADLINE)
        buyer.prompt("go")
        assert settled(buyer) == "budget"
        with pytest.raises(BudgetExceeded, match=r"waits for a budget.*INT"):
            buyer.merge(child, how=how, timeout=DEADLINE)
        assert buyer.state == WAITING


def test_a_stopped_agent_that_waits_is_changed_when_it_is_continued(database: str) -> None:
    cheap = ScriptedProvider(thirty)
    with ActorSystem.open(database, Dear(thirty), providers={"cheap": cheap}, budget={"tokens": 300}) as system:
        buyer = system.root.fork("word " * 1_000, name="buyer")
        assert settled(buyer) == "budget"
        buyer.signal(Signal.STOP)
        changed = buyer.aio.configure(model="cheap")
        buyer.signal(Signal.CONT)
        changed.get(timeout=DEADLINE)
        assert buyer.reply(timeout=DEADLINE).text == "ok"


def test_those_behind_go_on_when_the_first_who_waits_gives_up_its_place(database: str) -> None:
    with ActorSystem.open(database, Dear(thirty), budget={"tokens": 2_000}) as system:
        system.root.configure(tools=[])
        ann, ben = (system.root.fork(name=name) for name in ("ann", "ben"))
        ann.charge(tokens=2_000)
        for agent, prompt in ((ann, "word " * 1_000), (ben, "word")):
            agent.prompt(prompt)
            assert settled(agent) == "budget"
        system.root.grant(tokens=1_000)
        assert (settled(ann), settled(ben)) == ("budget", "budget")
        ann.signal(Signal.INT)
        assert ben.reply(timeout=DEADLINE).text == "ok"
        assert check(system._store) == []
