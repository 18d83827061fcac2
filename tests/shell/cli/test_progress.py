"""The bar of long commands: what it says, and that a pipe gets none of it."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from ikigai_actors import ActorSystem, ScriptedProvider
from ikigai_actors.records.agents import registry
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.transfer.export import export_file
from ikigai_actors.shell.cli.bars import bar_on
from ikigai_actors.shell.cli.progress import progress_bar, show_notice
from ikigai_actors.store import open_store
from ikigai_actors.store.copy import copy_database
from ikigai_actors.store.existing import existing
from tests.kit.program import PATIENCE


def test_a_bar_says_how_many_how_fast_and_how_long() -> None:
    written, now = io.StringIO(), [0.0]
    console = Console(file=written, force_terminal=True, width=100, color_system=None)
    with bar_on(console, "trials", get_time=lambda: now[0], refreshed=False) as advance:
        for done in range(1, 5):
            now[0] += 2.0
            advance(done, 16)
    shown = written.getvalue()
    assert "1 of 16 trials" in shown
    assert "4 of 16 trials" in shown
    assert "30.0/min" in shown
    assert "0:00:24 left" in shown


def test_a_notice_stands_on_a_line_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(written, encoding="utf-8", write_through=True))
    console = Console(stderr=True, force_terminal=True, width=100, color_system=None)
    with bar_on(console, "trials", refreshed=False) as advance:
        for done in range(1, 3):
            show_notice(f"turn {done}: 1")
            advance(done, 2)
    lines = written.getvalue().decode().splitlines()
    assert [re.sub(r"\x1b\[[\d?]*[A-Za-z]", "", line) for line in lines if "turn" in line] == [
        "ikigai: turn 1: 1", "ikigai: turn 2: 1"
    ]  # fmt: skip


def test_nothing_of_a_bar_is_shown_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("trials") as advance:
        advance(3, 16)
    assert capsys.readouterr() == ("", "")


def test_a_copy_an_export_and_a_prune_say_how_much_is_done(tmp_path: Path) -> None:
    place = tmp_path / "team.db"
    with ActorSystem.open(place, ScriptedProvider(lambda request: "done")) as system:
        kids = [system.root.fork(f"part {number}") for number in range(3)]
        for kid in kids:
            kid.reply(timeout=PATIENCE)
        kids[0].kill()
        top = system.root.uuid
    steps: dict[str, list[tuple[int, int]]] = {"copy": [], "export": [], "prune": []}

    def hears(what: str) -> Callable[[int, int], None]:
        return lambda done, total: steps[what].append((done, total))

    with existing(str(place)) as store:
        copy = open_store(tmp_path / "copy.db")
        counts = copy_database(store, copy, hears("copy"))
        copy.close()
        export_file(store, top, tmp_path / "team.jsonl", now=0, advance=hears("export"))
        now = store.read(lambda tx: max(record.ended_at or 0 for record in registry.every(tx))) + 1
        prune_logs(store, now, now, advance=hears("prune"))
    rows = sum(counts.values())
    assert steps["copy"][-1] == (2 * rows, 2 * rows)
    assert [done for done, _ in steps["copy"]] == sorted(done for done, _ in steps["copy"])
    assert {total for _, total in steps["export"]} == {len((tmp_path / "team.jsonl").read_text().splitlines()) - 2}
    assert steps["prune"] == [(1, 1)]
