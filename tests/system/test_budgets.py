"""Budgets of trees of agents: a request is held before it leaves; it waits where too little is left, for a grant."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BadInput,
    Budget,
    BudgetExceeded,
    Delta,
    ProviderError,
    Reply,
    ScriptedProvider,
    Signal,
    Stream,
    ToolCall,
    TurnInterrupted,
    Usage,
    current_agent,
    tool,
)
from ikigai_actors.providers import Spent
from ikigai_actors.providers.base import SUMMARISE, OnDelta, Request
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.budgets.status import budgets_that_limit
from ikigai_actors.records.fsck.check import check, inspect
from ikigai_actors.records.mail.mail import NOTICE
from ikigai_actors.store import open_store
from ikigai_actors.verbs.text.budgets import budget_lines
from ikigai_actors.verbs.text.pages import stop_note
from ikigai_actors.verbs.upkeep.fsck import as_lines
from tests.kit.blocking_provider import DEADLINE, Hanging

WAITING = "waiting for budget"


def thirty(request: Request) -> Reply:
    """A reply of 30 tokens; of as many as it may have, where that is less."""
    return Reply("ok", usage=Usage(0, min(30, request.settings.get("max_tokens", 30))), model="tea-1")


def answered(agent: AgentRef) -> bool:
    """Prompt; return whether the request left, and was answered."""
    agent.prompt("go on")
    return settled(agent) == "idle"


def settled(agent: AgentRef) -> str:
    """How an agent is, once it has nothing to do, or waits for a budget."""
    return str(agent.system.root.wait([agent], timeout=DEADLINE)[agent])


class Gated:
    """A provider that answers once it is let go. Of the tokens of a request it says nothing beforehand."""

    name = "gated"

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._gates: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        gate = asyncio.Event()
        self._gates.append((asyncio.get_running_loop(), gate))
        self._arrived.release()
        await gate.wait()
        return Reply("ok", usage=Usage(0, 30))

    async def close(self) -> None:
        """Holds nothing."""

    def wait_for(self, requests: int) -> None:
        """Return when so many more requests have arrived."""
        for _ in range(requests):
            assert self._arrived.acquire(timeout=DEADLINE)

    def let_go(self) -> None:
        """Answer the requests that have arrived."""
        while self._gates:
            loop, gate = self._gates.pop()
            loop.call_soon_threadsafe(gate.set)


def notices(agent: AgentRef) -> list[str]:
    return [mail.body for mail in agent.mails() if mail.kind == NOTICE]


def test_requests_leave_until_the_budget_is_used_and_then_wait(database: str) -> None:
    provider = ScriptedProvider(thirty)
    with ActorSystem.open(database, provider, budget=Budget(tokens=100)) as system:
        buyer = system.root.fork(name="buyer")
        assert [answered(buyer) for _ in range(5)] == [True] * 4 + [False]
        assert len(provider.requests) == 4
        assert (buyer.state, system.root.state) == (WAITING, "idle")
        budget = buyer.budget
        assert budget is not None
        assert (budget.owner, budget.granted, budget.strict) == (system.root.uuid, {"tokens": 100}, False)
        assert (budget.spent, budget.held, budget.waiting) == ({"tokens": 120}, {"tokens": 0}, 1)
        nearly, paused = notices(system.root)
        assert "80 %" in nearly
        assert "100 tokens" in paused
        assert "120" in paused
        assert (buyer.record.spent_tokens, system.root.record.spent_tokens) == (120, 0)
        assert check(system._store) == []


def test_a_strict_budget_is_never_exceeded_since_replies_are_cut_to_what_is_left(database: str) -> None:
    provider = ScriptedProvider(thirty)
    with ActorSystem.open(database, provider, budget={"tokens": 100, "strict": True}) as system:
        buyer = system.root.fork(name="buyer")
        buyer.configure(max_tokens=30)
        while answered(buyer):
            assert buyer.budget is not None
            assert buyer.budget.spent["tokens"] <= 100
        asked = [request.settings["max_tokens"] for request in provider.requests]
        assert asked == [30, 30, 30, 10]
        assert buyer.budget is not None
        assert buyer.budget.spent == {"tokens": 100}


def test_a_reply_that_a_strict_budget_has_cut_names_the_budget_and_not_the_setting(database: str) -> None:
    def cut(request: Request) -> Reply:
        most = request.settings["max_tokens"]
        return Reply("and", usage=Usage(0, most), stop_reason="max_tokens")

    with ActorSystem.open(database, ScriptedProvider(cut), budget={"tokens": 100, "strict": True}) as system:
        buyer = system.root.fork(name="buyer")
        buyer.configure(max_tokens=70)
        stops = [buyer.prompt("go on").get(timeout=DEADLINE).stop_reason for _ in range(2)]
        assert stops == ["max_tokens", "budget"]
        assert "a strict budget has no more tokens" in str(stop_note(stops[1], empty=False))


def test_a_grant_lets_those_go_on_who_wait_in_order_each_once(database: str) -> None:
    provider = ScriptedProvider(lambda request: Reply(str(request.name), usage=Usage(0, 30)))
    with ActorSystem.open(database, provider, budget={"tokens": 0}) as system:
        kids = []
        for name in ("ann", "ben", "cai"):
            kids.append(system.root.fork("go", name=name))
            assert settled(kids[-1]) == "budget"
        assert provider.requests == []
        assert len(notices(system.root)) == 1
        status = kids[2].grant(tokens=60)
        assert (status.owner, status.granted) == (system.root.uuid, {"tokens": 60})
        assert [kid.reply(timeout=DEADLINE).text for kid in kids[:2]] == ["ann", "ben"]
        assert settled(kids[2]) == "budget"
        system.root.grant(tokens=1)
        assert kids[2].reply(timeout=DEADLINE).text == "cai"
        assert [request.name for request in provider.requests] == ["ann", "ben", "cai"]


@pytest.mark.thorough("a grant of nothing for each limit; tests of waits above begin with one of tokens")
def test_zero_of_anything_that_requests_need_makes_none(database: str) -> None:
    for nothing in ({"tokens": 0}, {"usd": 0}, {"seconds": 0}, {"requests_per_minute": 0}):
        provider = ScriptedProvider(thirty)
        with ActorSystem.open(":memory:", provider, budget=nothing) as system:
            buyer = system.root.fork("go")
            assert (settled(buyer), provider.requests) == ("budget", [])


def test_a_child_is_held_by_its_own_budget_and_by_every_one_above_it(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={"tokens": 10_000}) as system:
        branch = system.root.fork(name="branch", budget=Budget(tokens=1_000))
        leaf = branch.fork(name="leaf", budget={"tokens": 50})
        assert [answered(leaf) for _ in range(3)] == [True, True, False]
        assert [notice[:4] for notice in notices(leaf)] == ["80 %", "Too "]
        assert notices(branch) == notices(system.root) == []
        assert answered(branch)
        spent = [agent.budget.spent["tokens"] for agent in (leaf, branch, system.root) if agent.budget is not None]
        assert spent == [60, 90, 90]
        assert answered(branch.fork(name="other"))
        assert branch.budget is not None
        assert branch.budget.spent == {"tokens": 120}
        leaf.kill()
        assert check(system._store) == []


@pytest.mark.sample(1, "strict or not")
@pytest.mark.parametrize("strict", [True, False])
def test_a_line_of_three_that_may_each_spend_all_spends_it_once(database: str, strict: bool) -> None:
    def costly(request: Request) -> Reply:
        return Reply("ok", usage=Usage(0, min(9_000, request.settings.get("max_tokens", 9_000))))

    all_of_it = {"tokens": 40_000, "strict": strict}
    provider = ScriptedProvider(costly)
    with ActorSystem.open(database, provider, budget=all_of_it) as system:
        line = [system.root]
        for name in ("ann", "ben", "cai"):
            line.append(line[-1].fork(name=name, budget=all_of_it))
            line[-1].configure(max_tokens=9_000)
        left = line[1:]
        while left:
            for agent in left:
                agent.prompt("go on")
            left = [agent for agent in left if settled(agent) == "idle"]
        assert system.root.budget is not None
        spent = system.root.budget.spent["tokens"]
        assert spent == sum(agent.record.spent_tokens for agent in line)
        least, most = (40_000 - 1_024, 40_000) if strict else (40_000, 40_000 + 3 * 9_000)
        assert least <= spent <= most
        assert check(system._store) == []


def test_what_waits_waits_over_a_restart_and_goes_on_by_a_grant_without_resume(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(thirty), budget={"tokens": 0}) as system:
        buyer = system.root.fork("go", name="buyer")
        assert settled(buyer) == "budget"
    with ActorSystem.open(durable, ScriptedProvider(thirty), budget={"tokens": 5}) as system:
        buyer = system.agent("buyer")
        assert (buyer.state, settled(buyer), system.resume()) == (WAITING, "budget", [])
        assert buyer.budget is not None
        assert buyer.budget.granted == {"tokens": 0}  # opening grants nothing
        buyer.grant(tokens=100)
        assert buyer.reply(timeout=DEADLINE).text == "ok"
        assert check(system._store) == []


def test_a_request_that_a_process_has_left_behind_counts_as_spent(durable: str) -> None:
    gated = Gated()
    with ActorSystem.open(durable, gated, budget={"tokens": 10_000}) as system:
        buyer = system.root.fork("go", name="buyer")
        gated.wait_for(1)
        assert buyer.budget is not None
        assert (held := buyer.budget.held["tokens"]) > 0
    with ActorSystem.open(durable, ScriptedProvider(thirty), resume=False) as system:
        buyer = system.agent("buyer")
        assert buyer.budget is not None
        assert (buyer.budget.held, buyer.budget.spent) == ({"tokens": 0}, {"tokens": held})
        assert buyer.record.spent_tokens == held
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_client_is_loaded_before_anything_is_held_for_a_turn_that_goes_on(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    held: list[object] = []

    class Loaded(ScriptedProvider):
        def load(self) -> None:
            store = open_store(path)
            held.append(store.read(lambda tx: [budget.held for budget in budgets_that_limit(tx, 9)]))
            store.close()

    for budget in (None, {"tokens": 10_000}):
        with ActorSystem.open(path, (gated := Gated()), budget=budget) as system:
            system.root.prompt("go")
            gated.wait_for(1)
        with ActorSystem.open(path, Loaded(["well", "fine"]), resume=True) as system:
            assert system.root.reply(timeout=DEADLINE).text == "well"
            assert system.resume() == []
    assert held == [[], [{"tokens": 0}]]


def test_killing_an_agent_spends_what_is_held_for_it_and_lets_others_go_on(database: str) -> None:
    gated = Gated()
    with ActorSystem.open(database, gated, budget={"tokens": 100}) as system:
        first = system.root.fork("go", name="first")
        gated.wait_for(1)
        second = system.root.fork("go", name="second")
        assert settled(second) == "budget"
        system.root.grant(tokens=1)
        gated.wait_for(1)
        first.kill()
        second.kill()
        assert system.root.budget is not None
        assert (system.root.budget.held, system.root.budget.spent) == ({"tokens": 0}, {"tokens": 101})
        assert system.root.budget.waiting == 0
        assert check(system._store) == []


def test_what_a_reply_leaves_of_its_hold_lets_the_next_one_go_on(database: str) -> None:
    gated = Gated()
    with ActorSystem.open(database, gated, budget={"tokens": 400}) as system:
        first = system.root.fork("go", name="first")
        gated.wait_for(1)
        second = system.root.fork("go", name="second")
        assert settled(second) == "budget"
        gated.let_go()
        gated.wait_for(1)
        gated.let_go()
        assert [agent.reply(timeout=DEADLINE).text for agent in (first, second)] == ["ok", "ok"]


def test_interrupting_what_waits_ends_its_turn_free_of_charge(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={"tokens": 0}) as system:
        buyer = system.root.fork("go", name="buyer")
        assert settled(buyer) == "budget"
        assert buyer.signal(Signal.INT)
        assert settled(buyer) == "idle"
        budget = buyer.grant(tokens=5)
        assert (budget.waiting, budget.spent, budget.held) == (0, {"tokens": 0}, {"tokens": 0})
        assert check(system._store) == []


def test_a_stopped_agent_is_passed_over_and_goes_on_by_cont(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={"tokens": 0}) as system:
        buyer, other = system.root.fork("go", name="buyer"), system.root.fork("go", name="other")
        assert (settled(buyer), settled(other)) == ("budget", "budget")
        buyer.signal(Signal.STOP)
        buyer.grant(tokens=30)
        assert other.reply(timeout=DEADLINE).text == "ok"
        assert settled(buyer) == "stopped"
        buyer.grant(tokens=30)
        buyer.signal(Signal.CONT)
        assert buyer.reply(timeout=DEADLINE).text == "ok"


def test_a_waiting_agent_forks_and_takes_mail(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={"tokens": 0}) as system:
        buyer = system.root.fork("go", name="buyer")
        assert settled(buyer) == "budget"
        child = buyer.fork(name="child", timeout=DEADLINE)
        child.send(buyer, "hello", timeout=DEADLINE)
        assert [mail.body for mail in buyer.mails()] == ["hello"]


@pytest.mark.parametrize(
    ("script", "tokens"),
    [
        (Stream(("abc", Delta(spent=Spent(Usage(7, 3), "tea-1"))), then=ProviderError("cut")), 10),
        (ProviderError("refused"), 0),
    ],
)
def test_a_script_that_fails_costs_what_it_has_told(database: str, script: Stream, tokens: int) -> None:
    with ActorSystem.open(database, ScriptedProvider([script]), budget={"tokens": 1_000}) as system:
        buyer = system.root.fork("go")
        assert settled(buyer) == "idle"
        assert buyer.budget is not None
        assert (buyer.budget.spent, buyer.budget.held) == ({"tokens": tokens}, {"tokens": 0})


class Service:
    """A service that bills by tokens, and breaks off."""

    name = "service"
    counts = True

    def __init__(self, *delta: Delta, free: bool = False) -> None:
        self._told, self._free = delta, free

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        for delta in self._told:
            on_delta(delta)
        raise ProviderError("It broke off.", "half of it", free=self._free)

    async def close(self) -> None:
        pass


def test_a_model_that_bills_and_has_no_price_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with ActorSystem.open(":memory:", Service(), budget={"usd": 1}) as system:
        system.root.configure(model="service:nobody-knows-its-price")
        for agent in (system.root, system.root, system.root.fork()):
            agent.prompt("go")
            assert settled(agent) == "idle"
    assert caplog.text.count("Model service:nobody-knows-its-price has no price") == 1


def test_of_a_strict_budget_a_stream_that_breaks_off_costs_what_was_held_or_what_it_has_told_if_that_is_more(
    database: str,
) -> None:
    for tokens, beyond in ((5, False), (2_000_000, True)):
        service = Service(Delta(spent=Spent(Usage(tokens, 3))))
        with ActorSystem.open(database, service, budget=Budget(tokens=1_000_000, strict=True)) as system:
            buyer = system.root.fork(name=f"buyer{tokens}", budget=Budget(tokens=500_000, strict=True))
            buyer.prompt("go")
            assert settled(buyer) == "idle"
            assert buyer.budget is not None
            assert buyer.budget.held == {"tokens": 0}
            assert (buyer.budget.spent["tokens"] == tokens + 3) is beyond
            assert (buyer.budget.beyond["tokens"] > 0) is beyond
            assert check(system._store) == []


def test_a_count_of_tokens_that_no_sum_could_hold_is_an_error_and_what_was_held_is_spent(database: str) -> None:
    reply = Reply("ok", usage=Usage(2**63 - 1, 2**63 - 1))
    with ActorSystem.open(database, ScriptedProvider([reply, "well"]), budget={"tokens": 1_000}) as system:
        with pytest.raises(ProviderError, match=r"usage.input_tokens of a Reply to be a number of tokens up to 1,000"):
            system.root.prompt("go").get(timeout=DEADLINE)
        assert system.root.prompt("again").get(timeout=DEADLINE).text == "well"
        assert isinstance(system.root.record.spent_tokens, int)


def test_a_stream_whose_usage_nobody_knows_costs_what_was_held(database: str) -> None:
    for provider, at_least in ((Service(), 512), (Service(free=True), 0)):
        with ActorSystem.open(":memory:", provider, budget={"tokens": 1_000_000}) as system:
            buyer = system.root.fork("go")
            assert settled(buyer) == "idle"
            assert buyer.budget is not None
            assert buyer.budget.held == {"tokens": 0}
            spent = buyer.budget.spent["tokens"]
            assert spent > at_least if at_least else spent == 0
            assert (buyer.budget.risk["tokens"] > 0) is bool(at_least)


def test_a_request_of_a_service_whose_input_does_not_fit_waits(database: str) -> None:
    with ActorSystem.open(":memory:", Service(), budget={"tokens": 300}) as system:
        buyer = system.root.fork("word " * 1_000)
        assert settled(buyer) == "budget"


def test_dollars_are_counted_by_the_price_of_the_model_that_answered(database: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text("[tea]\ninput = 1\noutput = 1000\n")
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={"usd": 0.05}, prices=file) as system:
        buyer = system.root.fork()
        assert [answered(buyer) for _ in range(3)] == [True, True, False]
        assert buyer.budget is not None
        assert buyer.budget.spent == {"usd": 0.06}
        assert buyer.record.spent_usd == 60_000
        assert "$0.05" in notices(system.root)[-1]
        buyer.grant(usd=0.02)
        assert buyer.reply(timeout=DEADLINE).text == "ok"


def test_a_budget_limits_how_many_agents_live_and_are_born(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={"agents": 2, "agents_ever": 3}) as system:
        kid, _ = system.root.fork(), system.root.fork()
        with pytest.raises(BudgetExceeded, match="allows 2 agents below it, 2 live"):
            system.root.fork()
        kid.kill()
        two = system.root.fork()
        two.kill()
        with pytest.raises(BudgetExceeded, match="3 births below it, and 3 were"):
            system.root.fork()
        system.root.grant(agents_ever=1)
        assert system.root.fork().record.living
        assert check(system._store) == []


def test_a_budget_without_agents_still_allows_its_owner(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty)) as system:
        lone = system.root.fork("go", budget={"agents": 0})
        assert settled(lone) == "idle"
        with pytest.raises(BudgetExceeded):
            lone.fork()


def test_time_ends_at_the_next_request_and_a_grant_of_time_goes_on(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={"seconds": 0}) as system:
        buyer = system.root.fork("go")
        assert settled(buyer) == "budget"
        buyer.grant(seconds=3_600)
        assert buyer.reply(timeout=DEADLINE).text == "ok"


def test_what_is_no_budget_is_refused_in_words() -> None:
    for wrong in (
        {"tokens": -1}, {"tokens": True}, {"tokens": 1.5}, {"usd": float("nan")}, {"usd": "5"}, {"usd": -0.5},
        {"seconds": -1}, {"requests_per_minute": 10_001}, {"strict": 1}, {"money": 3}, "5 dollars", 5,
    ):  # fmt: skip
        with pytest.raises(BadInput):
            ActorSystem.open(":memory:", "offline", budget=wrong)  # type: ignore[arg-type]


def test_a_grant_must_be_of_what_is_limited(database: str) -> None:
    with ActorSystem.open(database, "offline") as system:
        assert system.root.budget is None
        with pytest.raises(BadInput, match="No budget"):
            system.root.grant(tokens=5)
        kid = system.root.fork(budget={"tokens": 5})
        with pytest.raises(BadInput, match="does not limit usd"):
            kid.grant(usd=5)
        with pytest.raises(BadInput, match="Expected what to grant"):
            kid.grant()
        with pytest.raises(BadInput, match="at most"):
            kid.grant(tokens=10**15)
        assert kid.budget is not None
        assert kid.budget.granted == {"tokens": 5}


@pytest.mark.slow("takes a tenth of a second")
def test_a_limit_that_is_set_is_at_least_what_is_spent_and_held_and_lets_go_on_who_waits(database: str) -> None:
    for strict in (False, True):
        with ActorSystem.open(
            ":memory:", ScriptedProvider(thirty), budget={"tokens": 10_000, "strict": strict}
        ) as system:
            buyer = system.root.fork(name="buyer")
            assert answered(buyer)
            assert system.root.set_budget({"tokens": 5}).granted == {"tokens": 30}
            assert check(system._store) == []
            assert not answered(buyer)
            assert system.root.set_budget(Budget(tokens=60)).granted == {"tokens": 60}
            assert buyer.reply(timeout=DEADLINE).text == "ok"
            assert system.root.set_budget({"usd": 5}).granted == {"tokens": 60, "usd": 5}
            with pytest.raises(BadInput, match="one or more limits"):
                buyer.set_budget({})
            if not strict:
                with pytest.raises(BadInput, match="strict is set where a budget is made"):
                    system.root.set_budget({"tokens": 5, "strict": True})
            assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_budget_that_is_made_for_a_living_agent_counts_from_then_for_its_whole_branch(database: str) -> None:
    gated = Gated()
    for strict in (False, True):
        with ActorSystem.open(
            ":memory:", ScriptedProvider(thirty), providers={"gated": gated}, budget={"tokens": 10_000}
        ) as system:
            buyer = system.root.fork(name="buyer")
            kids = [buyer.fork(name=name) for name in ("ann", "ben")]
            other = system.root.fork(name="other")
            assert all(answered(kid) for kid in (buyer, *kids, other))
            kids[1].kill()
            kids[0].configure(model="gated:m")
            kids[0].prompt("go")
            gated.wait_for(1)
            status = system.root.budget
            assert status is not None
            held, risk = int(status.held["tokens"]), int(status.risk["tokens"])
            limited = buyer.set_budget(Budget(tokens=held + 20, agents=2, strict=strict))
            assert (limited.owner, limited.strict, limited.granted["agents"]) == (buyer.uuid, strict, 2)
            assert limited.spent == {"tokens": 0, "agents": 1}
            assert limited.held["tokens"] == (held + risk if strict else held)
            assert limited.granted["tokens"] == (held + risk if strict else held + 20)
            assert check(system._store) == []
            gated.let_go()
            assert kids[0].reply(timeout=DEADLINE).text == "ok"
            assert kids[0].budget == buyer.budget
            assert buyer.budget is not None
            assert (buyer.budget.spent, buyer.budget.held["tokens"]) == ({"tokens": 30, "agents": 1}, 0)
            assert system.root.budget is not None
            assert (system.root.budget.spent["tokens"], other.budget) == (150, system.root.budget)
            buyer.fork(name="cai")
            with pytest.raises(BudgetExceeded, match="The budget of buyer allows 2 agents"):
                kids[0].fork()
            assert check(system._store) == []


def test_a_budget_is_put_above_no_other_one_and_made_for_no_dead_agent(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty)) as system:
        buyer = system.root.fork(name="buyer")
        leaf = buyer.fork(name="leaf", budget={"tokens": 50})
        with pytest.raises(BadInput, match=r"Agent leaf descends from agent .* Set that one, or one above"):
            buyer.set_budget({"tokens": 100})
        assert buyer.budget is None
        assert leaf.set_budget({"usd": 1, "seconds": 60}).granted == {"tokens": 50, "usd": 1, "seconds": 60}
        assert system.root.set_budget({"tokens": 0, "strict": True}).strict
        assert not answered(leaf)
        other = system.root.fork()
        other.kill()
        with pytest.raises(BadInput, match="is dead"):
            other.set_budget({"tokens": 100})
        assert check(system._store) == []


def test_what_waits_above_a_new_budget_goes_on_by_a_grant_as_before(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={"tokens": 0}) as system:
        buyer = system.root.fork("go", name="buyer")
        assert settled(buyer) == "budget"
        assert buyer.set_budget({"tokens": 0}).waiting == 0  # it waits for agent 0's
        system.root.grant(tokens=100)
        assert settled(buyer) == "budget"  # now for its own
        assert buyer.set_budget({"tokens": 30}).waiting == 0
        assert buyer.reply(timeout=DEADLINE).text == "ok"
        assert check(system._store) == []


def test_tools_are_charged_to_the_same_budgets_before_they_act(database: str) -> None:
    @tool
    def look_up(word: str) -> str:
        """Look a word up."""
        current_agent().charge(usd=0.02, tokens=5)
        return word

    calls = [Reply(tool_calls=(ToolCall("look_up", {"word": word}),), usage=Usage(0, 1)) for word in "abc"]
    provider = ScriptedProvider([calls[0], "one", calls[1], "two"])
    with ActorSystem.open(database, provider, tools=[look_up], budget={"usd": 0.05, "tokens": 1_000}) as system:
        buyer = system.root.fork("go")
        assert buyer.reply(timeout=DEADLINE).text == "one"
        assert (buyer.record.spent_tokens, buyer.record.spent_usd) == (6, 20_000)
        assert buyer.prompt("again").get(timeout=DEADLINE).text == "two"
        assert buyer.budget is not None
        assert buyer.budget.spent == {"tokens": 12, "usd": 0.04}
        assert [notice[:4] for notice in notices(system.root)] == ["80 %"]
        buyer.charge(usd=5)  # an expected budget records it all the same
        assert not answered(buyer)
        assert check(system._store) == []


def test_a_strict_budget_refuses_what_a_tool_costs_where_too_little_is_left(database: str) -> None:
    with ActorSystem.open(database, "offline", budget={"usd": 0.05, "strict": True}) as system:
        system.root.charge(usd=0.03)
        with pytest.raises(BudgetExceeded, match=r"has \$0.02 left; this costs \$0.03"):
            system.root.charge(usd=0.03)
        system.root.charge(usd=0.02)
        assert system.root.record.spent_usd == 50_000
        for wrong in (-1, float("nan"), True, "1"):
            with pytest.raises(BadInput):
                system.root.charge(usd=wrong)  # type: ignore[arg-type]
        assert check(system._store) == []


def notes_or_words(request: Request) -> Reply:
    """Many words; notes for who asks for a summary. Each costs 110 tokens."""
    asked = request.messages[-1]["content"][-1]["text"]
    return Reply("notes" if asked.startswith(SUMMARISE) else "so many words " * 50, usage=Usage(100, 10))


def test_a_summary_between_turns_is_charged_and_refused_where_it_does_not_fit(database: str) -> None:
    provider = ScriptedProvider(notes_or_words)
    with ActorSystem.open(database, provider, budget={"tokens": 1_000, "strict": True}) as system:
        buyer = system.root.fork(name="buyer")
        assert all(answered(buyer) for _ in range(6))
        buyer.charge(tokens=200)
        with pytest.raises(BudgetExceeded, match=r"1,000 tokens of [\w-]+ .*860.* spent.*/budget"):
            buyer.compact()
        assert (len(provider.requests), buyer.state) == (6, "idle")
        buyer.grant(tokens=110)
        assert buyer.compact().usage == Usage(100, 10)
        assert provider.requests[-1].settings["max_tokens"] == 150
        assert buyer.budget is not None
        assert (buyer.budget.spent, buyer.budget.held) == ({"tokens": 970}, {"tokens": 0})
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_an_answer_that_is_no_summary_is_charged_also_where_no_other_one_fits(database: str) -> None:
    words = [Reply("so many words " * 50, usage=Usage(100, 10))] * 6
    cut = Reply("and so on", usage=Usage(100, 150), stop_reason="max_tokens")
    for granted, error, spent in ((1_000, "Too little is left of the 1,000 tokens of ", 910), (10_000, None, 1_020)):
        provider = ScriptedProvider([*words, cut, Reply("notes", usage=Usage(100, 10))])
        with ActorSystem.open(":memory:", provider, budget={"tokens": granted, "strict": True}) as system:
            buyer = system.root.fork(name="buyer")
            assert all(answered(buyer) for _ in range(6))
            if error is not None:
                with pytest.raises(ProviderError, match=error):
                    buyer.compact()
            else:
                assert buyer.compact().position
            assert buyer.budget is not None
            assert (buyer.budget.spent, buyer.budget.held) == ({"tokens": spent}, {"tokens": 0})
            assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_summary_that_is_cut_off_between_turns_counts_as_any_request_does(durable: str) -> None:
    former, two = Hanging("notes"), Hanging("notes")
    with ActorSystem.open(
        durable, ScriptedProvider(notes_or_words), providers={"one": former, "two": two}, budget={"tokens": 100_000}
    ) as system:
        buyer = system.root.fork(name="buyer")
        assert all(answered(buyer) for _ in range(6))
        buyer.configure(compact_model="one:m")
        asked = buyer.aio.compact()
        former.wait_until_asked()
        assert buyer.budget is not None
        first = buyer.budget.held["tokens"]
        assert check(system._store) == []
        assert buyer.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            asked.get(timeout=DEADLINE)
        assert (buyer.budget.spent, buyer.budget.held) == ({"tokens": 660 + first}, {"tokens": 0})
        buyer.configure(compact_model="two:m")
        buyer.aio.compact()
        two.wait_until_asked()
        second = buyer.budget.held["tokens"]
        assert first > 0 < second
    with ActorSystem.open(durable, ScriptedProvider(notes_or_words)) as system:
        buyer = system.agent("buyer")
        assert buyer.budget is not None
        assert (buyer.budget.spent, buyer.budget.held) == ({"tokens": 660 + first + second}, {"tokens": 0})
        assert check(system._store) == []


def counted(request: Request) -> Reply:
    """A reply that costs a token for three bytes of the request; notes for who asks for a summary."""
    asked = request.messages[-1]["content"][-1]["text"]
    size = sum(len(block["text"]) for message in request.messages for block in message["content"])
    usage = Usage(size // 3, min(90, request.settings["max_tokens"]))
    return Reply("notes" if asked.startswith(SUMMARISE) else "so many words " * 20, usage=usage)


class Billing(ScriptedProvider):
    """A script that bills by tokens."""

    counts = True


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize(("granted", "how"), [(1, "digest"), (90, "model")])
def test_a_summary_that_nobody_asked_for_is_held_at_the_price_of_its_own_model(
    tmp_path: Path, granted: int, how: str
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[cheap]\ninput = 1\noutput = 1\n[dear]\ninput = 1000\noutput = 1000\n")
    main, dear = Billing(counted), Billing(counted)
    strict = {"usd": granted, "strict": True}
    with ActorSystem.open(":memory:", providers={"main": main, "notes": dear}, budget=strict, prices=prices) as system:
        system.root.configure(
            model="main:cheap", compact_model="notes:dear", max_tokens=100, context_window=2_000, compact_at=1.0
        )
        said: list[str] = []
        while not said:
            assert answered(system.root)
            said = [message.data["how"] for message in system.root.history(all=True) if message.kind == "summary"]
        assert set(said) == {how}
        assert [request.once for request in dear.requests] == [True] * said.count("model")
        assert system.root.budget is not None
        assert system.root.budget.spent["usd"] <= granted
        assert system.root.budget.held == {"usd": 0}
        assert check(system._store) == []


@pytest.mark.parametrize(("granted", "how"), [(3_800, "digest"), (90_000, "model")])
def test_a_summary_after_a_reply_that_was_cut_by_a_full_window_is_held_as_any_request_is(
    granted: int, how: str
) -> None:
    def answer(request: Request) -> Reply:
        reply = counted(request)
        full = len(request.messages) > 5 and reply.text != "notes"
        return Reply("half of", stop_reason="model_context_window_exceeded", usage=reply.usage) if full else reply

    provider = Billing(answer)
    with ActorSystem.open(":memory:", provider, budget={"tokens": granted, "strict": True}) as system:
        system.root.configure(max_tokens=100, tools=[])
        assert [answered(system.root) for _ in range(4)] == [True, True, True, how == "model"]
        system.root.grant(tokens=5_000)
        assert system.root.reply(timeout=DEADLINE).text.startswith("so many")
        kinds = [message.kind for message in system.root.history(all=True)]
        assert kinds[-4:] == ["user", "retry", "summary", "assistant"]
        assert [message.data["how"] for message in system.root.history(all=True) if message.kind == "summary"] == [how]
        asked = [request.once for request in provider.requests if SUMMARISE in str(request.messages[-1])]
        assert asked == [True] * (how == "model")
        assert system.root.budget is not None
        assert system.root.budget.spent["tokens"] <= granted + 5_000
        assert system.root.budget.held == {"tokens": 0}
        assert check(system._store) == []


def test_what_stands_for_the_past_counts_in_what_a_strict_budget_holds() -> None:
    long = "word " * 1_000

    def answer(request: Request) -> Reply:
        summary = request.messages[-1]["content"][-1]["text"].startswith(SUMMARISE)
        size = len(json.dumps(list(request.messages)))
        return Reply(long if summary else "so " * 2_000, usage=Usage(size, 10))

    with ActorSystem.open(":memory:", Billing(answer), budget={"tokens": 1_000_000, "strict": True}) as system:
        buyer = system.root.fork(name="buyer")
        buyer.configure(max_tokens=100)
        assert all(answered(buyer) for _ in range(3))
        buyer.compact()
        assert buyer.budget is not None
        left = int(buyer.budget.granted["tokens"] - buyer.budget.spent["tokens"])
        buyer.charge(tokens=left - 3_000)
        assert not answered(buyer)  # its text alone has 5,000 bytes
        buyer.grant(tokens=20_000)
        assert buyer.reply(timeout=DEADLINE).text.startswith("so")
        buyer.uncompact()
        left = int(buyer.budget.granted["tokens"] - buyer.budget.spent["tokens"])
        buyer.charge(tokens=left - 12_000)
        assert not answered(buyer)  # what is shown again has 18,000
        assert check(system._store) == []


class Priced(ScriptedProvider):
    """Counts a token for each byte of a request, tools and system prompt included."""

    counts = True
    max_tokens = 50

    def __init__(self) -> None:
        super().__init__(self._answer)

    def _answer(self, request: Request) -> Reply:
        texts = [block["text"] for message in request.messages for block in message["content"]]
        sent = json.dumps(list(request.tools)) + request.system + "".join(texts)
        return Reply("ok", usage=Usage(len(sent), 5))


@pytest.mark.sample(1, "what is new")
@pytest.mark.parametrize("more", [{"system": "be brief " * 200}, {"tools": ["wait", "fork", "send"]}, {}])
def test_what_a_strict_budget_holds_counts_tools_and_instructions_that_are_new_since_the_latest_reply(
    more: dict[str, Any],
) -> None:
    provider = Priced()
    with ActorSystem.open(":memory:", provider, budget={"tokens": 100_000, "strict": True}) as system:
        buyer = system.root.fork(name="buyer")
        buyer.configure(tools=[])
        assert answered(buyer)
        assert buyer.budget is not None
        buyer.charge(tokens=int(buyer.budget.granted["tokens"] - buyer.budget.spent["tokens"]) - 1_400)
        if more:
            buyer.configure(**more)
            assert not answered(buyer)
            buyer.grant(tokens=20_000)
            assert settled(buyer) == "idle"
        else:
            form = {"type": "object", "properties": {f"field_{at}": {"type": "string"} for at in range(50)}}
            buyer.prompt("go on", output=form)
            assert settled(buyer) == "budget"
        assert buyer.budget is not None
        assert buyer.budget.spent["tokens"] <= buyer.budget.granted["tokens"]
        assert check(system._store) == []


def test_who_may_make_no_requests_at_all_is_told_that_only_a_grant_helps() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(thirty), budget={"requests_per_minute": 0}) as system:
        assert not answered(system.root.fork(name="buyer"))
        [notice] = notices(system.root)
        assert "may make no requests. /budget" in notice
        assert "by itself" not in notice
        system.root.grant(requests_per_minute=1)
        assert system.agent("buyer").reply(timeout=DEADLINE).text == "ok"


class Unsure:
    """A provider that fails to say whether it bills by tokens."""

    name = "unsure"

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        self.requests.append(request)
        return Reply("ok", usage=Usage(0, 30))

    async def close(self) -> None:
        """Holds nothing."""

    @property
    def counts(self) -> bool:
        """Whether it bills by tokens."""
        raise SystemExit(3)


class Unlimited(Unsure):
    """A provider that bills by tokens, and fails to say how long its replies may be."""

    counts = True

    @property
    def max_tokens(self) -> int:
        """The most tokens of a reply."""
        raise SystemExit(3)


@pytest.mark.sample(1, "budgets")
@pytest.mark.parametrize("budget", [{"tokens": 10**6}, {"usd": 5}, {"tokens": 0}, {"requests_per_minute": 0}])
def test_a_model_that_cannot_be_asked_fails_at_once_whatever_is_left(database: str, budget: dict[str, float]) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={**budget, "strict": True}) as system:
        buyer = system.root.fork("go", name="buyer", model="nosuch:x")
        with pytest.raises(ProviderError, match="nosuch"):
            buyer.reply(timeout=DEADLINE)
        assert buyer.budget is not None
        assert not any((*buyer.budget.spent.values(), *buyer.budget.held.values()))
        assert check(system._store) == []


@pytest.mark.parametrize("kind", [Unsure, Unlimited])
def test_a_provider_that_does_not_say_what_a_request_costs_is_not_asked_under_a_strict_budget(
    database: str, kind: type[Unsure]
) -> None:
    provider = kind()
    with ActorSystem.open(database, provider, budget={"tokens": 10**6, "strict": True}) as system:
        with pytest.raises(ProviderError, match="counts and max_tokens"):
            system.root.fork("go", name="buyer").reply(timeout=DEADLINE)
        assert provider.requests == []
        assert system.agent("buyer").state == "idle"
        assert check(system._store) == []


class Secretive(Unsure):
    """A provider that fails to say whether it is the agent's own code."""

    counts = True

    @property
    def own_code(self) -> bool:
        """Whether the agent's own code answers."""
        raise SystemExit(3)


@pytest.mark.parametrize("budget", [None, {"tokens": 10**6}])
def test_a_provider_that_does_not_say_whose_code_it_is_fails_the_request_and_not_the_agent(
    budget: dict[str, int] | None,
) -> None:
    with ActorSystem.open(":memory:", Secretive(), budget=budget) as system:
        for _ in range(2):
            with pytest.raises(ProviderError, match="The provider failed: SystemExit: 3"):
                system.root.prompt("go").get(timeout=DEADLINE)
        assert system.root.state == "idle"


@pytest.mark.sample(1, "what it does not say; the test above has both")
@pytest.mark.parametrize("kind", [Unsure, Unlimited])
def test_a_provider_that_does_not_say_what_a_request_costs_is_asked_where_no_budget_is_strict(
    database: str, kind: type[Unsure]
) -> None:
    for budget in (None, {"tokens": 10**6}):
        with ActorSystem.open("sqlite:///:memory:" if budget is None else database, kind(), budget=budget) as system:
            buyer = system.root.fork("go", name="buyer")
            assert buyer.reply(timeout=DEADLINE).text == "ok"
            assert check(system._store) == []


def test_the_notice_of_a_pause_says_what_is_spent_held_and_needed_and_what_to_do(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(thirty), budget={"tokens": 100}) as system:
        lead = system.root.fork(name="lead", budget={"tokens": 1_000_000, "strict": True})
        lead.charge(tokens=100)
        assert not answered(lead)
        [notice] = [notice for notice in notices(system.root) if "80 %" not in notice]
        short = words_of(system.root.uuid)
        assert notice == (
            "Too little is left of the 100 tokens of everybody (100 tokens spent, 0 tokens held; this request needs up "
            f"to 16,000 tokens). /budget {short} +100000tokens, or grant(), lets it go on. INT (Ctrl-C) ends the turn "
            "free of charge."
        )


@pytest.mark.slow("takes a tenth of a second")
def test_what_a_provider_tells_beyond_what_it_was_allowed_is_counted_and_noted(database: str, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text("[tea]\ninput = 1.0\noutput = 1.0\n")
    careless = ScriptedProvider(lambda _: Reply("words", usage=Usage(0, 150), model="tea-1"))
    granted = {"tokens": 200, "usd": 1, "strict": True}
    with ActorSystem.open(database, careless, prices=tmp_path / "prices.toml") as system:
        lead = system.root.fork(name="lead", budget=granted)
        lead.configure(max_tokens=100)
        first, second, third = (answered(lead.fork(name=name)) for name in ("ann", "ben", "cai"))
        assert (first, second, third) == (True, True, False)
        budget = lead.budget
        assert budget is not None
        assert (budget.spent["tokens"], budget.beyond["tokens"], budget.risk["tokens"]) == (300, 150, 0)
        assert "150 tokens of it beyond what providers were allowed" in list(budget_lines(budget, "lead"))[1]
        report = inspect(system._store)
        assert report.violations == []
        assert any("150 tokens more than they were allowed" in note.text for note in report.notes)
        assert "note: " in as_lines(report)[0]
