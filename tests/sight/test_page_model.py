"""The model of the observer's page, without a browser."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import ikigai_actors.sight

MODEL = Path(ikigai_actors.sight.__file__).parent / "page" / "model.js"
NODE = shutil.which("node")

TREE = """
import { Model } from "./model.mjs";
const model = new Model(), soon = Date.now() + 60_000;
const row = (uuid, supervisor, born, ended) => ({ uuid, parent: supervisor, supervisor, born, ended, label: uuid });
const rows = [row("root", null, 1, null), row("kid", "root", soon, null), row("gone", "root", 1, 2)];
model.change({ version: 1, rows });
const uuids = tree => [...tree.values()].flat().map(one => one.uuid).sort();
console.log(JSON.stringify([uuids(model.tree(null, 0)), uuids(model.tree(soon - 1, 0)), uuids(model.tree(1, 0))]));
"""


@pytest.mark.skipif(NODE is None, reason="there is no node")
def test_an_agent_that_is_known_is_shown_though_the_clock_of_the_page_is_behind(tmp_path: Path) -> None:
    assert NODE is not None
    shutil.copy(MODEL, tmp_path / "model.mjs")
    (tmp_path / "tree.mjs").write_text(TREE, encoding="utf-8")
    done = subprocess.run([NODE, "tree.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    now, before, at_first = json.loads(done.stdout)
    assert now == ["kid", "root"]
    assert before == ["root"]
    assert at_first == ["gone", "root"]
