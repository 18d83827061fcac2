"""Waits for a service in a simulation: the whole system on a clock that leaps, without a second of real time."""

from itertools import pairwise

import pytest

from ikigai_actors import AgentRef, ProviderError, ScriptedProvider, Signal, TimedOut, TurnInterrupted
from ikigai_actors.reach.metrics import read_metrics
from ikigai_actors.records.hosts.host_waits import published_state
from ikigai_actors.records.messages.settings import SERVICE_RETRIES
from ikigai_actors.store.hosts.rows import open_hosts
from ikigai_actors.system.remote.client import shown_state
from ikigai_actors.testing import simulated
from tests.kit.echo import kinds

HOUR = 3_600


def refused(after: float = 0) -> ProviderError:
    return ProviderError("The rate limit is reached.", unavailable=True, free=True, retry_after=after)


def metric(agent: AgentRef, name: str) -> float:
    return next(metric.values[()] for metric in read_metrics(agent.system) if metric.name == name)


def test_a_turn_waits_an_hour_and_everybody_sees_until_when() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider([refused(HOUR), "here"]))
        kid = system.root.fork(name="kid")
        began, reply = world.clock.now_ms(), kid.prompt("go")
        with pytest.raises(TimedOut, match=r"kid waits for scripted until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"):
            reply.get(timeout=60)
        assert kid.state.startswith("waits for scripted until ")
        assert kid.statistics().state == kid.state
        assert metric(kid, "ikigai_requests_put_off") == 1
        assert metric(kid, "ikigai_turns_silent") == 0
        hosts = system._store.read(open_hosts)
        assert published_state(hosts, kid.uuid) == shown_state(kid.record, hosts) == kid.state
        assert reply.get().text == "here"
        assert HOUR <= (world.clock.now_ms() - began) / 1000 < HOUR + 2
        assert kinds(kid.history()) == ["fork", "user", "retry", "assistant"]
        world.settle()
        assert (kid.state, metric(kid, "ikigai_requests_put_off")) == ("idle", 0)
        assert shown_state(kid.record, system._store.read(open_hosts)) == "idle"


def test_the_fallback_is_asked_at_once_instead_of_a_long_wait() -> None:
    with simulated() as world:
        providers = {"right": ScriptedProvider(["second"])}
        system = world.open(ScriptedProvider([refused(24 * HOUR)]), providers)
        began = world.clock.now_ms()
        system.root.configure(model="scripted:a, right:b")
        assert system.root.prompt("go").get().text == "second"
        assert world.clock.now_ms() - began < 1_000


def test_a_blip_in_the_middle_of_a_reply_is_waited_for_longer_each_time_and_ends_at_last() -> None:
    blip = ProviderError("overloaded", "so f", broke_off=True, unavailable=True, retry_after=0)
    with simulated() as world:
        root = world.open(ScriptedProvider([blip] * (SERVICE_RETRIES + 1))).root
        began = world.clock.now_ms()
        with pytest.raises(ProviderError, match="overloaded"):
            root.prompt("go").get()
        assert 11_000 < world.clock.now_ms() - began < 16_000
        times = [message.created_at for message in root.history() if message.kind in ("retry", "error")]
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert pauses == sorted(pauses)
        assert kinds(root.history()) == ["user", *["retry"] * SERVICE_RETRIES, "error"]


def test_int_ends_the_wait_and_stop_holds_the_request_until_cont() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider([refused(HOUR), refused(HOUR), "here"]))
        kid = system.root.fork(name="kid")
        reply = kid.prompt("go")
        with pytest.raises(TimedOut):
            reply.get(timeout=60)
        kid.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            reply.get()
        reply = kid.prompt("again")
        with pytest.raises(TimedOut):
            reply.get(timeout=60)
        kid.signal(Signal.STOP)
        with pytest.raises(TimedOut):
            reply.get(timeout=2 * HOUR)
        assert len(world.requests) == 2
        kid.signal(Signal.CONT)
        assert reply.get(timeout=1).text == "here"


def test_a_budget_holds_nothing_for_a_request_that_waits() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider([refused(HOUR), "here"]), budget={"tokens": 100_000})
        reply = system.root.prompt("go")
        with pytest.raises(TimedOut):
            reply.get(timeout=60)
        assert system.root.budget is not None
        assert (system.root.budget.held, system.root.budget.spent) == ({"tokens": 0}, {"tokens": 0})
        assert reply.get().text == "here"


def test_a_summary_waits_as_a_turn_does() -> None:
    words = "so many words about it that there is something to save " * 10
    with simulated() as world:
        root = world.open(ScriptedProvider([words, words, words, words, refused(HOUR), "notes"])).root
        for text in "abcd":
            root.prompt(text).get()
        began = world.clock.now_ms()
        root.compact()
        assert world.clock.now_ms() - began >= HOUR * 1_000
        assert kinds(root.history(all=True))[-1] == "summary"


def test_a_turn_that_waits_goes_on_after_a_crash() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider([refused(HOUR), refused(60), "here"]))
        with pytest.raises(TimedOut):
            system.root.prompt("go").get(timeout=60)
        world.crash()
        world.recover()
        assert world.system.root.reply().text == "here"
