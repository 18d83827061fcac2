"""A plugin of pytest that writes how each test of a run ended: ``pytest -p tests.kit.outcomes --outcomes FILE``."""

import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to write."""
    parser.addoption("--outcomes", type=Path, help="write how each test ended to this file, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the run, in the one process that hears of every test."""
    path: Path | None = config.getoption("--outcomes")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(path))


class Outcomes:
    """The outcomes of one run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes: dict[str, str] = {}
        self._whole = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome of a test's setup, call and teardown."""
        worst = {report.outcome, self._outcomes.get(report.nodeid, "passed")}
        self._outcomes[report.nodeid] = next(one for one in ("failed", "skipped", "passed") if one in worst)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tests that cannot be collected do not run."""
        self._whole &= not report.failed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """A process that runs tests has ended, by a crash if there is an error."""
        self._whole &= not error

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file: the outcomes, the paths that were given, and whether all tests ran to their ends."""
        self._path.write_text(
            json.dumps(
                {
                    "outcomes": self._outcomes,
                    "paths": session.config.option.file_or_dir,
                    "whole": self._whole and not session.shouldfail and not session.shouldstop,
                }
            ),
            encoding="utf-8",
        )
