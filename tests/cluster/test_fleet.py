"""Hosts on a cluster of Ray, whose every part is killed."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.conftest import NewDatabase
from tests.kit.databases import ROOT, eventually
from tests.kit.program import Program, run
from tests.kit.ray_cluster import RAY_PATIENCE, RayCluster, needs_ray, parent, ray_cluster
from tests.torture.fleet.campaign import AGENTS, HANDS, judge_at_last, prepare
from tests.torture.fleet.hands import Work, attached
from tests.torture.fleet.hosts import LEASE, RECORDS, SHORT_LEASE

pytestmark = needs_ray


APP = "tests.torture.fleet.hosts:app"
HOSTS = {"host-1", "host-2", "host-3"}


def cluster_command(url: str, *arguments: str) -> str:
    """Run ``ikigai cluster …``; return what it prints."""
    done = run("--database", url, "cluster", *arguments, patience=RAY_PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pids(work: Work, without: int = 0) -> dict[str, int]:
    """The processes of the three hosts, as soon as all run, and a certain one does not any more."""
    pid_by_name: dict[str | None, int] = {}

    def run_all() -> bool:
        living = [host for host in work.system.hosts() if host.state == "runs" and host.shards]
        pid_by_name.clear()
        pid_by_name.update((host.name, host.pid) for host in living)
        return pid_by_name.keys() == HOSTS and without not in pid_by_name.values()

    eventually(run_all, "three hosts")
    return {str(name): pid for name, pid in pid_by_name.items()}


@contextmanager
def starting(url: str) -> Iterator[tuple[Work, ExitStack]]:
    """Let hands work until the second part is closed, at the latest at the end of the block."""
    with attached(url) as system, ExitStack() as hands:
        work = Work(system, "1")
        work.populate(AGENTS)
        hands.enter_context(work.under_way(HANDS))
        yield work, hands


def answered(work: Work, what: str) -> None:
    """Wait until prompts of after this moment are answered."""
    number = len(work.waits) + 20
    eventually(lambda: len(work.waits) >= number, f"answers after {what}")


def kill_host(cluster: RayCluster, hosts: dict[str, int]) -> int:
    os.kill(hosts["host-1"], signal.SIGKILL)
    return hosts["host-1"]


def stop_host(cluster: RayCluster, hosts: dict[str, int]) -> int:
    os.kill(hosts["host-2"], signal.SIGSTOP)
    return hosts["host-2"]


def kill_shim(cluster: RayCluster, hosts: dict[str, int]) -> int:
    os.kill(parent(hosts["host-3"]), signal.SIGKILL)
    return hosts["host-3"]


def kill_raylet(cluster: RayCluster, hosts: dict[str, int]) -> int:
    raylets = {parent(parent(pid)): pid for pid in hosts.values()}
    raylet = next(other for other in raylets if other != cluster.head("raylet"))
    os.kill(raylet, signal.SIGKILL)
    return raylets[raylet]


FAULTS = (kill_host, stop_host, kill_shim, kill_raylet)


def test_every_prompt_is_answered_once_whatever_of_ray_is_killed(
    new_postgres: NewDatabase, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = new_postgres()
    prepare(url)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv(RECORDS, str(tmp_path))
    monkeypatch.setenv(LEASE, str(SHORT_LEASE))
    with ray_cluster(nodes=2) as cluster:
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        refused = run(
            "--database",
            url,
            "cluster",
            "up",
            "--hosts",
            "1",
            "--app",
            "tests.torture.fleet.hosts:nothing",
            patience=RAY_PATIENCE,
        )
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert "host-1 could not be started: --app tests.torture.fleet.hosts:nothing" in refused.stderr
        shown = cluster_command(url, "up", "--app", APP)
        assert [line.split()[0] for line in shown.splitlines()] == sorted(HOSTS)
        with starting(url) as (work, hands):
            for fault in FAULTS:
                victim = fault(cluster, pids(work))
                assert victim not in pids(work, without=victim).values()
                answered(work, fault.__name__)
            assert len(cluster_command(url, "scale", "4").splitlines()) == 4
            assert len(cluster_command(url, "scale", "1").splitlines()) == 1
            answered(work, "scaling")
            os.kill(cluster.head("gcs_server"), signal.SIGKILL)
            answered(work, "the end of the head's service")
            cluster.kill()
            with Program.by_pipe("--database", url, "host", "--name", "plain", "--app", APP):
                answered(work, "the end of Ray")
                hands.close()
                assert judge_at_last(url, work.facts, tmp_path) == []
    assert work.complaints == []
