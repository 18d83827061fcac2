"""A host without a shell: runs the agents in the foreground, for shells, commands and programs elsewhere.

On PostgreSQL several share the agents: each runs a part of them, and the others take that over when it ends or dies.
SIGTERM and Ctrl-C give the agents to the others, if there are any, and then close the system. When the database takes
the agents away from this host, or does not answer when it begins or for too long, the exit status says: start me again.
Another status says that a host of the same name has taken its place: each start would end the other.
"""

import contextlib
import threading
from collections.abc import Callable
from functools import partial
from time import monotonic

from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.agent.subscriptions import HostEnded, HostsDiffer
from ikigai_actors.errors import (
    BadInput,
    Fenced,
    HostReplaced,
    NoHost,
    ProgramOutdated,
    StoreConflict,
    StoreError,
    StoreInUse,
    StoreUnavailable,
    SystemClosed,
)
from ikigai_actors.reach.databases import place_of
from ikigai_actors.reach.views import census_of, is_idle, location_of, say_why_it_stopped, stand_in_notice
from ikigai_actors.shell.cli.liveness import Liveness
from ikigai_actors.shell.line.interrupts import Interrupts
from ikigai_actors.store.hosts.host import LEASE
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.verbs.opening import Options
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.hosts import host_ended, hosts_differ
from ikigai_actors.verbs.text.tree import summary

START_AGAIN = 75
"""The exit status of a host that ended by itself and may run after a restart: sysexits' EX_TEMPFAIL."""

REPLACED = 76
"""The exit status of a host whose place another host of the same name has taken: it must not be restarted."""

_PASSES = (StoreUnavailable, StoreInUse, StoreConflict)
"""The errors that may pass, because of which a host could not start this time."""

LONGEST_PAUSE = 5.0
"""The longest time, in seconds, between two checks whether a host is still needed."""

DRAIN = 25.0
"""Seconds for giving the agents away; shorter than the time after which systemd and Kubernetes send SIGKILL."""


def run_host(
    options: Options,
    name: str | None,
    resume: bool | None,
    alive: str | None,
    until_idle: float | None,
    until: Callable[[ActorSystem, Callable[[], int]], int],
    tell: Callable[[str], object],
    allowed: tuple[str, ...] = (),
    keys: tuple[str, ...] = (),
    build: str | None = None,
) -> int:
    """Run a host until a signal ends it.

    Args:
        options: the global options of the command line.
        name: the name of the host among those that share the agents; None if it shares them with none.
        resume: whether to resume interrupted turns; None means yes.
        alive: a file or pipe for heartbeats; None for none.
        until_idle: seconds without need after which the host ends by itself; None for never.
        until: runs a loop, and raises `SystemClosed` when the system stops by itself.
        tell: takes a line for the person who started it.
        allowed: networks to which events may be sent beside public addresses; empty for those of the environment.
        keys: references to the operator's keys; empty for those of the environment.
        build: a name for the code that it runs; None for the one that the app gives, or a digest.

    Returns:
        The exit status.

    Raises:
        BadInput, StoreError: it cannot be started so, and another try would not help.
    """
    arguments = options.arguments(interactive=True) if options.app is None else options.of_app(options.app)
    shares = place_of(options.database).is_server
    if resume is not None:
        arguments["resume"] = resume
    if allowed:
        arguments["allow_private"] = allowed
    if keys:
        arguments["keys"] = keys
    if build is not None:
        arguments["build"] = build
    if shares:
        arguments |= {"join": True, "name": name, "on_wait": lambda owner: tell(f"waits: {owner} runs the agents")}
    elif name is not None:
        raise BadInput(f"--name {name} is for hosts that share agents on PostgreSQL; a file has one host.")
    liveness = Liveness(alive, arguments.get("lease", LEASE))
    arguments["on_renewal"] = liveness.beat
    interrupts, runs = Interrupts().install(), False
    try:
        with interrupts.heard():
            system = ActorSystem.open(options.database, **arguments)
        with system, say_why_it_stopped(system):
            tell(f"runs {location_of(system)}: {summary(census_of(system).by_status)}")
            if notice := stand_in_notice(system):
                tell(notice)
            system.subscribe(lambda event: _tell_of_hosts(event, tell), only=(HostEnded, HostsDiffer))
            liveness.beat()
            liveness.ready()
            runs = True
            idle = (
                None if until_idle is None else IdleWatch(until_idle, partial(is_idle, system, until_idle), monotonic)
            )
            status = until(system, lambda: _wait(interrupts, None if shares else liveness, idle))
            liveness.stopping()
            if shares:
                _drain(system, tell)
            return status
    except (SystemExit, KeyboardInterrupt):  # told to end while it waited
        return 0
    except (Fenced, SystemClosed) as error:
        if isinstance(error.__cause__, ProgramOutdated):
            raise error.__cause__ from None
        tell(one_line(str(error)))
        return REPLACED if isinstance(error, HostReplaced) or isinstance(error.__cause__, HostReplaced) else START_AGAIN
    except StoreError as error:
        if runs or not isinstance(error, _PASSES):
            raise
        tell(one_line(str(error)))
        return START_AGAIN


class IdleWatch:
    """Measures for how long nothing has needed the host."""

    def __init__(self, seconds: float, is_idle: Callable[[], bool], now: Callable[[], float]) -> None:
        """Start to measure.

        Args:
            seconds: the time without need after which the host may end.
            is_idle: returns whether nothing needs the host now; may raise `StoreError`.
            now: returns monotonic seconds.
        """
        self._seconds, self._is_idle, self._now = seconds, is_idle, now
        self._needed = now()

    @property
    def pause(self) -> float:
        """Return the seconds until the next check by `is_over`."""
        return min(self._seconds / 4, LONGEST_PAUSE)

    def is_over(self) -> bool:
        """Check once whether anything needs the host; return whether nothing has for the given seconds."""
        now = self._now()
        with contextlib.suppress(StoreError):  # nobody can ask for anything then
            if not self._is_idle():
                self._needed = now
        return now - self._needed >= self._seconds


def _wait(interrupts: Interrupts, liveness: Liveness | None, idle: IdleWatch | None) -> int:
    """Wait for a signal, or until the host is no longer needed; return the signal's number, 0 for none.

    The owner of a file has no lease to renew: it sends its heartbeats from here.
    """
    pauses = [] if liveness is None else [LEASE / 4]
    pauses += [] if idle is None else [idle.pause]
    with contextlib.suppress(SystemExit, KeyboardInterrupt), interrupts.heard():
        while not threading.Event().wait(min(pauses, default=None)):
            if liveness is not None:
                liveness.beat()
            if idle is not None and idle.is_over():
                break
    return 0


def _tell_of_hosts(event: object, tell: Callable[[str], object]) -> None:
    if isinstance(event, HostEnded):
        tell(host_ended(event))
    if isinstance(event, HostsDiffer):
        tell(hosts_differ(event))


def _drain(system: ActorSystem, tell: Callable[[str], object]) -> None:
    """Give the agents to the other hosts, if there are any; wait at most `DRAIN` seconds."""
    try:
        system.drain(timeout=DRAIN)
    except NoHost:  # it is the last one
        pass
    except TimedOut:
        tell("not all agents could be given away in time; the other hosts take them now")
