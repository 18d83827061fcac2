"""A Ray of ours on this machine: what docs/cluster.md shows is played."""

import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import NewDatabase
from tests.kit.databases import ROOT, eventually
from tests.kit.ray_cluster import RAY_PATIENCE, kill_all, needs_ray, processes
from tests.kit.transcripts import differs, play

pytestmark = needs_ray

PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
SERVER = "postgresql:///team"


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for temporary files with a short name, as the sockets of Ray need it."""
    directory = Path(tempfile.mkdtemp(prefix="own-"))
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield directory
    kill_all(lambda: [one for one in processes() if str(directory) in one.command])  # after a failure
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
    assert not differs(shown.splitlines(), printed)
    eventually(lambda: not any(str(temporary) in one.command for one in processes()), "the end of Ray")
    assert [*temporary.iterdir()] == []
