"""Budgets: what it costs to hold and to settle each request at every limited budget above its agent.

Turns: twenty agents are prompted at once, again and again, and a model answers at once that says what it has billed.
There are three such teams in one system, which take turns: above one is no limited budget, above another one, and
above the third there are three. Two of the commits of each turn hold or settle. At most 5 % of the turns in a second
should be lost.

Hosts: one, two or four of four processes each with five agents that are prompted one turn after the other, with a
COMMIT that takes 20 ms. Above the agents of all of them are the same three budgets; beside that, none. Each host
spends its own portions, so two hosts should make twice as many turns as one.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import median

from benchmarks.host_processes import process, tell
from benchmarks.hosts import EACH, HOSTS, SLOW
from benchmarks.measure import timed
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, AgentRef, Reply, ScriptedProvider, Usage

CHAINS = (0, 1, 3)
"""Limited budgets above an agent."""

TEAM = 20
"""Agents that are prompted at once."""

PLENTY = 10**12
"""Tokens that no run uses up."""

PATIENCE = 600.0


class Billing(ScriptedProvider):
    """A model that answers at once, and says what it has billed."""

    counts = True
    max_tokens = 100

    def __init__(self) -> None:
        super().__init__(lambda request: Reply("yes", usage=Usage(100, 1), model="m"))


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Turns by the number of budgets, then by the number of hosts."""
    for place in places:
        rates = _turns(place, 5 if quick else 25)
        for count, rate in zip(CHAINS, rates, strict=True):
            yield Row("turns under budgets", "ikigai", place.name, count, "budgets", rate, "/s", "no budget", rates[0])
    for place in places:
        if place.name == "PostgreSQL":  # a file has one host
            free, limited = (_hosts(place, chain, 8 if quick else 20) for chain in (0, CHAINS[-1]))
            for hosts, rate, beside in zip(HOSTS, limited, free, strict=True):
                row = ("turns of hosts under three budgets", "ikigai", place.name, hosts, "hosts", rate, "/s")
                yield Row(*row, "no budget", beside)


def below(top: AgentRef, budgets: int) -> AgentRef:
    """An agent below so many limited budgets."""
    for _ in range(budgets):
        top = top.fork(budget={"tokens": PLENTY}, timeout=PATIENCE)
    return top


def _turns(place: Place, rounds: int) -> list[float]:
    """Turns in a second, by the number of budgets."""
    database = place.fresh()
    try:
        with ActorSystem.open(database.url, Billing()) as system:
            tops = [below(system.root, count) for count in CHAINS]
            teams = [[top.fork(timeout=PATIENCE) for _ in range(TEAM)] for top in tops]
            rates: list[list[float]] = [[] for _ in CHAINS]
            for number in range(rounds + 1):
                for team, into in zip(teams, rates, strict=True):
                    taken = timed(lambda team=team: [_prompt(team) for _ in range(5)])[0]
                    if number:  # the first is no measure
                        into.append(5 * TEAM / taken)
            return [median(each) for each in rates]
    finally:
        database.drop()


def _prompt(team: list[AgentRef]) -> None:
    for answer in [agent.prompt("go on") for agent in team]:
        answer.get(timeout=PATIENCE)


def _hosts(place: Place, chain: int, turns: int) -> list[float]:
    """Turns in a second, of each number of hosts."""
    database = place.fresh()
    try:
        with ExitStack() as stack, ThreadPoolExecutor(max(HOSTS)) as threads:
            hosts = []
            for number in range(max(HOSTS)):
                command = ["-m", "benchmarks.spending", f"h{number}", str(chain)]
                hosts.append(stack.enter_context(process(command, IKIGAI_DATABASE_URL=database.url + SLOW)))
                tell(hosts[-1])
            rates = []
            for count in HOSTS:
                some = hosts[:count]
                list(threads.map(lambda one: tell(one, "turns 5"), some))
                taken = timed(lambda some=some: list(threads.map(lambda one: tell(one, f"turns {turns}"), some)))[0]
                rates.append(count * EACH * turns / taken)
            return rates
    finally:
        database.drop()
