"""A Ray of ours on this machine: what docs/operate/cluster.md shows is played."""

import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import NewDatabase
from tests.kit.databases import ROOT, eventually
from tests.kit.program import Program, run
from tests.kit.ray_cluster import RAY_PATIENCE, kill_all, needs_ray, processes
from tests.kit.transcripts import differs, play

pytestmark = needs_ray

PAGE = (ROOT / "docs" / "operate" / "cluster.md").read_text(encoding="utf-8")
SERVER = "postgresql:///team"


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for temporary files with a short name, as the sockets of Ray need it."""
    directory = Path(tempfile.mkdtemp(prefix="own-"))
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield directory
    kill_all(lambda: [process for process in processes() if str(directory) in process.command])  # after a failure
    shutil.rmtree(directory)


def test_the_page_of_the_cluster_is_what_comes_and_nothing_is_left(
    temporary: Path, new_postgres: NewDatabase, tmp_path: Path
) -> None:
    [app] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "shop.py").write_text(re.sub(r"^(>>>|\.\.\.) ?", "", app, flags=re.MULTILINE), encoding="utf-8")
    [shown] = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    url = new_postgres()
    up, *rest = re.split(r"^(?=\$ )", shown, flags=re.MULTILINE)[1:]
    printed = play(up.splitlines(), tmp_path, {SERVER: url}, RAY_PATIENCE)
    [home] = temporary.iterdir()
    assert [stat.filemode(place.stat().st_mode) for place in (home, home / "token")] == ["drwx------", "-rw-------"]
    printed += play("".join(rest).splitlines(), tmp_path, {SERVER: url}, RAY_PATIENCE)
    patient = re.sub(r"^ikigai: waits .*\n", "", printed, flags=re.MULTILINE)  # on a busy machine
    assert not differs(shown.splitlines(), patient)
    eventually(lambda: not any(str(temporary) in process.command for process in processes()), "the end of Ray")
    assert [[*temporary.iterdir()], [*home.iterdir()]] == [[home], [home / "logs"]]
    assert any("runs postgresql" in log.read_text(errors="replace") for log in (home / "logs").glob("worker-*.err"))


def test_one_database_is_one_fleet_and_no_host_of_it_is_stuck(
    temporary: Path, new_postgres: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text("def app():\n    return {'provider': 'offline'}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    url = new_postgres()
    respelled = f"{url}&application_name=another"

    def cluster(database: str, *arguments: str, status: int = 0) -> str:
        done = run("--database", database, "cluster", *arguments, patience=RAY_PATIENCE)
        assert done.returncode == status, done.stderr
        return done.stderr if status else done.stdout

    def state(name: str) -> str:
        return next(line for line in cluster(url, "status").splitlines() if line.startswith(name))

    up = cluster(url, "up", "--hosts", "2", "--app", "shop:app")
    assert cluster(respelled, "up", "--hosts", "2", "--app", "shop:app").split()[3] == up.split()[3]
    assert run("--database", url, "drain", "host-2", patience=RAY_PATIENCE).returncode == 0
    eventually(lambda: "drained" in state("host-2"), "the end of the drain")
    scaled = cluster(respelled, "scale", "2").splitlines()
    assert "runs" in scaled[1]
    assert scaled[1].split()[3] != up.splitlines()[1].split()[3]
    assert len(cluster(url, "drain", "host-2").splitlines()) == 1
    with Program.by_pipe("--database", url, "host", "--name", "host-1", "--app", "shop:app"):
        eventually(lambda: "replaced" in state("host-1"), "the host that was started by hand")
        refused = cluster(url, "scale", "1", status=1)
        assert "A host named host-1 runs already, and is none of this fleet" in refused
    eventually(lambda: "runs" in cluster(url, "up", "--hosts", "1", "--app", "shop:app"), "the fleet's own host")
    cluster(respelled, "down")
