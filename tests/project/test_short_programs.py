"""The short programs of examples/: what they print, twice, and how short they are."""

import asyncio
import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import pytest

from tests.kit.databases import ROOT


def program(name: str, most: int) -> ModuleType:
    """An example, imported; it has so many lines at most that are not blank."""
    path = ROOT / "examples" / f"{name}.py"
    assert len([line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]) <= most
    spec = importlib.util.spec_from_file_location(f"short_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_team_shares_a_budget_and_answers_with_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    team = program("research_team", 25)
    assert inspect.iscoroutinefunction(team.main)
    for spent in (300, 600):
        asyncio.run(team.main(str(tmp_path / "team.db")))
        *lines, budget = capsys.readouterr().out.splitlines()
        assert lines == ["assam 40", "ceylon 40", "nilgiri 40"]
        assert f"spent={{'tokens': {spent}}}" in budget


def test_an_assistant_has_what_it_had_when_its_program_runs_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assistant = program("assistant", 20)
    for prompts in (2, 3):
        assistant.main(str(tmp_path / "assistant.db"))
        heard, mail, answer = capsys.readouterr().out.splitlines()
        assert (heard, mail) == ("new mail: The fair begins at ten.", "1 mail, 1 timer")
        assert f"I remember {prompts} prompts" in answer


def test_a_pool_does_every_job_though_workers_crash(capsys: pytest.CaptureFixture[str]) -> None:
    program("pool", 18).main()
    assert capsys.readouterr().out == f"{[f'{job} done' for job in range(20)]} 5\n"
