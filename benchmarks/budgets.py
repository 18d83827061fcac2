"""Budgets: what it costs to hold and to settle each request at every limited budget above its agent.

Processor: 64 agents are prompted at once, again and again, and a model answers at once that says what it has billed.
There are three such teams, which take turns: above one is no limited budget, above another one, and above the third
there are three. Measured is the processor time of a turn in the hosts, without that of the server. All run in one host;
then a quarter of each team in each of four hosts, processes that share one database and start each round together. A
budget should cost at most 4 % of a turn in one host, and at most 10 % in four.

Rate: one, two or four of four such hosts, with a COMMIT that takes 20 ms. Above all their agents are the same three
budgets; beside that, none. Each host spends its own portions, so two hosts should make twice as many turns as one.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from statistics import median

from benchmarks.host_processes import asked, process, tell
from benchmarks.hosts import HOSTS, SLOW
from benchmarks.measure import timed
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, AgentRef, Reply, ScriptedProvider, Usage

CHAINS = (0, 1, 3)
"""Limited budgets above an agent."""

TEAM = 64
"""Agents that are prompted at once."""

EACH = TEAM // max(HOSTS)
"""Those of them that one of four hosts has."""

TURNS = 5
"""Of each agent in a round."""

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
    """The processor time of turns in one host and in four, then their rate by the number of hosts."""
    rounds = 4 if quick else 20
    for place in places:
        yield from _costs("one host", place.name, _in_one_host(place, rounds))
        if place.name == "PostgreSQL":  # a file has one host
            yield from _costs("four hosts", place.name, _in_four_hosts(place, rounds))
            rates = _rates(place, 4 if quick else 20)
            for hosts, rate, beside in zip(HOSTS, rates[CHAINS[-1]], rates[0], strict=True):
                row = ("turns of hosts under three budgets", "ikigai", place.name, hosts, "hosts", rate, "/s")
                yield Row(*row, "no budget", beside)


def below(top: AgentRef, budgets: int) -> AgentRef:
    """An agent below this many limited budgets."""
    for _ in range(budgets):
        top = top.fork(budget={"tokens": PLENTY}, timeout=PATIENCE)
    return top


def spent(team: Sequence[AgentRef], turns: int) -> float:
    """The processor's seconds in which each of these agents, which are prompted at once, makes some turns."""
    gc.collect()
    began = time.process_time()
    for _ in range(turns):
        for answer in [agent.prompt("go on") for agent in team]:
            answer.get(timeout=PATIENCE)
    return time.process_time() - began


def _costs(where: str, backend: str, seconds: dict[int, float]) -> Iterator[Row]:
    for chain in CHAINS[1:]:
        head = (f"turn under budgets, {where}: processor", "ikigai", backend, chain, "budgets")
        yield Row(*head, seconds[chain], "s", "no budget", seconds[0])


def _in_one_host(place: Place, rounds: int) -> dict[int, float]:
    database = place.fresh()
    try:
        with ActorSystem.open(database.url, Billing()) as system:
            teams = {chain: below(system.root, chain).fork(count=TEAM, timeout=PATIENCE) for chain in CHAINS}
            return _alternating(lambda chain: spent(teams[chain], TURNS), rounds)
    finally:
        database.drop()


def _in_four_hosts(place: Place, rounds: int) -> dict[int, float]:
    with ExitStack() as stack:
        together = _hosts(place, stack)
        return _alternating(lambda chain: sum(together(max(HOSTS), chain, TURNS)), rounds)


def _alternating(work: Callable[[int], float], rounds: int) -> dict[int, float]:
    """Median processor seconds of a turn, by the number of budgets above it. Each round measures every number."""
    taken: dict[int, list[float]] = {chain: [] for chain in CHAINS}
    for number in range(rounds + 1):
        for chain in CHAINS if number % 2 else reversed(CHAINS):
            seconds = work(chain)
            if number:  # the first is no measure
                taken[chain].append(seconds / (TEAM * TURNS))
    return {chain: median(each) for chain, each in taken.items()}


def _rates(place: Place, turns: int) -> dict[int, list[float]]:
    """Turns in a second of each number of hosts, under no budget and under most."""
    rates: dict[int, list[float]] = {0: [], CHAINS[-1]: []}
    with ExitStack() as stack:
        together = _hosts(place, stack, SLOW)
        for count in HOSTS:
            for chain, into in rates.items():
                together(count, chain, 1)
                taken = timed(partial(together, count, chain, turns))[0]
                into.append(count * EACH * turns / taken)
    return rates


def _hosts(place: Place, stack: ExitStack, options: str = "") -> Callable[[int, int, int], list[float]]:
    """Start four hosts. The function makes agents of some hosts take turns, and returns the seconds of each host."""
    database = place.fresh()
    stack.callback(database.drop)
    threads = stack.enter_context(ThreadPoolExecutor(max(HOSTS)))
    hosts = []
    for number in range(max(HOSTS)):
        command = ["-m", "benchmarks.spending", f"h{number}"]
        hosts.append(stack.enter_context(process(command, IKIGAI_DATABASE_URL=database.url + options)))
        tell(hosts[-1])

    def together(count: int, chain: int, turns: int) -> list[float]:
        return list(threads.map(lambda host: float(asked(host, f"turns {chain} {turns}")), hosts[:count]))

    return together
