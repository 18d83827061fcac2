"""A machine without Ray imports nothing of it, and is told what is missing."""

import subprocess

import pytest

from ikigai_actors import BadInput, cluster
from tests.kit.databases import ROOT
from tests.kit.program import completed
from tests.kit.zygote import PYTHON

pytestmark = pytest.mark.slow("programs that import everything")

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "ray":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""

IMPORT_ALL = """
import importlib, pkgutil, sys
import ikigai_actors
from tests.kit.zygote import guests_missing
for module in pkgutil.walk_packages(ikigai_actors.__path__, "ikigai_actors."):
    if not module.name.endswith(("__main__", *guests_missing())):
        importlib.import_module(module.name)
for package in (ikigai_actors, ikigai_actors.shell, ikigai_actors.testing, ikigai_actors.cluster):
    for name in package.__all__:
        getattr(package, name)
print(sorted(name for name in sys.modules if name.partition(".")[0] == "ray"))
"""

COMMAND = """
from ikigai_actors.shell.cli.main import run
sys.exit(run(["--database", "postgresql://nowhere/team", "cluster", *sys.argv[1:]]))
"""


def script(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return completed([*PYTHON, "-c", code, *arguments], cwd=ROOT)


def test_the_whole_package_imports_nothing_of_ray() -> None:
    done = script(WITHOUT + IMPORT_ALL)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


@pytest.mark.parametrize("command", [["up", "--app", "shop:app"], ["status"]], ids=str)
def test_a_command_that_needs_ray_says_how_to_install_it(command: list[str]) -> None:
    done = script(WITHOUT + COMMAND, *command)
    message = "ikigai: A cluster needs Ray: pip install 'ikigai-actors[ray]'.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_what_cannot_be_started_is_refused_before_ray_is_looked_for() -> None:
    url = "postgresql://nowhere/team"
    with pytest.raises(BadInput, match="is a file: ikigai copy moves a team there"):
        cluster.start("team.db", app="shop:app")
    with pytest.raises(BadInput, match="Expected app to be MODULE:FUNCTION; got 'shop'"):
        cluster.start(url, app="shop")
    with pytest.raises(BadInput, match="Expected hosts to be a whole number from 1"):
        cluster.start(url, 0, app="shop:app")
    with pytest.raises(BadInput, match="Expected cpus"):
        cluster.start(url, app="shop:app", cpus=-1)
