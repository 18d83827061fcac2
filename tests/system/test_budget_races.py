"""Hosts of one PostgreSQL database whose agents spend from one budget at once."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

from ikigai_actors import ActorSystem, AgentRef, FunctionProvider, Reply, Request, Usage
from ikigai_actors.errors import HostElsewhere
from ikigai_actors.records.fsck.check import check
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, Admin, eventually
from tests.kit.races import those_who_wait

COST = 30
"""Tokens of each reply that no budget cuts."""

NAMES = ("a", "b", "c", "d")
"""Of the hosts."""


class Service:
    """What all hosts ask: it answers once it may, and uses all the tokens that a request allows."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked: list[str] = []

    def answer(self, request: Request) -> Reply:
        """Reply to an agent."""
        self.asked.append(request.agent)
        assert self.answers.wait(DEADLINE)
        return Reply("ok", usage=Usage(0, request.settings["max_tokens"]))


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.answers.set()


@pytest.fixture
def url(new_postgres: NewDatabase) -> str:
    return new_postgres()


@pytest.fixture
def hosts(url: str, service: Service) -> Iterator[list[ActorSystem]]:
    """Four of one database, below a strict budget of six replies and two thirds of one. None moves agents by itself."""
    provider, budget = FunctionProvider(service.answer), {"tokens": 200, "strict": True}
    with ExitStack() as opened:
        yield [
            opened.enter_context(
                ActorSystem.open(url, provider, join=True, name=name, balance=None, budget=budget)  # it is set once
            )
            for name in NAMES
        ]


@pytest.fixture
def agents(hosts: list[ActorSystem]) -> list[AgentRef]:
    """Three of each host, by its own handles."""
    first = hosts[0]
    first.root.configure(max_tokens=COST)
    eventually(lambda: {each.shards for each in first.hosts()} == {16}, "the same share of the shards for each")
    runners: list[tuple[ActorSystem, AgentRef]] = []
    for name, host in zip(NAMES, hosts, strict=True):
        team = first.root.fork(name=f"team-{name}")
        kids = team.fork(prompts=[None] * 3)
        if host is not first:
            first.move(team, name, timeout=DEADLINE)
        runners += [(host, host.handle(kid.uuid)) for kid in kids]
    eventually(lambda: all(runs(host, agent) for host, agent in runners), "the agents at their hosts")
    return [agent for _, agent in runners]


def runs(host: ActorSystem, agent: AgentRef) -> bool:
    """Whether a host acts for an agent."""
    try:
        host._actor(agent.uuid)
    except HostElsewhere:
        return False
    return True


def is_so(host: ActorSystem, spent: int, held: int, waiting: int) -> bool:
    """Whether so many tokens of the budget are spent and held, and so many agents wait, as a host sees it."""
    budget = host.root.budget
    assert budget is not None
    assert budget.spent["tokens"] + budget.held["tokens"] <= budget.granted["tokens"]
    return (budget.spent["tokens"], budget.held["tokens"], budget.waiting) == (spent, held, waiting)


@pytest.mark.thorough("four hosts for seconds; simulated ones in every run")
def test_four_hosts_never_spend_more_than_a_strict_budget_grants_and_each_grant_lets_one_who_waits_go_on(
    url: str, hosts: list[ActorSystem], agents: list[AgentRef], service: Service, postgres_admin: Admin
) -> None:
    with psycopg.connect(url) as holding:
        holding.execute("SELECT uuid FROM agents ORDER BY uuid FOR NO KEY UPDATE")
        turns = [agent.prompt("go") for agent in agents]
        eventually(lambda: those_who_wait(postgres_admin) >= len(hosts), "a transaction of each host")
    eventually(lambda: len(service.asked) == 7 and is_so(hosts[0], 0, 200, 5), "seven requests, of which one is cut")
    with ThreadPoolExecutor(len(hosts)) as pool:
        list(pool.map(lambda host: host.root.grant(tokens=COST, timeout=DEADLINE), hosts))
    eventually(lambda: len(service.asked) == 11 and is_so(hosts[1], 0, 320, 1), "a request for each grant")
    service.answers.set()
    eventually(lambda: is_so(hosts[2], 320, 0, 1), "replies to them")
    hosts[3].root.grant(tokens=COST)
    assert [turn.get(timeout=DEADLINE).text for turn in turns] == ["ok"] * 12
    assert all(is_so(host, 350, 0, 0) for host in hosts)
    assert Counter(service.asked) == Counter(agent.uuid for agent in agents)
    assert check(hosts[0]._store) == []
