"""What a fleet makes of its shims' reports and the rows of hosts. No Ray is needed."""

import os
from pathlib import Path

import pytest

from ikigai_actors.cluster import local
from ikigai_actors.cluster.child import Launch
from ikigai_actors.cluster.fleet import _fleet_hosts, _stranger
from ikigai_actors.cluster.shim import ShimReport
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.shell.cli import host
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.postgres.store import identity_of
from tests.conftest import NewDatabase

LAUNCH = Launch("postgresql:///team", "shop:app", None, 1, {})


def report(pid: int, status: int | None = None) -> ShimReport:
    return ShimReport(LAUNCH, "blue", pid, status, "")


def row(pid: int, name: str = "host-1", shards: int = 0, draining: bool = False) -> HostRecord:
    return HostRecord("id", name, "blue", pid, 1, shards=shards, draining=draining)


@pytest.mark.parametrize(
    ("report", "record", "state"),
    [
        (None, None, "waiting"),
        (report(5), None, "starts"),
        (report(5), row(4, shards=3), "starts"),  # of its former self
        (report(5), row(5, shards=3), "runs"),
        (report(5), row(5, shards=3, draining=True), "drains"),
        (report(5), row(5, draining=True), "drained"),
        (report(5, 75), row(5, shards=3), "failed"),
        (report(5, host.REPLACED), row(6, shards=3), "replaced"),
    ],
)
def test_the_state_of_a_host_is_what_its_shim_and_its_row_tell_together(
    report: ShimReport | None, record: HostRecord | None, state: str
) -> None:
    [host] = _fleet_hosts({"host-1": report}, {} if record is None else {"host-1": record})
    assert host.state == state


def test_a_living_host_that_no_shim_runs_is_a_stranger() -> None:
    reports = {"host-1": report(5), "host-2": None}
    assert _stranger(reports, [row(5, shards=3)]) is None
    assert _stranger(reports, [row(5, shards=3), row(6, "host-2", shards=3)]) == row(6, "host-2", shards=3)
    assert _stranger(reports, [HostRecord("id", "host-2", "blue", 6, 1, ended_at=2)]) is None


def test_a_shim_knows_the_status_of_a_host_that_was_replaced() -> None:
    assert report(5, host.REPLACED).is_replaced
    assert not report(5, host.START_AGAIN).is_replaced


def test_a_database_says_the_same_of_itself_however_its_url_is_spelled(new_postgres: NewDatabase) -> None:
    url, other = new_postgres(), new_postgres()
    spelled = f"{url}&application_name=other&connect_timeout=7"
    assert identity_of(url) == identity_of(spelled)
    assert identity_of(url) != identity_of(other)
    with pytest.raises(StoreUnavailable):
        identity_of("postgresql://bob@127.0.0.1:1/db")


def test_the_processes_of_a_group_are_found_without_a_program() -> None:
    commands = list(local._commands(os.getpgrp()))
    assert Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode() in commands
