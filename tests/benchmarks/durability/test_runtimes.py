"""The environments of the runtimes in the durability benchmark."""

from pathlib import Path

import pytest

from benchmarks.durability.runtimes import DRIVERS, INSTALLED, RUNTIMES, is_prepared, python_of


def test_an_environment_is_prepared_only_with_all_packages_that_its_driver_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IKIGAI_DURABILITY", str(tmp_path))
    runtime = RUNTIMES["dbos-sqlite"]
    python = Path(python_of(runtime))
    python.parent.mkdir(parents=True)
    python.touch()
    assert not is_prepared(runtime)
    pinned = (DRIVERS / f"{runtime.driver}.txt").read_text()
    (tmp_path / runtime.driver / INSTALLED).write_text(pinned)
    assert is_prepared(runtime)
    (tmp_path / runtime.driver / INSTALLED).write_text(pinned + "more==1\n")
    assert not is_prepared(runtime)
    assert is_prepared(RUNTIMES["naive"])
