"""A campaign: trees are worked on by one victim after the other, looked over after each kill, given up after some.

Again and again: a victim works until it is killed; what the kill left is judged before anybody opens it; then the
system is opened here, judged, and its open turns are resumed, prompted over, or left to the next victim. A tree with a
violation is given up at once.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import partial
from multiprocessing.context import ForkServerContext
from pathlib import Path

from ikigai_actors import ActorSystem, AgentDead, AgentRef, IkigaiError
from ikigai_actors.errors import StoreUnusable
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import Store
from ikigai_actors.store.existing import existing
from supervisors.signals import Status
from tests.machines.budget_audit import left_behind
from tests.torture import judge
from tests.torture.kill import aim, fork_server, kill
from tests.torture.script import World, continue_all, open_when_free
from tests.torture.snapshot import NOTHING, Snapshot, take
from tests.torture.tally import Tally
from tests.torture.victim import PATIENCE, Bereft, Report, outcome

CUT_OFF = ("interrupted", "stopped", "terminating", "dead")
"""What an agent may be that had an open turn when its process ended; the time of one that terminates may be over."""

KILLS_OF_A_TREE = 12
"""After so many a tree has grown enough, and the next one begins."""


def torture(new_database: Callable[[], str], place: Path, kills: int, seed: int) -> Tally:
    """Kill so many victims.

    Args:
        new_database: gives the URL of an empty database.
        place: a directory, where the tools record what they did.
        kills: how many.
        seed: chooses moments, agents and commands. How far a victim gets in its time is the machine's doing.
    """
    tally, chance, victims = Tally(), random.Random(seed), fork_server()
    began = time.monotonic()
    while tally.counts["kills"] < kills:
        name = f"{seed}.{tally.counts['trees']}"
        with closing(World(place / f"{name}.did")) as world:
            tree = _Tree(name, new_database(), world, victims, chance, tally)
            for _ in range(min(KILLS_OF_A_TREE, kills - tally.counts["kills"])):
                if not tree.spoilt:
                    tree.kill_one()
            tree.give_up()
    tally.seconds = time.monotonic() - began
    return tally


class _Tree:
    """One tree in a database of its own."""

    def __init__(
        self, name: str, url: str, world: World, victims: ForkServerContext, chance: random.Random, tally: Tally
    ) -> None:
        self.spoilt = False
        """Something was violated in it."""
        self._name, self._url, self._world = name, url, world
        self._victims, self._chance, self._tally = victims, chance, tally
        self._seed = name
        self._known: Snapshot = NOTHING

    def kill_one(self) -> None:
        """One victim, one kill, one restart."""
        self._seed = f"{self._name}.{self._tally.counts['kills']}"
        resumes = any(record.turn for record in self._known.records.values()) and self._chance.random() < 0.8
        reports = kill(self._victims, self._url, self._world.path, self._seed, resumes, aim(self._chance, resumes))
        self._judge(self._as_it_was_left(), reports)
        self._tally.kill(reports, self._known)
        self._restart(*self._chance.choices(("resume", "choose", "leave"), (2, 1, 3)))

    def give_up(self) -> None:
        """Bring every turn to its end, and count."""
        if not self.spoilt:
            self._restart("resume")
        self._tally.tree(self._known, self._world.runs())

    def _as_it_was_left(self) -> Snapshot:
        """What is there, before anybody has opened it."""
        try:
            with existing(self._url) as store:
                return self._read(store)
        except StoreUnusable:  # killed before there was a schema; that nothing was acknowledged is judged
            return NOTHING

    def _restart(self, how: str) -> None:
        """Open the system as the next owner, deal with what was cut off, and judge before and after."""
        self._tally.counts["restarts"] += 1
        complaints: list[str] = []
        turns = {uuid: record.turn for uuid, record in self._known.records.items() if record.turn}
        with open_when_free(self._url, self._world, complaints.append) as system:
            self._judge_running(system, _until_quiet(system, turns))  # words that waited have opened turns
            self._complain(f"unsettled: agent {uuid} holds something" for uuid in system._store.read(left_behind))
            cut_off = [
                system.handle(record.uuid)
                for record in self._known.records.values()
                if record.turn and record.turn == turns.get(record.uuid)
            ]
            self._complain(f"{agent.uuid} is {agent.state}" for agent in cut_off if agent.state not in CUT_OFF)
            if cut_off and how != "leave":
                continue_all(system)
                self._tally.counts["turns"] += len(cut_off)
                self._judge_running(system, self._deal_with(system, cut_off, how))
                self._complain(f"{uuid} is in a turn" for uuid, record in self._known.records.items() if record.turn)
        self._complain(complaints)

    def _deal_with(self, system: ActorSystem, cut_off: list[AgentRef], how: str) -> list[Report]:
        """Resume turns or prompt over them, and wait until all is quiet; returns what was acknowledged."""
        reports = list[Report]()
        if how == "resume":
            system.resume()
        for number, agent in enumerate(cut_off if how == "choose" else ()):
            token = f"{self._seed} over {number}"
            try:
                if self._chance.random() < 0.5:
                    agent.resume(timeout=PATIENCE)
                else:
                    reports.append(outcome(0, agent, token, partial(agent.prompt(token).get, timeout=PATIENCE)))
            except AgentDead:
                reports.append(Bereft(0, agent.uuid))
        return reports + _until_quiet(system, {})

    def _judge_running(self, system: ActorSystem, reports: list[Report]) -> None:
        """As `_judge`, and every history as the system itself gives it."""
        self._judge(self._read(system._store), reports)
        for uuid, record in self._known.records.items():
            self._tally.counts["histories"] += 1
            try:
                history = system.handle(uuid).history()
            except IkigaiError as error:
                self._complain([f"the history of {uuid} cannot be read: {error}"])
            else:
                self._complain(judge.unacceptable(uuid, record.fork_message_id, history))

    def _judge(self, now: Snapshot, reports: list[Report]) -> None:
        self._complain(judge.altered(self._known, now))
        self._complain(judge.lost(reports, now))
        self._complain(judge.undead(self._known, reports, now))
        self._complain(judge.doubled(now))
        self._complain(judge.untrue(now, self._world.runs()))
        self._known = now

    def _read(self, store: Store) -> Snapshot:
        """Everything; fsck reads it as well."""
        self._tally.counts["fsck"] += 1
        self._complain(
            f"fsck: {violation.invariant}: {violation.agent}: {violation.text}" for violation in check(store)
        )
        return take(store)

    def _complain(self, faults: Iterable[str]) -> None:
        for fault in faults:
            self.spoilt = True
            self._tally.violations.append(f"{self._seed}: {fault}")


def _until_quiet(system: ActorSystem, cut_off: Mapping[str, int]) -> list[Report]:
    """Wait until nobody works; returns how turns ended. The turns that were cut off, by agent, go on with nobody."""
    reports, pause = list[Report](), threading.Event()
    while True:
        # These first: the turns that they have opened are read below.
        busy = [actor.state for actor in system._processes if not actor.is_idle]
        works = any(agent.uuid not in cut_off and agent.status is not Status.STOPPED for agent in busy)
        working = [
            system.handle(record.uuid)
            for record in system.agents()
            if record.turn and record.turn != cut_off.get(record.uuid)
        ]
        heard = [agent for agent in working if agent.state not in CUT_OFF]  # the others have yet to hear of CONT
        reports += [outcome(0, agent, None, partial(agent.reply, PATIENCE)) for agent in heard]
        if not works and not working:
            return reports
        if not heard:
            pause.wait(0.005)
