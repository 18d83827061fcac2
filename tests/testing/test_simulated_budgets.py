"""Budgets in a simulation: a service that counts for itself never counts more than a strict budget grants."""

import asyncio
import json
from collections.abc import Callable

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    Delta,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    Stream,
    Usage,
)
from ikigai_actors.providers import Spent
from ikigai_actors.providers.base import OnDelta
from ikigai_actors.testing import CrashPoint, Faults, ProcessCrashed, Simulation, simulate, simulated
from tests.kit.programs import cheaper

GRANTED = 60_000


class Meter:
    """A service that bills all that reached it, also what broke off or was cancelled, and does not always tell."""

    name = "meter"
    counts = True
    max_tokens = 900

    def __init__(self) -> None:
        self.billed = 0
        self.requests = 0

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        self.requests += 1
        number = self.requests
        blocks = [block for message in request.messages for block in message["content"]]
        sent = [json.dumps(list(request.tools)), request.system, *(str(block.get("text", "")) for block in blocks)]
        taken = len("".join(sent).encode()) * (2 + number % 3) // 4 + 8 * len(blocks)  # a token is 1 to 2 bytes
        allowed = request.settings.get("max_tokens", self.max_tokens) if number % 2 else 40
        self.billed += taken
        if number % 5 == 1:
            on_delta(Delta(spent=Spent(Usage(taken, 1), "meter-1")))
        for _ in range(4):
            self.billed += allowed // 4
            on_delta(Delta("word "))
            await asyncio.sleep(0.1)
        if number % 7 == 3:
            raise ProviderError("It broke off.", "word word", broke_off=True)
        return Reply("word " * 4, usage=None if number % 4 == 2 else Usage(taken, allowed // 4 * 4), model="meter-1")

    async def close(self) -> None:
        """Holds nothing."""


def team(meter: Meter, *, strict: bool) -> Callable[[Simulation], None]:
    """Agents that spend as much as they may, together; one is interrupted and one is killed."""

    def run(world: Simulation) -> None:
        system = world.open(meter, budget={"tokens": GRANTED, "strict": strict})
        kids = [system.root.fork("go", name=name, budget={"tokens": 25_000}) for name in ("ann", "ben")]
        kids += [system.root.fork("go", name=name) for name in ("cai", "dan")]
        for kid in kids:
            kid.prompt("and on")
        world.sleep(1)
        kids[0].fork("a part of it", name="part")
        kids[2].signal(Signal.INT)
        kids[3].kill()
        world.sleep(30)
        system.root.grant(tokens=20_000)
        world.sleep(30)

    return run


def never_exceeded(meter: Meter) -> Callable[[Simulation], None]:
    def after(world: Simulation) -> None:
        budget = world.system.root.budget
        assert budget is not None
        assert meter.billed <= budget.spent["tokens"] + budget.held["tokens"] <= budget.granted["tokens"]

    return after


@pytest.mark.sample(1, "faults each")
@pytest.mark.slow("takes four seconds")
@pytest.mark.parametrize(
    ("faults", "hosts"),
    [
        (Faults(crashes=2, lost=1, unheard=1, unanswered=1, errors=1, cuts=1, deaf=1), 1),
        (Faults(crashes=1, takeovers=1), 1),
        (Faults(unrung=2), 3),
    ],
)
@cheaper("examples", 1, 4, "more schedules")
def test_a_strict_budget_is_never_exceeded_whatever_the_schedule_and_the_faults(
    examples: int, faults: Faults, hosts: int
) -> None:
    meters: list[Meter] = []

    def run(world: Simulation) -> None:
        meters.append(Meter())
        team(meters[-1], strict=True)(world)

    simulate(run, hosts=hosts, faults=faults, after=lambda world: never_exceeded(meters[-1])(world), examples=examples)


@pytest.mark.slow("takes a tenth of a second")
def test_an_expected_budget_says_how_much_more_may_have_been_spent() -> None:
    with simulated() as world:
        meter = Meter()
        team(meter, strict=False)(world)
        world.settle()
        budget = world.system.root.budget
        assert budget is not None
        assert meter.billed <= budget.spent["tokens"] + budget.held["tokens"] + budget.risk["tokens"]
        assert meter.requests > 4


def thirty(request: Request) -> Reply:
    return Reply("ok", usage=Usage(0, 30))


@pytest.mark.slow("takes a tenth of a second")
def test_requests_that_are_too_many_for_a_minute_go_on_by_themselves_when_it_is_over() -> None:
    with simulated() as world:
        provider = ScriptedProvider(thirty)
        system = world.open(provider, budget={"requests_per_minute": 2})
        began = world.clock.now_ms()
        kids = [system.root.fork("go") for _ in range(5)]
        assert {kid.state for kid in kids} >= {"waiting for budget"}
        assert [kid.reply().text for kid in kids] == ["ok"] * 5
        assert 120_000 <= world.clock.now_ms() - began < 122_000
        assert [mail for mail in system.root.mails() if mail.kind == "notice"] == []


def test_a_parent_is_woken_when_its_child_waits_for_a_grant_that_waited_for_a_minute_before() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(thirty))
        shop = system.root.fork(name="shop", budget={"requests_per_minute": 1})
        buyer = shop.fork(name="buyer", budget={"tokens": 20})
        buyer.prompt("go")
        world.settle()
        shop.prompt("go").get()
        buyer.prompt("and on")
        began = world.clock.now_ms()
        assert shop.wait([buyer], timeout=600) == {buyer: "budget"}
        assert world.clock.now_ms() - began < 130_000
        assert buyer.state == "waiting for budget"
        buyer.grant(tokens=100)
        world.sleep(61)
        assert buyer.reply().text == "ok"


@pytest.mark.slow("takes a tenth of a second")
def test_a_parent_is_woken_for_those_too_who_wait_behind_one_that_needs_a_grant_by_now() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(thirty))
        shop = system.root.fork(name="shop", budget={"requests_per_minute": 1, "tokens": 100})
        kids = [shop.fork(name=name) for name in ("ann", "ben", "cai")]
        for kid in kids:
            kid.prompt("go")
            world.settle()
        assert kids[0].reply().text == "ok"
        shop.charge(tokens=100)
        assert system.root.wait(kids[1:], timeout=600) == {kids[1]: "budget", kids[2]: "budget"}
        shop.grant(tokens=1_000)
        world.sleep(120)
        assert [kid.reply().text for kid in kids] == ["ok"] * 3


def test_what_waited_for_a_grant_and_then_for_a_minute_goes_on_when_that_is_over() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(thirty), budget={"tokens": 100})
        shop = system.root.fork(name="shop", budget={"requests_per_minute": 1})
        system.root.charge(tokens=100)
        buyer = shop.fork("go", name="buyer")
        world.settle()
        system.root.grant(tokens=30)
        assert buyer.reply().text == "ok"
        buyer.prompt("again")
        world.settle()
        assert buyer.state == "waiting for budget"  # agent 0 has no tokens left
        system.root.grant(tokens=30)
        world.sleep(61)
        assert buyer.reply().text == "ok"


def test_a_limit_of_time_ends_at_the_next_request() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(thirty), budget={"seconds": 60})
        kid = system.root.fork("go")
        assert kid.reply().text == "ok"
        world.sleep(61)
        kid.prompt("again")
        world.settle()
        assert kid.state == "waiting for budget"


@pytest.mark.parametrize("back", [30, 7_200])
def test_requests_of_a_minute_count_for_two_minutes_at_most_after_a_clock_is_set_back(back: int) -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(thirty), budget={"requests_per_minute": 2})
        kids = [system.root.fork("go") for _ in range(3)]
        world.settle()
        world.clock.jump(-back)
        world.sleep(121)
        assert [kid.reply().text for kid in kids] == ["ok"] * 3
        assert system.root.budget is not None
        assert system.root.budget.spent["requests_per_minute"] <= 2


@pytest.mark.thorough("a second play of hosts")
def test_a_host_whose_clock_is_far_behind_that_of_the_server_lets_requests_go_on_in_time() -> None:
    with simulated(hosts=2) as world:
        system = world.open(ScriptedProvider(thirty), budget={"requests_per_minute": 1})
        for host in world.hosts:
            host.process.clock.jump(-7_200)
        kids = [system.root.fork("go") for _ in range(2)]
        world.sleep(121)
        assert [kid.state for kid in kids] == ["idle"] * 2


def test_time_that_a_wrong_clock_has_ended_goes_on_when_the_clock_is_right_again() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(thirty), budget={"seconds": 3_600})
        world.clock.jump(4_000)
        kid = system.root.fork("go")
        world.settle()
        assert kid.state == "waiting for budget"
        world.clock.jump(-4_000)
        world.sleep(61)
        assert kid.reply().text == "ok"
        world.clock.jump(-7_200)
        assert system.root.budget is not None
        assert system.root.budget.spent["seconds"] == 0


@pytest.mark.sample(1, "a schedule each")
@pytest.mark.parametrize("hosts", [1, 2])
def test_the_owner_of_time_is_told_once_at_80_percent_of_it_and_once_more_after_a_grant(hosts: int) -> None:
    with simulated(hosts=hosts) as world:
        system = world.open(ScriptedProvider(thirty))
        boss = system.root.fork(name="boss")
        kid = boss.fork(name="kid", budget={"seconds": 100})
        living = boss.fork(name="living")
        world.sleep(20)
        living.set_budget({"seconds": 100})
        world.sleep(59)
        assert notices(kid) == []
        kid.kill()
        world.sleep(2)
        assert notices(boss) == ["80 % of the 100 s of kid are over."]  # the owner is dead
        assert notices(living) == []
        world.sleep(20)
        assert notices(living) == ["80 % of the 100 s of living are over."]
        living.grant(seconds=100)
        living.prompt("go")
        world.sleep(58)
        assert len(notices(living)) == 1
        world.sleep(60)
        assert notices(living)[1:] == ["80 % of the 200 s of living are over."]
        assert len(notices(boss)) == 1


def notices(agent: AgentRef) -> list[str]:
    return [mail.body for mail in agent.mails() if mail.kind == "notice"]


@pytest.mark.sample(3, "a commit each")
@pytest.mark.parametrize("commit", range(1, 14))
def test_wherever_a_process_ends_a_paused_turn_is_resumed_once_by_a_grant(commit: int) -> None:
    with simulated() as world:
        provider = ScriptedProvider(thirty)
        system = world.open(provider, budget={"tokens": 0})
        kid = system.root.fork(name="kid")
        world.crash_at(CrashPoint(commit))
        try:
            kid.prompt("go")
            world.settle()
            granted(system)
            world.settle()
        except ProcessCrashed:
            system = world.recover()
        world.settle()
        kid = system.agent("kid")
        if kid.state == "waiting for budget":
            granted(system)
        if kid.state == "interrupted":
            kid.resume()
        if [message.kind for message in kid.history()][-1:] == ["fork"]:
            kid.prompt("go")
            granted(system)
        world.settle()
        assert [message.kind for message in kid.history()].count("assistant") == 1


def granted(system: ActorSystem) -> None:
    system.root.grant(tokens=1_000)


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "two hosts for two minutes")
@pytest.mark.parametrize("strict", [False, True])
def test_what_a_killed_host_held_is_spent_once_by_the_host_that_takes_its_agents(strict: bool) -> None:
    slow = Stream(("it takes ", "time"), delay=30.0)
    with simulated(hosts=2) as world:
        system = world.open(ScriptedProvider(lambda _: slow), budget={"tokens": 50_000, "strict": strict})
        kids = [system.root.fork(name=name, budget={"tokens": 20_000}) for name in ("ann", "ben", "cai", "dan")]
        world.sleep(5)
        living, dead = world.hosts
        moved = kids[:2]
        for kid in kids:
            living.move(kid, dead if kid in moved else living)
            kid.configure(max_tokens=500)
            kid.prompt("go")
        world.settle()
        budgets = [kid.budget for kid in kids]
        held = [int(status.held["tokens"]) for status in budgets if status is not None]
        assert min(held) > 0
        dead.kill()
        world.sleep(5)
        for kid, amount in zip(kids, held, strict=True):
            budget = living.system.handle(kid.uuid).budget
            assert budget is not None
            assert budget.spent["tokens"] == (amount if kid in moved else 0)
            assert budget.held["tokens"] == amount  # who was moved asks again, and holds as much for that
        world.sleep(100)
        root = living.system.root.budget
        assert root is not None
        assert (root.spent["tokens"], root.held["tokens"]) == (held[0] + held[1], 0)
        assert [living.system.handle(kid.uuid).reply().text for kid in kids] == ["it takes time"] * 4


@pytest.mark.slow("takes a tenth of a second")
def test_a_pause_below_is_seen_above_within_a_second_and_the_kill_of_its_host_changes_nothing() -> None:
    with simulated(hosts=2) as world:
        provider = ScriptedProvider(thirty)
        system = world.open(provider, budget={"tokens": 0})
        world.sleep(5)
        living, dead = world.hosts
        team = system.root.fork(name="team")
        kid = team.fork(name="kid")
        living.move(team, dead)
        assert kid.record.owner != system.root.record.owner
        began = world.clock.now_ms()
        kid.prompt("go")
        assert system.root.wait([kid], timeout=60) == {kid: "budget"}
        assert kid.state == "waiting for budget"
        [notice] = notices(system.root)
        assert "0 tokens" in notice
        assert world.clock.now_ms() - began <= 1_000
        dead.kill()
        world.sleep(5)
        assert kid.record.owner == system.root.record.owner
        assert (kid.state, len(notices(system.root)), len(provider.requests)) == ("waiting for budget", 1, 0)
        system.root.grant(tokens=1_000)
        assert kid.reply().text == "ok"
        assert len(provider.requests) == 1
