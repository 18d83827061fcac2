"""The marker ``recorded``, by a run of pytest on a file of tests."""

from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, ScriptedProvider
from tests.kit.blocking_provider import DEADLINE

TESTS = """
import pytest
from ikigai_actors import ScriptedProvider

@pytest.fixture(scope="session")
def ikigai_parts():
    def answer(request):
        said = request.messages[-1]["content"][-1]["text"]
        return f"{request.system}: {said}" if request.system else f"You said {said}."
    return {"provider": ScriptedProvider(answer)}

@pytest.mark.recorded("shop.jsonl")
def test_the_same(turn):
    assert turn.replay().text == turn.text

@pytest.mark.recorded("shop.jsonl")
def test_changed(turn):
    assert turn.replay(change={"system": "Tea"}).text == turn.text
"""


class Outcomes:
    """What came of each test."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.of[report.nodeid.partition("::")[2]] = report.outcome


def ran(folder: Path, *more: str) -> tuple[int, dict[str, str]]:
    outcomes = Outcomes()
    status = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *more, str(folder)], [outcomes])
    return int(status), outcomes.of


def test_each_recorded_turn_is_a_test_that_replays_it(tmp_path: Path) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(lambda request: "You said tea.")) as system:
        clerk = system.root.fork(name="clerk")
        for _ in range(2):
            clerk.prompt("tea").get(timeout=DEADLINE)
        places = [one.id for one in clerk.history() if one.kind == "user"]
        system.export(clerk, tmp_path / "shop.jsonl")
    (tmp_path / "test_shop_turns.py").write_text(TESTS, "utf-8")
    status, outcomes = ran(tmp_path)
    assert status == 1
    assert outcomes == {
        f"{test}[clerk-{place}]": outcome
        for test, outcome in (("test_the_same", "passed"), ("test_changed", "failed"))
        for place in places
    }


def test_a_file_that_is_not_there_and_a_turn_without_a_marker_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_no_file.py").write_text(TESTS, "utf-8")
    assert ran(tmp_path)[0] != 0
    assert "shop.jsonl cannot be read" in "".join(capsys.readouterr())
    (tmp_path / "test_no_file.py").unlink()
    (tmp_path / "test_no_marker.py").write_text("def test_it(turn):\n    pass\n", "utf-8")
    assert ran(tmp_path) == (1, {"test_it": "failed"})
    assert "pytest.mark.recorded" in capsys.readouterr().out
