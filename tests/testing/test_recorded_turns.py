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
    without = ("-p", "no:cacheprovider", "-p", "no:unraisableexception")  # which collects garbage ten times at the end
    status = pytest.main(["-q", *without, "--rootdir", str(folder), *more, str(folder)], [outcomes])
    return int(status), outcomes.of


def exported(file: Path) -> list[int]:
    """Export an agent that has taken two turns; return where they begin."""
    with ActorSystem.open(":memory:", ScriptedProvider(lambda request: "You said tea.")) as system:
        clerk = system.root.fork(name="clerk")
        for _ in range(2):
            clerk.prompt("tea").get(timeout=DEADLINE)
        system.export(clerk, file)
        return [message.id for message in clerk.history() if message.kind == "user"]


@pytest.mark.slow("takes a tenth of a second")
def test_each_recorded_turn_is_a_test_that_replays_it(tmp_path: Path) -> None:
    places = exported(tmp_path / "shop.jsonl")
    (tmp_path / "test_shop_turns.py").write_text(TESTS, "utf-8")
    status, outcomes = ran(tmp_path)
    assert status == 1
    assert outcomes == {
        f"{test}[clerk-{place}]": outcome
        for test, outcome in (("test_the_same", "passed"), ("test_changed", "failed"))
        for place in places
    }


@pytest.mark.sample(1, "a run of pytest for each")
@pytest.mark.parametrize(
    ("test", "message"),
    [
        (TESTS, "shop.jsonl cannot be read: No such file"),
        (TESTS.replace('"shop.jsonl"', ""), "names one file of ikigai export"),
        (TESTS.replace('"shop.jsonl"', '"a", "b"'), "names one file of ikigai export"),
        (TESTS.replace("shop.jsonl", "damaged.jsonl"), "damaged.jsonl cannot be read"),
        (
            TESTS.replace("shop.jsonl", "old.jsonl").replace('return {"provider"', "{1"),
            "a dict of what ActorSystem.open",
        ),
        (TESTS.replace("shop.jsonl", "old.jsonl").replace("def ikigai_parts", "def other_parts"), "offline provider"),
        ("def test_it(turn): pass", "pytest.mark.recorded"),
    ],
    ids=range(7),
)
def test_what_is_missing_is_said_in_a_line_and_no_test_passes(
    test: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (tmp_path / "damaged.jsonl").write_text('{"record":"header"', "utf-8")
    exported(tmp_path / "old.jsonl")
    (tmp_path / f"test_of_{tmp_path.name}.py").write_text(test, "utf-8")  # modules are imported once by name
    status, outcomes = ran(tmp_path)
    assert status != 0
    assert "passed" not in outcomes.values()
    said = "".join(capsys.readouterr())
    assert message in said
    assert "recorded_turns.py" not in said  # no traceback through the plugin
