"""Experiments on histories: what a durable trial costs, in time and in the database, and whether a tree survives kills.

A *search* makes trials, each a fork with a turn of a plain function, judged in code; 256 are in flight. A *replay* asks
each turn of 100 agents again, with two calls of tools that are answered from the record; what they would do is counted.
The *cache* is that of the tests' strict server of the Messages API: of the input of each trial that goes on from a
history of 10,000 tokens, the least share that is read from it. *Killed* searches run as programs of their own, which
get SIGKILL at a moment by chance, and are begun again: their trees are compared with one that nobody has disturbed.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cache import WORDS
from benchmarks.measure import timed
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, AgentRef, AnthropicProvider, Reply, Request, ScriptedProvider, ToolCall, tool
from ikigai_actors.behaviour import MCTS, BestOf, Found, TrialRun, recorded, replay, search
from tests.kit.messages_server.server import MessagesServer, Says

TRIALS, TURNS, AGENTS, KILLS = 10_000, 1_000, 100, 20
PARALLEL = 256
KILLED_TRIALS = 400
"""Trials of a search that is killed."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Search and replay on each database; the cache and the kills once."""
    trials, turns, kills = (TRIALS // 10, TURNS // 10, 2) if quick else (TRIALS, TURNS, KILLS)
    for place in places:
        taken, size = _searched(place, trials)
        yield Row("search", "ikigai", place.name, trials, "trials", taken, "s")
        if size is not None:
            yield Row("database a trial", "ikigai", place.name, trials, "trials", size / trials, "B")
        taken, effects, differences = _replayed(place, turns)
        yield Row("replay", "ikigai", place.name, turns, "turns", taken, "s")
        yield Row("effects of a replay", "ikigai", place.name, turns, "turns", effects, "effects")
        yield Row("differences of a replay", "ikigai", place.name, turns, "turns", differences, "differences")
    yield Row("least share of a trial's input from the cache", "ikigai", "", 20, "trials", _cached(20), "%")
    differ, died = _killed(kills)
    yield Row("SIGKILL of a search", "ikigai", "SQLite", kills, "searches", died, "kills")
    yield Row("trees that differ after SIGKILL", "ikigai", "SQLite", kills, "searches", differ, "trees")


def _searched(place: Place, trials: int) -> tuple[float, int | None]:
    """Seconds of a search, and the bytes by which the file has grown; None for a server."""
    database = place.fresh()
    file = Path(database.url.removeprefix("sqlite:///"))
    try:
        with ActorSystem.open(database.url, ScriptedProvider(echo)) as system:
            player = begun(system)
            before = _size(file)
            taken, result = timed(lambda: searched(player, trials, PARALLEL))
            if len(result.trials) != trials:
                raise AssertionError(f"Expected {trials} trials, got {len(result.trials)}")
        grown = _size(file) - before if file.exists() else None
        return taken, grown
    finally:
        database.drop()


def _size(file: Path) -> int:
    return sum(path.stat().st_size for path in file.parent.glob(f"{file.name}*"))


def echo(request: Request) -> str:
    """Stands in for a model: says the latest prompt, and how long the conversation is."""
    return f"{request.messages[-1]['content'][-1]['text']}{len(request.messages)}"


def begun(system: ActorSystem) -> AgentRef:
    """The agent that is searched from."""
    player = system.root.fork("begin", name="player")
    player.reply()
    return player


def searched(player: AgentRef, trials: int, parallel: int) -> Found:
    """A search whose tree follows from its seed."""

    def judge(run: TrialRun) -> float:
        return (sum(run.text.encode()) * 31 + run.trial.number) % 97 / 97

    return search(player, judge, plan=MCTS(trials), options=["a", "b", "c"], parallel=parallel, seed=1)


def _replayed(place: Place, turns: int) -> tuple[float, int, int]:
    """Seconds of a replay, what its tools have done meanwhile, and how many differences were found."""
    done: list[str] = []

    @tool
    def price(tea: str) -> str:
        done.append(tea)
        return f"{tea} costs 12"

    @tool
    def sell(tea: str, kilos: int) -> str:
        done.append(tea)
        return f"sold {kilos} {tea}"

    def model(request: Request) -> Reply | str:
        said = request.messages[-1]["content"][-1]
        if said["type"] == "text":
            return Reply("", (ToolCall("price", {"tea": said["text"]}),))
        if "costs" in said["content"]:
            tea = said["content"].split()[0]
            kilos = 3 if "generous" in (request.system or "") and tea == "tea0" else 2
            return Reply("", (ToolCall("sell", {"tea": tea, "kilos": kilos}),))
        return f"Done: {said['content']}"

    database = place.fresh()
    try:
        with ActorSystem.open(database.url, ScriptedProvider(model), tools=[price, sell]) as system:
            clerks = system.root.fork(count=AGENTS, system="You sell tea.")
            for number in range(turns // AGENTS):
                for asked in [clerk.prompt(f"tea{number}") for clerk in clerks]:
                    asked.get()
            read, before = recorded(*clerks), len(done)
            change = {"system": "Be generous."}
            taken, result = timed(lambda: replay(read, change=change, parallel=PARALLEL))
            if len(result.turns) != turns:
                raise AssertionError(f"Expected {turns} turns, got {len(result.turns)}")
            return taken, len(done) - before, sum(difference.what == "arguments" for difference in result.differences)
    finally:
        database.drop()


def _cached(forks: int) -> float:
    """The least share, in percent, of a trial's input that the cache has served."""
    with MessagesServer() as server:
        provider = AnthropicProvider(base_url=server.url, api_key="none")
        with ActorSystem.open("sqlite:///:memory:", provider) as system:
            system.root.configure(system="You are thorough.")
            for _ in range(25):
                server.script.append(Says.text(WORDS * 20))
                system.root.prompt("Go on.").get()
            before = len(server.served)
            search(system.root, lambda run: 1.0, plan=BestOf(forks), options=["Sum it up.", "What next?"])
            served = server.served[before:]
            if len(served) != forks:
                raise AssertionError(f"Expected {forks} requests, got {len(served)}")
            return min(100 * usage.read / (usage.read + usage.written + usage.plain) for usage in served)


def _killed(kills: int) -> tuple[int, int]:
    """How many trees differ from one of a search that nobody has disturbed, and how many searches were hit."""
    chance, differ, died = random.Random(7), 0, 0
    with tempfile.TemporaryDirectory(prefix="ikigai-benchmarks-") as directory:
        began = time.monotonic()
        whole = _tree(Path(directory) / "whole.db")
        lasted = time.monotonic() - began
        for number in range(kills):
            database = Path(directory) / f"{number}.db"
            program = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.behaviour", str(database)], stdout=subprocess.DEVNULL
            )
            try:
                program.wait(timeout=chance.uniform(0.2, 1.0) * lasted)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
                died += 1
            differ += _tree(database) != whole
    return differ, died


def _tree(database: Path) -> list[str]:
    """The trials of the search in a database, which is begun, or gone on with, by a program of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.behaviour", str(database)], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()


def main(database: str) -> None:
    """Search in a database, from where an earlier program has stopped; print the tree."""
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        known = [record for record in system.agents() if record.name == "player"]
        player = system.handle(known[0].uuid) if known else system.root.fork("begin", name="player")
        if player.state == "interrupted":
            player.resume()
        player.reply()
        for trial in searched(player, KILLED_TRIALS, 8).trials:
            print(*trial)


if __name__ == "__main__":
    main(sys.argv[1])
