"""A few real plays: a runtime that keeps nothing is convicted, and ours is not."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.durability.faults import MOMENTS
from benchmarks.durability.history import Play
from benchmarks.durability.play import Setting, play
from benchmarks.durability.runtimes import RUNTIMES
from benchmarks.durability.servers import Directories
from benchmarks.durability.verdict import judge


def played(runtime: str, moment: str, directory: Path, patience: float = 30.0) -> Play:
    """A play of the task, struck at this moment."""
    with ExitStack() as stack:
        setting = Setting(RUNTIMES[runtime], "run", MOMENTS.get(moment), True, 1, patience)
        return play(setting, Directories(stack), directory / "driver.log")


@pytest.mark.thorough("a second play")
def test_a_runtime_that_keeps_nothing_ends_undisturbed(tmp_path: Path) -> None:
    verdict = judge(played("naive", "undisturbed", tmp_path))
    assert verdict.ended
    assert not verdict.convicted


@pytest.mark.slow("two starts of a driver")
def test_a_runtime_that_keeps_nothing_is_convicted_of_losing_a_killed_run(tmp_path: Path) -> None:
    record = played("naive", "worker's request in flight", tmp_path, patience=3)
    [struck] = record.of("struck")
    assert struck.detail == {"proved": True, "proof": "exit status -9"}
    verdict = judge(record)
    assert verdict.landed
    assert not verdict.ended
    assert verdict.convicted


@pytest.mark.thorough("kills of a process for each kind; every run has what convicts a runtime")
@pytest.mark.slow("two starts of a driver each")
@pytest.mark.parametrize(
    "moment",
    ["worker's request in flight", "effect done, no receipt", "approval acknowledged", "last request in flight"],
)
def test_our_own_runtime_loses_nothing_and_repeats_nothing(moment: str, tmp_path: Path) -> None:
    verdict = judge(played("ikigai-sqlite", moment, tmp_path))
    assert verdict.landed, verdict.why_not
    assert not verdict.convicted
    assert (verdict.twice, verdict.missing, verdict.unclear) == (0, 0, 0)
