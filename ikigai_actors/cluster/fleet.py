"""A fleet: the hosts of one database on a cluster of Ray.

The hosts are named ``host-1``, ``host-2``, …; each is a named actor of Ray that only `Fleet` ends. Ray stores how the
hosts are started, so any process may inspect, scale and end a fleet. No further process of this package runs.

A fleet is named after an identity that its database stores, so a database has one fleet on a Ray, however its URL is
spelled. While the database does not answer, a fleet is found by the URL with which its hosts were started. A host
outside of the fleet, on another Ray or started by hand, may have one of these names. While it lives, the fleet starts
no host.
"""

import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ikigai_actors.arguments import (
    check_count,
    check_mapping,
    check_optional,
    check_plain_function,
    check_seconds,
    check_type,
)
from ikigai_actors.cluster import local
from ikigai_actors.cluster.child import Launch
from ikigai_actors.cluster.connection import RayConnection, connected
from ikigai_actors.cluster.shim import Shim, ShimReport
from ikigai_actors.errors import BadInput, ClusterError, NoHost, StoreError
from ikigai_actors.reach.databases import DatabasePlace, living_hosts, place_of
from ikigai_actors.store.hosts.rows import HostRecord

PREFIX = "ikigai-"
"""The prefix of the Ray namespaces of fleets."""

MOST_HOSTS = 1_000
"""The largest number of hosts of a fleet."""

_ANSWER = 5.0
"""Seconds to wait for the answer of a shim; a shim that Ray has not placed yet does not answer."""

_IDLE = ("drained", "replaced")
"""The states of hosts that run no agents any more, and will run none."""

_REFUSED = (1, 2)
"""Exit statuses of a host that could not start. After any other status, Ray starts the host again."""

_SILENCE = 2.0
"""Seconds of waiting after which ``on_wait`` gets the reason."""

_KILLED = 40.0
"""Seconds after which a host that is to end is killed. Giving its agents away takes 25 at most."""


@dataclass(frozen=True, slots=True)
class FleetHost:
    """A host of a fleet, as Ray and the database report it."""

    name: str
    state: str
    """``runs``, ``drains`` or ``silent``, as the database tells; before that ``starts``; ``drained`` when it has given
    all its agents away, and would only wait to be ended; ``failed`` when it has ended, to be started again soon;
    ``replaced`` when a host of its name that is none of the fleet's has taken its place; ``waiting`` when Ray has no
    place for it yet.
    """
    node: str
    """The name of the machine; empty if the shim does not answer."""
    pid: int | None
    """The process of the host."""
    shards: int
    agents: int
    said: str
    """The latest line that the host has printed; empty if the shim does not answer."""


def start(
    url: str | None = None,
    hosts: int = 3,
    *,
    app: str,
    address: str | None = None,
    cpus: float | None = None,
    resources: Mapping[str, float] | None = None,
    timeout: float = 120.0,
    on_wait: Callable[[str], object] | None = None,
) -> "Fleet":
    """Start hosts on Ray, as many as are missing, and wait until they run agents.

    Hosts that were drained, or whose place another host has taken and left again, count as missing, and are replaced.

    Args:
        url: the PostgreSQL database; None for ``$IKIGAI_DATABASE_URL``.
        hosts: the number of hosts to have.
        app: ``MODULE:FUNCTION``, which returns the arguments of `ActorSystem.open`; it is imported on the nodes, from
            the working directory of this process or, as a job of Ray, from that of the job.
        address: the address of the cluster, as `ray.init` takes it. None for ``$RAY_ADDRESS``, else for a Ray on this
            machine, which is started if there is none, and lives until `Fleet.stop`.
        cpus: CPUs that Ray reserves for each host. None means 1, or 0 on a Ray of this machine.
        resources: other Ray resources to reserve for each host, by name.
        timeout: seconds to wait for the hosts.
        on_wait: called with a line that explains why the call still waits, whenever the reason changes.

    Raises:
        BadInput: an argument cannot be used, or Ray is not installed.
        ClusterError: Ray cannot be reached, a host could not be started, the fleet runs another app, or a host that is
            none of the fleet's has the name of one. Hosts that this call has started are ended.
        StoreError: the database does not answer.
    """
    check_count(hosts, "hosts", least=1, most=MOST_HOSTS)
    check_seconds(timeout, "timeout")
    tell = _teller(on_wait)
    if not re.fullmatch(r"[\w.]+:\w+", check_type(app, str, "app", "MODULE:FUNCTION")):
        raise BadInput(f"Expected app to be MODULE:FUNCTION; got {app[:80]!r}. For one: shop.agents:app")
    if cpus is not None:
        check_seconds(cpus, "cpus")
    check_optional(address, str, "address", "text")
    for name, amount in check_mapping({} if resources is None else resources, "resources", "a dict of numbers").items():
        check_type(name, str, "each name in resources", "text")
        check_seconds(amount, f"resources[{name!r}]")
    place = _server(url)
    fleet = Fleet(place, address)
    with _with_own_ray(address, begin=True, tell=tell) as to:
        chosen = (0.0 if to.is_local else 1.0) if cpus is None else float(cpus)
        launch = Launch(place.address, app, _directory(to.ray), chosen, dict(resources or {}))
        fleet._find(to.ray)
        fleet._check_app(to, app)
        fleet._grow(to, launch, hosts, timeout, tell)
    return fleet


def find_fleet(url: str | None = None, address: str | None = None) -> "Fleet":
    """Return the fleet of a database, which another process has started.

    Args:
        url: as for `start`.
        address: as for `start`; no Ray is started.

    Raises:
        BadInput: hosts cannot share the database, or Ray is not installed.
        ClusterError: Ray cannot be reached.
        NoHost: there is no such fleet.
    """
    check_optional(address, str, "address", "text")
    fleet = Fleet(_server(url), address)
    with connected(address) as to:
        fleet._find(to.ray)
        if not fleet._names(to.ray):
            raise NoHost(f"No hosts of {fleet.location} run on this Ray. ikigai cluster up starts some.")
    return fleet


class Fleet:
    """The hosts of one database on Ray, as `start` and `find_fleet` return them.

    A fleet is connected to Ray only while one of its methods runs. Each method raises `ClusterError` when Ray cannot be
    reached.
    """

    def __init__(self, place: DatabasePlace, address: str | None) -> None:
        self.location = place.shown
        """The database, without its password."""
        self._place, self._address = place, address
        self._namespace = ""

    def hosts(self) -> list[FleetHost]:
        """Return the hosts, by their numbers. Raises `StoreError`."""
        with self._connected() as to:
            reports = self._reports(to.ray)
        return _fleet_hosts(reports, self._records())

    def scale(self, hosts: int, timeout: float = 120.0, on_wait: Callable[[str], object] | None = None) -> None:
        """Start hosts, or end those with the highest numbers, until there are ``hosts``; wait until they run agents.

        Drained hosts are ended first, and count as missing.

        Args:
            hosts: the number of hosts to have, 1 or more.
            timeout: seconds to wait for the new hosts.
            on_wait: as for `start`.

        Raises:
            NoHost: there is no host that knows the app: start the fleet again.
            ClusterError: a host could not be started.
        """
        check_count(hosts, "hosts", least=1, most=MOST_HOSTS)
        check_seconds(timeout, "timeout")
        tell = _teller(on_wait)
        with self._connected() as to:
            reports = self._reports(to.ray)
            launch, idle = self._launch(reports.values()), self._idle(reports)
            if surplus := [name for name in reports if name not in idle][hosts:]:
                self._end(to.ray, surplus, tell)
            self._grow(to, launch, hosts, timeout, tell)

    def drain(self, name: str, on_wait: Callable[[str], object] | None = None) -> None:
        """Let a host give its agents to the others, and end it.

        Raises `NoHost` when the fleet has no host of that name.
        """
        check_type(name, str, "name", "the name of a host")
        tell = _teller(on_wait)
        with self._connected() as to:
            names = self._names(to.ray)
            if name not in names:
                raise NoHost(f"No host of this fleet is called {name[:80]!r}; there are: {', '.join(names) or 'none'}.")
            self._end(to.ray, [name], tell)

    def stop(self, on_wait: Callable[[str], object] | None = None) -> None:
        """End all hosts. Their agents stay in the database.

        A Ray of this package on this machine ends with its last fleet.

        Args:
            on_wait: as for `start`; it also gets the directory of the logs of that Ray.
        """
        tell = _teller(on_wait)
        with _with_own_ray(self._address, tell=tell) as to:
            self._find(to.ray)
            self._end(to.ray, self._names(to.ray), tell)

    @contextmanager
    def _connected(self) -> Iterator[RayConnection]:
        with connected(self._address) as to:
            self._find(to.ray)
            yield to

    def _find(self, ray: Any) -> None:
        if self._namespace:
            return
        try:
            self._namespace = PREFIX + hashlib.sha256(self._place.identity.encode()).hexdigest()[:12]
        except StoreError:
            for namespace in sorted({actor["namespace"] for actor in _fleet_actors(ray)}):
                self._namespace = namespace
                if any(
                    report is not None and report.launch.url == self._place.address
                    for report in self._reports(ray).values()
                ):
                    return
            self._namespace = ""
            raise

    def _names(self, ray: Any) -> list[str]:
        return sorted((actor["name"] for actor in _actors(ray) if actor["namespace"] == self._namespace), key=_number)

    def _reports(self, ray: Any) -> dict[str, ShimReport | None]:
        """Return the shims' reports by the names of their hosts; None for a shim that does not answer."""
        asked = {}
        for name in self._names(ray):
            try:
                asked[name] = ray.get_actor(name, namespace=self._namespace).report.remote()
            except ValueError:  # it has ended meanwhile
                continue
        waited, _ = ray.wait([*asked.values()], num_returns=len(asked), timeout=_ANSWER) if asked else ([], [])
        return {name: _answer(ray, call) if call in waited else None for name, call in asked.items()}

    def _records(self) -> dict[str | None, HostRecord]:
        """Return the rows of the living hosts in the database, by their names."""
        return {host.name: host for host in living_hosts(self._place)}

    def _launch(self, reports: Collection[ShimReport | None]) -> Launch:
        for report in reports:
            if report is not None:
                return report.launch
        raise NoHost(
            f"No host of {self.location} answers on this Ray, to say which app it runs. Start the fleet again."
        )

    def _check_app(self, to: RayConnection, app: str) -> None:
        for report in self._reports(to.ray).values():
            if report is not None and report.launch.app != app:
                raise ClusterError(f"The hosts of {self.location} run the app {report.launch.app}: end them first.")

    def _grow(
        self, to: RayConnection, launch: Launch, hosts: int, timeout: float, tell: Callable[[str], object]
    ) -> None:
        """Start missing hosts, and wait until all run agents.

        Drained and replaced hosts count as missing, and are ended first.
        """
        reports = self._reports(to.ray)
        idle = self._idle(reports)
        there = [name for name in reports if name not in idle]
        new = [f"host-{number}" for number in range(1, hosts + 1) if f"host-{number}" not in there]
        new = new[: max(0, hosts - len(there))]
        self._check_strangers(reports, new)
        for name, state in idle.items():
            tell(f"{name} was {state}: it is ended first")
        self._end(to.ray, [*idle], tell)
        for name in new:
            self._place_shim(to.ray, name, launch)
        try:
            self._wait_for(to.ray, [*there, *new], timeout, tell)
        except BaseException:
            self._end(to.ray, new, tell)
            raise

    def _idle(self, reports: Mapping[str, ShimReport | None]) -> dict[str, str]:
        """Return the states of the hosts that were drained or replaced, by their names."""
        hosts = _fleet_hosts(reports, self._records_if_any())
        return {host.name: host.state for host in hosts if host.state in _IDLE}

    def _check_strangers(self, reports: Mapping[str, ShimReport | None], names: Collection[str]) -> None:
        """Raise `ClusterError` if a living host outside of the fleet has one of these names."""
        records = self._records_if_any()
        if (other := _stranger(reports, [records[name] for name in names if name in records])) is not None:
            raise ClusterError(
                f"A host named {other.name} runs already, and is none of this fleet: {other}. End it, or give it "
                "another name. Nothing was started."
            )

    def _records_if_any(self) -> dict[str | None, HostRecord]:
        """Return the same as `_records`; empty while the database has no tables, which the first host makes."""
        try:
            return self._records()
        except StoreError:
            return {}

    def _place_shim(self, ray: Any, name: str, launch: Launch) -> None:
        ray.remote(Shim).options(
            name=name,
            namespace=self._namespace,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=4,
            num_cpus=launch.cpus,
            resources=dict(launch.resources),
            scheduling_strategy="SPREAD",
        ).remote(name, launch)

    def _wait_for(self, ray: Any, names: Sequence[str], timeout: float, tell: Callable[[str], object]) -> None:
        begun = time.monotonic()
        while True:
            reports = self._reports(ray)
            # the hosts say what fails
            hosts_by_name = {host.name: host for host in _fleet_hosts(reports, self._records_if_any())}
            missing = [name for name in names if not _works(hosts_by_name.get(name), len(names))]
            if not missing:
                return
            if time.monotonic() - begun > _SILENCE:
                tell(f"waits for {', '.join(f'{name} ({_state_of(hosts_by_name.get(name))})' for name in missing)}")
            for name, report in reports.items():
                if report is not None and report.status in _REFUSED:
                    raise ClusterError(f"{name} could not be started: {report.said.removeprefix('ikigai: ')}")
            if time.monotonic() - begun > timeout:
                raise ClusterError(_late(hosts_by_name.get(missing[0]), missing[0], timeout, ray))
            time.sleep(0.2)  # the hosts report as rows, and Ray reports on an actor only when it is asked

    def _end(self, ray: Any, names: Sequence[str], tell: Callable[[str], object]) -> None:
        """Let hosts give their agents away and end, all at once; and keep Ray from starting them again."""
        shims = []
        for name in names:
            try:
                shims.append(ray.get_actor(name, namespace=self._namespace))
            except ValueError:  # it has ended meanwhile
                continue
        alive = [shim for shim in shims if _answer(ray, shim.report.remote(), _ANSWER) is not None]
        if calls := [shim.stop.remote(_KILLED) for shim in alive]:
            if len(ray.wait(calls, num_returns=len(calls), timeout=_SILENCE)[0]) < len(calls):
                tell(f"waits until {', '.join(names)} {'has' if len(names) == 1 else 'have'} given all agents away")
            ray.wait(calls, num_returns=len(calls), timeout=_KILLED + _ANSWER)
        for shim in shims:
            ray.kill(shim, no_restart=True)


@contextmanager
def _with_own_ray(
    address: str | None, begin: bool = False, tell: Callable[[str], object] = lambda line: None
) -> Iterator[RayConnection]:
    """Connect as `connected` does, and afterwards stop the Ray of this package on this machine if it has no fleet."""
    is_left = True
    try:
        with connected(address, begin) as to:
            try:
                yield to
            finally:
                is_left = not to.is_local or _has_fleets(to.ray)
    finally:
        if not is_left and (logs := local.end_local_ray()) is not None:
            tell(f"the logs of Ray and of the hosts are in {logs}")


def _server(url: str | None) -> DatabasePlace:
    place = place_of(url)
    if not place.is_server:
        raise BadInput(
            f"Hosts share agents on PostgreSQL, and {place.shown} is a file: ikigai copy moves a team there."
        )
    return place


def _directory(ray: Any) -> str | None:
    """Return the directory from which hosts import the app; None if Ray copies the job's directory to each node."""
    return None if ray.get_runtime_context().runtime_env.get("working_dir") else str(Path.cwd())


def _actors(ray: Any) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = ray.util.list_named_actors(all_namespaces=True)
    return listed


def _fleet_actors(ray: Any) -> list[dict[str, str]]:
    return [actor for actor in _actors(ray) if actor["namespace"].startswith(PREFIX)]


def _has_fleets(ray: Any) -> bool:
    return bool(_fleet_actors(ray))


def _teller(on_wait: Callable[[str], object] | None) -> Callable[[str], object]:
    """Return a function that passes each line to ``on_wait`` unless it equals the line before."""
    if on_wait is None:
        return lambda line: None
    tell, last_line = check_plain_function(on_wait, "on_wait", "a function that takes a line"), [""]

    def once(line: str) -> None:
        if line != last_line[0]:
            last_line[0] = line
            tell(line)

    return once


def _number(name: str) -> tuple[int, str]:
    return int(re.sub(r"\D", "", name) or 0), name


def _answer(ray: Any, call: Any, timeout: float = 0) -> ShimReport | None:
    """Return the report of a shim; None when the shim has ended, or does not answer in time."""
    try:
        report: ShimReport = ray.get(call, timeout=timeout)
    except ray.exceptions.RayError:
        return None
    return report


def _stranger(reports: Mapping[str, ShimReport | None], records: Collection[HostRecord]) -> HostRecord | None:
    """Return a living host that no shim runs; None if there is none."""
    ours = {(report.node, report.pid) for report in reports.values() if report is not None}
    living = (record for record in records if record.state in ("runs", "drains"))
    return next((host for host in living if (host.hostname, host.pid) not in ours), None)


def _fleet_hosts(reports: Mapping[str, ShimReport | None], records: Mapping[str | None, HostRecord]) -> list[FleetHost]:
    return [_host(name, report, records.get(name)) for name, report in reports.items()]


def _host(name: str, report: ShimReport | None, record: HostRecord | None) -> FleetHost:
    shards, agents = (0, 0) if record is None else (record.shards, record.agents)
    if report is None:
        return FleetHost(name, "waiting", "", None, shards, agents, "")
    if report.is_replaced:
        state = "replaced"
    elif report.status is not None:
        state = "failed"
    elif record is None or record.pid != report.pid:  # the row is its former self's
        state = "starts"
    else:
        state = "drained" if record.state == "drains" and not shards else record.state
    return FleetHost(name, state, report.node, report.pid, shards, agents, report.said)


def _works(host: FleetHost | None, hosts: int) -> bool:
    """Return whether a host runs agents, or is ready to. Among very many hosts, some have no agents."""
    return host is not None and host.state == "runs" and (host.shards > 0 or hosts > 32)


def _state_of(host: FleetHost | None) -> str:
    return "waiting" if host is None else host.state


def _late(host: FleetHost | None, name: str, timeout: float, ray: Any) -> str:
    """Return a sentence that says why a host does not run yet."""
    if host is not None and host.state != "waiting":
        said = host.said.removeprefix("ikigai: ") or "nothing"
        return f"{name} does not run agents within {timeout:g} s: its state is {host.state}. It said last: {said}"
    free = ray.available_resources()
    return (
        f"Ray has started no {name} within {timeout:g} s. Each host takes a CPU unless cpus says otherwise; "
        f"{free.get('CPU', 0):g} of {ray.cluster_resources().get('CPU', 0):g} are free."
    )
