"""The wheel: complete, and running where there is no checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow("builds and installs the package")

ROOT = Path(__file__).parents[2]


def built(out: Path, **surroundings: str) -> Path:
    """A wheel built from the checkout."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000", **surroundings}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    [wheel] = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("dist"))


@pytest.mark.thorough("builds the wheel once more; a release is built twice, and compared")
def test_a_wheel_depends_on_neither_the_time_zone_nor_the_order_of_hashes(wheel: Path, tmp_path: Path) -> None:
    """Another folder and umask: `tests.project.test_release`."""
    again = built(tmp_path, TZ="Asia/Tokyo", PYTHONHASHSEED="7")
    assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.thorough("a wheel is built")
def test_the_wheel_carries_both_packages_their_types_the_schema_and_the_queries(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (
        "schema.sql",
        "store/queries.sql",
        "records/agents/adjectives.txt",
        "records/agents/nouns.txt",
        "py.typed",
        "__init__.pyi",
        "testing/__init__.pyi",
        "cluster/__init__.pyi",
        "shell/cli/main.py",
        "shell/web/templates/app_index.html",
    ):
        assert f"ikigai_actors/{path}" in names
    assert "supervisors/py.typed" in names
    assert not any(name.startswith(("tests", "benchmarks")) for name in names)


@pytest.mark.thorough("installs the wheel; the checkout runs the demo in every run")
def test_the_demo_runs_from_the_installed_wheel_in_an_empty_directory(wheel: Path, tmp_path: Path) -> None:
    target, home = tmp_path / "site", tmp_path / "home"
    home.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(target), "HOME": str(home)}
    environment.pop("IKIGAI_HOME", None)
    where = [sys.executable, "-c", "import ikigai_actors; print(ikigai_actors.__file__)"]
    done = subprocess.run(where, check=True, capture_output=True, text=True, cwd=home, env=environment)
    assert done.stdout.startswith(str(target))
    demo = [sys.executable, "-m", "ikigai_actors", "demo"]
    run = subprocess.run(demo, capture_output=True, text=True, cwd=home, env=environment)
    assert (run.returncode, run.stderr) == (0, "")
    assert list(home.iterdir()) == []
