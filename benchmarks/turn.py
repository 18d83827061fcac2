"""What a turn costs, by the length of the history before it. It should be flat.

Ours is processor time of one prompt and its answer, of the whole process: warm with the log in memory, cold the first
one after each of some starts, which reads the log; as a fork the first turn of a child that was just born, whose
history is its parent's. The model is a plain function that reads the last message. With the Anthropic provider, a
server in another process answers; beside it the least that such a request costs: its bytes, written to a plain socket.
Histories are made in bulk. Turns with hashes of the messages are beside turns without, in alternation in one process.

On PostgreSQL also: how often a turn waits for the server, with and without a budget, and how long it takes when the
server is `AWAY` seconds away in each direction, through a proxy in this process.

Peers do the same by their public interfaces: a prompt, and the answer of a plain function that reads the last message.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from statistics import median
from unittest.mock import patch

from benchmarks import population
from benchmarks.measure import each_time
from benchmarks.messages_sink import MessagesSink, post
from benchmarks.peers.sessions import ONE_CHECKPOINT, PEERS, Peer, Unavailable
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, AgentRef, AnthropicProvider, Budget, FunctionProvider, Request
from ikigai_actors.records.log.chain import EMPTY_HASH, HashChain
from ikigai_actors.store.base import Row as Values
from ikigai_actors.store.base import Transaction
from tests.kit.trips import Trips

SIZES = (100, 1_000, 10_000, 100_000)
QUICK_SIZES = (100, 1_000)
PEER_SIZES = (100, 1_000, 10_000)
WARM_UP = 10
BLOCK = 20
"""Turns with hashes, before as many without."""
COLD = 3
"""Starts, each with one turn."""
PEER_TURNS = 5
AWAY = 0.001
"""Seconds that a statement travels to a server that is away, and its answer back."""
BUDGET = Budget(tokens=1_000_000_000, usd=1_000_000)
COUNTED = "messages before"


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Measure on each place."""
    for place in places:
        for size in QUICK_SIZES if quick else SIZES:
            yield from _measured(place, size, 20 if quick else 50)
        if place.name == "PostgreSQL":
            yield from _away(place, 20 if quick else 50)
    for peer in (*PEERS, ONE_CHECKPOINT):
        for size in QUICK_SIZES if quick else PEER_SIZES:
            yield from _peer(places, peer, size)


def _peer(places: list[Place], peer: Peer, size: int) -> Iterator[Row]:
    taken, why = None, ""
    try:
        with peer.session(places, size) as session:
            session.turn()  # imports, and what is made once
            taken = median(_processor(session.turn) for _ in range(PEER_TURNS))
    except (Unavailable, NotImplementedError) as error:
        why = str(error)
    yield Row("turn: processor", peer.who, peer.backend, size, COUNTED, taken, "s", why=why)


def _measured(place: Place, size: int, repetitions: int) -> Iterator[Row]:
    head = ("ikigai", place.name, size, COUNTED)
    database = place.fresh()
    try:
        population.alone(database, size)
        yield Row("turn: cold, processor", *head, median(_first(database.url) for _ in range(COLD)), "s")
        with ActorSystem.open(database.url, provider=_provider()) as system:
            root = system.root
            for _ in range(WARM_UP):
                root.prompt("And now?").get(timeout=600)
            taken: list[float] = []

            def turn() -> None:
                taken.append(_processor(lambda: root.prompt("And now?").get(timeout=600)))

            waited = each_time(turn, repetitions)
            yield Row("turn: processor", *head, median(taken), "s")
            yield Row("turn", *head, median(waited), "s")
            children = [root.fork() for _ in range(repetitions)]
            born = [_processor(partial(_ask, child)) for child in children]
            yield Row("turn: first of a fork, processor", *head, median(born), "s")
        with MessagesSink() as sink:
            provider = AnthropicProvider(base_url=sink.url, api_key="none")
            with ActorSystem.open(database.url, provider=provider) as system:
                yield Row("turn: Anthropic, processor", *head, median(_warm(system.root, repetitions)), "s")
            with sink.connect() as connection:
                body = bytes(sink.received())
                written = [_processor(partial(post, connection, body)) for _ in range(repetitions)]
            yield Row("turn: Anthropic, the bytes alone, processor", *head, median(written), "s")
        with ActorSystem.open(database.url, provider=_provider()) as system:  # last: it makes the history long
            yield Row("turn: with hashes, processor", *head, *_paired(system.root, repetitions))
    finally:
        database.drop()


def _away(place: Place, repetitions: int) -> Iterator[Row]:
    """Round trips of a turn, and its time on a server that is away."""
    database = place.fresh()
    try:
        for delay in (0.0, AWAY):
            with closing(Trips(database.url, delay)) as way, ActorSystem.open(way.url, provider=_provider()) as system:
                for name, budget in (("turn", None), ("turn with a budget", BUDGET)):
                    agent = system.root.fork(budget=budget)
                    _warm(agent, 0)
                    head = ("ikigai", place.name, 1, "agents")
                    if delay:
                        taken = min(each_time(partial(_ask, agent), repetitions))
                        yield Row(f"{name}: a server {delay * 1_000:.0f} ms away", *head, taken, "s")
                    else:
                        before = way.lines[0]  # the line that writes
                        _ask(agent)
                        yield Row(f"{name}: round trips", *head, way.lines[0] - before, "trips")
    finally:
        database.drop()


def _paired(agent: AgentRef, blocks: int) -> tuple[float, str, str, float]:
    """Processor seconds of a turn whose messages get hashes, and of one whose messages get none, in alternation."""
    hashed, plain = list[float](), list[float]()
    for _ in range(blocks):
        hashed += [_processor(partial(_ask, agent)) for _ in range(BLOCK)]
        with patch.object(HashChain, "link", _unlinked):
            plain += [_processor(partial(_ask, agent)) for _ in range(BLOCK)]
    return median(hashed), "s", "without hashes", median(plain)


def _unlinked(chain: HashChain, tx: Transaction, rows: Sequence[Values], head: bytes | None = None) -> list[Values]:
    return [(*row, EMPTY_HASH) for row in rows]


def _warm(agent: AgentRef, repetitions: int) -> list[float]:
    """Processor seconds of each turn, once the history was sent some times."""
    return [_processor(partial(_ask, agent)) for _ in range(WARM_UP + repetitions)][WARM_UP:]


def _ask(agent: AgentRef) -> None:
    agent.prompt("And you?").get(timeout=600)


def _first(url: str) -> float:
    """Processor seconds of the first turn after a start."""
    with ActorSystem.open(url, provider=_provider()) as system:
        root = system.root
        return _processor(lambda: root.prompt("And now?").get(timeout=600))


def _provider() -> FunctionProvider:
    return FunctionProvider(_answer)


def _answer(request: Request) -> str:
    return f"Heard: {request.messages[-1]['content'][-1]['text']}"


def _processor(work: Callable[[], object]) -> float:
    """Processor seconds of this process while the work is done."""
    began = time.process_time()
    work()
    return time.process_time() - began
