"""Requests that wait for a batch: paid once whatever dies, at the price of a batch, and asked directly in the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors import ProviderError, Reply, Request, Signal, Usage
from ikigai_actors.events import BatchTrouble
from ikigai_actors.reach.metrics import read_metrics
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing import Simulation, simulated
from ikigai_actors.testing.scripted_batches import ScriptedBatches
from ikigai_actors.verbs.text.wording import explained


def said(request: Request) -> Reply:
    return Reply(f"reply {len(request.messages)}", usage=Usage(1_000, 100))


@pytest.fixture
def provider() -> ScriptedBatches:
    return ScriptedBatches(said)


@pytest.fixture
def world(provider: ScriptedBatches) -> Iterator[Simulation]:
    with simulated() as world:
        world.open(provider)
        yield world


def test_a_patient_request_waits_for_a_batch_and_says_so(world: Simulation, provider: ScriptedBatches) -> None:
    agent = world.system.root.fork(name="ann")
    agent.configure(urgency="24h")
    reply = agent.prompt("hello")
    world.sleep(5)
    assert agent.state == "waiting for its batch"
    assert reply.get(timeout=600).text == "reply 1"
    assert (len(provider.paid), provider.direct) == (1, 0)
    assert agent.history()[-1].data["batched"] is True
    assert check(world.system._store) == []


def ask(world: Simulation, count: int) -> None:
    for number in range(count):
        agent = world.system.root.fork(name=f"agent-{number}")
        agent.configure(urgency="24h")
        agent.prompt("hello")
    world.sleep(5)


def answered(world: Simulation) -> list[str]:
    agents = [record for record in world.system.agents() if (record.name or "").startswith("agent-")]
    return [world.system.agent(agent.uuid).history()[-1].content for agent in agents]


def test_a_turn_that_waits_for_its_batch_is_not_counted_as_silent() -> None:
    with simulated() as world:
        world.open(ScriptedBatches(said, polls=60))
        ask(world, 1)
        world.sleep(1_000)
        assert world.system.agent("agent-0").state == "waiting for its batch"
        silent = [metric for metric in read_metrics(world.system) if metric.name == "ikigai_turns_silent"]
        assert [dict(metric.values) for metric in silent] == [{(): 0}]


@pytest.mark.slow("takes a tenth of a second")
def test_a_request_whose_agent_was_forked_while_it_waits_is_found_again_after_a_crash(
    world: Simulation, provider: ScriptedBatches
) -> None:
    ask(world, 1)
    agent = world.system.agent("agent-0")
    agent.fork(name="kid", at=0)
    assert [message.kind for message in agent.history()][-2:] == ["user", "fork"]
    world.crash()
    world.recover()
    world.sleep(300)
    assert answered(world) == ["reply 1"]
    assert ([order.size for order in provider.orders], len(provider.paid)) == ([1], 1)
    assert check(world.system._store) == []


def test_requests_of_many_agents_are_one_batch(world: Simulation, provider: ScriptedBatches) -> None:
    ask(world, 4)
    world.sleep(150)
    assert answered(world) == ["reply 1"] * 4
    assert [order.size for order in provider.orders] == [4]
    assert len(provider.paid) == 4


@pytest.mark.slow("takes a tenth of a second")
def test_half_the_price_is_charged_and_a_strict_budget_holds_the_whole(
    provider: ScriptedBatches, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["scripted:"]\ninput = 3\noutput = 15\n', encoding="utf-8")
    with simulated() as world:
        world.open(provider, prices=prices, budget={"usd": 5, "strict": True})
        agent = world.system.root.fork(name="ann")
        agent.configure(urgency="24h", max_tokens=1_000)
        reply = agent.prompt("hello")
        world.sleep(5)
        held = world.system.root.budget
        assert held is not None
        assert held.held["usd"] > 0.015
        assert reply.get(timeout=600).text == "reply 1"
        spent = world.system.root.budget
        assert spent is not None
        assert spent.spent["usd"] == pytest.approx((3 * 1_000 + 15 * 100) / 1_000_000 / 2)


@pytest.mark.slow("takes a tenth of a second")
def test_a_request_that_the_service_refuses_ends_its_turn_and_may_be_asked_again(
    world: Simulation, provider: ScriptedBatches
) -> None:
    provider.outcomes = ["refused"]
    agent = world.system.root.fork(name="ann")
    agent.configure(urgency="24h")
    with pytest.raises(ProviderError, match="refused the request"):
        agent.prompt("hello").get(timeout=600)
    assert agent.resume()
    world.sleep(300)
    assert agent.history()[-1].content == "reply 1"
    assert len(provider.paid) == 1


@pytest.mark.sample(1, "outcomes")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("kind", ["expired", "errored", "canceled"])
def test_a_request_that_is_not_answered_is_put_into_three_batches_and_then_asked_directly(
    world: Simulation, provider: ScriptedBatches, kind: str
) -> None:
    provider.outcomes = [kind] * 3
    agent = world.system.root.fork(name="ann")
    agent.configure(urgency="24h")
    assert agent.prompt("hello").get(timeout=3_000).text == "reply 1"
    assert (len(provider.orders), len(provider.paid), provider.direct) == (3, 0, 1)
    assert "batched" not in agent.history()[-1].data


@pytest.mark.slow("takes a tenth of a second")
def test_a_request_whose_time_is_over_is_asked_directly() -> None:
    provider = ScriptedBatches(said, polls=10_000)
    with simulated() as slow:
        slow.open(provider)
        agent = slow.system.root.fork(name="ann")
        agent.configure(urgency="1h")
        begun = slow.clock.monotonic()
        assert agent.prompt("hello").get(timeout=2 * 3_600).text == "reply 1"
        assert provider.direct == 1
        assert 3_600 <= slow.clock.monotonic() - begun < 3_800
        slow.sleep(300)
        assert provider.cancelled == ["batch_1"]
        assert check(slow.system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_batch_that_the_service_will_not_have_is_asked_directly(world: Simulation, provider: ScriptedBatches) -> None:
    provider.refused_orders = 1
    ask(world, 3)
    world.sleep(300)
    assert answered(world) == ["reply 1"] * 3
    assert (provider.direct, provider.paid) == (3, [])


@pytest.mark.slow("takes a tenth of a second")
def test_an_interrupted_request_is_not_sent_and_one_that_was_sealed_is_charged(
    world: Simulation, provider: ScriptedBatches
) -> None:
    early, late = (world.system.root.fork(name=name) for name in ("early", "late"))
    for agent in (early, late):
        agent.configure(urgency="24h")
    early.prompt("hello")
    world.sleep(5)
    early.signal(Signal.INT)
    late.prompt("hello")
    world.sleep(70)
    late.signal(Signal.INT)
    world.sleep(600)
    assert [order.size for order in provider.orders] == [1]
    assert early.history()[-1].data.get("usage") is None
    assert late.history()[-1].data["usage"]["input_tokens"] > 0
    assert check(world.system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_subscribers_are_told_once_of_a_batch_that_was_refused_and_of_one_that_cannot_be_fetched() -> None:
    provider = UnreachableBatches(said)
    with simulated() as world:
        world.open(provider)
        heard: list[BatchTrouble] = []
        with world.system.subscribe(heard.append, only=(BatchTrouble,)):
            provider.refused_orders = 1
            ask(world, 1)
            world.sleep(300)
            world.system.agent("agent-0").prompt("again")
            world.sleep(600)
            provider.is_reachable = True
            world.sleep(300)
        assert [trouble.text for trouble in heard] == [
            "The service refused a batch, and its requests are sent directly: 400: no such model",
            "The results of a batch could not be fetched: the connection broke",
        ]
        assert {trouble.service for trouble in heard} == {"scripted:"}
        assert len({trouble.batch for trouble in heard}) == 2
        assert answered(world) == ["reply 3"]


@pytest.mark.slow("takes a tenth of a second")
def test_subscribers_are_told_once_of_a_batch_of_which_nobody_knows_whether_it_was_sent() -> None:
    provider = ScriptedBatches(said)
    provider.lost_orders = 1
    with simulated() as world:
        world.open(provider)
        heard: list[BatchTrouble] = []
        with world.system.subscribe(heard.append, only=(BatchTrouble,)):
            ask(world, 1)
            world.sleep(3_000)
        [trouble] = heard
        assert explained(trouble) == (
            "scripted:: The service did not say whether it has taken a batch: the connection broke"
        )


class UnreachableBatches(ScriptedBatches):
    """Batches whose service takes them, and does not say whether they have ended."""

    is_reachable = False

    async def has_ended(self, remote: str) -> bool:
        if not self.is_reachable:
            raise ProviderError("the connection broke", unavailable=True)
        return await super().has_ended(remote)


@pytest.mark.sample(1, "moments")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("polls", [3, 1])
def test_an_order_without_an_answer_is_found_again_and_paid_once(polls: int) -> None:
    provider = ScriptedBatches(said, polls)
    provider.lost_orders = 1
    with simulated() as world:
        world.open(provider)
        ask(world, 5)
        world.sleep(3_000)
        assert answered(world) == ["reply 1"] * 5
        assert (len(provider.orders), len(provider.paid)) == (1, 5)


@pytest.mark.slow("takes a tenth of a second")
def test_a_request_that_waits_for_its_batch_goes_on_however_often_its_host_ends(
    world: Simulation, provider: ScriptedBatches
) -> None:
    ask(world, 1)
    for _ in range(4):  # once more than a turn may be cut off
        world.crash()
        world.recover()
        world.sleep(5)
        assert world.system.agent("agent-0").state == "waiting for its batch"
    world.sleep(600)
    assert answered(world) == ["reply 1"]
    assert (len(provider.paid), provider.direct) == (1, 0)


@pytest.mark.sample(2, "moments of the kill")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("after", [30, 55, 55.5, 56, 116])
def test_nothing_is_paid_twice_or_lost_when_the_process_is_killed(
    world: Simulation, provider: ScriptedBatches, after: float
) -> None:
    ask(world, 5)
    world.sleep(after)
    world.crash()
    world.recover()
    world.sleep(3_000)
    assert answered(world) == ["reply 1"] * 5
    assert (len(provider.paid), provider.direct) == (5, 0)
    assert check(world.system._store) == []


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("forks", [False, True])
def test_a_request_that_goes_on_in_its_batch_is_charged_once_however_often_its_host_ends(forks: bool) -> None:
    provider = ScriptedBatches(said)
    with simulated() as world:
        world.open(provider, budget={"tokens": 100_000, "strict": True})
        agent = world.system.root.fork(name="ann")
        agent.configure(urgency="24h", max_tokens=1_000)
        agent.prompt("hello")
        world.sleep(5)
        for seconds in (10, 70, 20):
            if forks:
                world.system.agent("ann").fork(at=0)
            held = world.system.root.budget
            assert held is not None
            assert (held.spent["tokens"], held.held["tokens"] > 1_000) == (0, True)
            world.crash()
            world.recover()
            assert check(world.system._store) == []
            world.sleep(seconds)
        world.sleep(3_000)
        assert world.system.agent("ann").history()[-1].content == "reply 1"
        spent = world.system.root.budget
        assert spent is not None
        assert (spent.spent["tokens"], spent.held["tokens"]) == (1_100, 0)
        assert check(world.system._store) == []
