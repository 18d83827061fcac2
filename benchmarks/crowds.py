"""What a thing costs beside a crowd: it should not depend on how large that is.

A kill and a STOP of a parent with twenty living children, beside its dead ones; a turn with one call of a tool, by the
rules in force; timers that are due in one millisecond; ``check_mail``, by the mails that were not read; the handles of
all children of an agent; a birth, by how many are born together.
"""

import threading
import time
from collections.abc import Callable, Iterator

from benchmarks import population
from benchmarks.measure import in_new_process, timed
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, Child, Reply, Request, ScriptedProvider, Signal, ToolCall, tool
from ikigai_actors.records.mail.mail import Send, unread_mailbox
from ikigai_actors.records.mail.schedules import Appointment
from ikigai_actors.records.mail.timers import SetTimer

LIVING = 20
"""Children that live, of those beside whom the dead are."""

REPEATED = 30
"""Turns, and looks at a mailbox, of which the median counts."""

CLOCKS = 10
"""Agents that have the timers."""

PATIENCE = 600.0


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Measure each beside a small crowd and a large one."""
    small, large = (10, 1_000) if quick else (1_000, 100_000)
    for place in places:
        for crowd in (small, large):
            yield from _rows(place, "beside the dead", crowd, "dead", _beside_the_dead)
            yield from _rows(place, "children", crowd, "children", _handles)
        for crowd in (0, small, min(large, 10_000)):
            yield from _rows(place, "by rules", crowd, "rules", _by_rules)
        for crowd in (small, min(large, 20_000)):
            yield from _rows(place, "timers", crowd, "timers", _timers)
        for crowd in (10, min(large, 9_900)):
            yield from _rows(place, "mail", crowd, "unread", _unread)
        for crowd in (50, 500):
            yield from _rows(place, "births", crowd, "at once", _births)


def _rows(
    place: Place, what: str, crowd: int, unit: str, measure: Callable[[str, int], dict[str, float]]
) -> Iterator[Row]:
    database = place.fresh()
    try:
        if what in ("beside the dead", "children"):
            population.crowd(database, crowd, LIVING, dead=what == "beside the dead")
        else:
            population.alone(database, 2)
        database.settle()
        for name, seconds in in_new_process(measure, database.url, crowd).items():
            yield Row(name, "ikigai", place.name, crowd, unit, seconds, "s")
    finally:
        database.drop()


def _beside_the_dead(url: str, crowd: int) -> dict[str, float]:
    with ActorSystem.open(url, provider=ScriptedProvider(lambda request: "Yes.")) as system:
        [parent] = system.root.children()
        stop, _ = timed(lambda: parent.signal(Signal.STOP, cascade=True))
        go, _ = timed(lambda: parent.signal(Signal.CONT, cascade=True))
        kill, killed = timed(lambda: parent.kill(cascade=True))
        assert len(killed) == LIVING + 1
        return {"STOP of a parent": stop, "CONT of a parent": go, "kill of a parent": kill}


def _handles(url: str, crowd: int) -> dict[str, float]:
    with ActorSystem.open(url, provider=ScriptedProvider(lambda request: "Yes.")) as system:
        [parent] = system.root.children()
        taken, children = timed(parent.children)
        assert len(children) == crowd + LIVING
        return {"handles of all children": taken}


@tool
def look() -> str:
    """Look."""
    return "seen"


def _births(url: str, crowd: int) -> dict[str, float]:
    with ActorSystem.open(url, provider=ScriptedProvider(lambda request: "Yes.")) as system:
        system.root.fork_many([Child(system.root)] * crowd)
        taken, _ = timed(lambda: system.root.fork_many([Child(system.root)] * crowd))
        return {"one of the births of fork_many": taken / crowd}


def _by_rules(url: str, crowd: int) -> dict[str, float]:
    calls = iter(range(10**9))

    def answer(request: Request) -> Reply:
        return Reply("Yes.") if next(calls) % 2 else Reply(tool_calls=(ToolCall("look", {}),))

    with ActorSystem.open(url, provider=ScriptedProvider(answer), tools=[look]) as system:
        agent = system.root
        for number in range(crowd):
            if number % 200 == 0:
                agent = agent.fork()
            agent.set_rule("deny", f"other_{number}")
        agent.prompt("Go on").get(timeout=PATIENCE)
        return {"turn with a call": _median(lambda: agent.prompt("Go on").get(timeout=PATIENCE))}


def _timers(url: str, crowd: int) -> dict[str, float]:
    heard, provider = threading.Event(), ScriptedProvider(lambda request: "Yes.")
    with ActorSystem.open(url, provider=provider) as system:
        agents = [system.root.fork() for _ in range(CLOCKS)]
        now = system._clock.now_ms()
        when = Appointment(now + 3_000 + crowd, None, "UTC")

        def set_all() -> None:
            units = [SetTimer(agents[number % CLOCKS].uuid, None, "tea", when, now) for number in range(crowd)]
            for waiting in [system._writer.ask(unit) for unit in units]:
                waiting.get(timeout=PATIENCE)

        setting, _ = timed(set_all)
        time.sleep(max(0.0, (when.due_at - system._clock.now_ms()) / 1000))
        began = time.perf_counter()
        while sum(agent.record.unread for agent in agents) < crowd:
            heard.wait(0.01)
        return {"set a timer": setting / crowd, "fire a timer": (time.perf_counter() - began) / crowd}


def _unread(url: str, crowd: int) -> dict[str, float]:
    with ActorSystem.open(url, provider=ScriptedProvider(lambda request: "Yes.")) as system:
        agent, sender = system.root.fork(), system.root.fork()
        for number in range(crowd):
            system._writer.ask(Send(agent.uuid, sender.uuid, f"mail {number}", 1))
        sender.send(agent, "the last one")
        return {"check_mail": _median(lambda: system._store.read(lambda tx: unread_mailbox(tx, agent.uuid)))}


def _median(work: Callable[[], object]) -> float:
    return sorted(timed(work)[0] for _ in range(REPEATED))[REPEATED // 2]
