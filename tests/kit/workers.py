"""Runs tests in several processes, forked from one that has collected them: ``pytest --workers 4``.

The processes share one queue: a pipe with shares of the list of tests, those that take longest first, as the last run
has measured them. What one has run it sends back. Where one crashes, its test has failed, and another does the rest.

A test that fails runs once more, in a process of its own. What fails again fails the run. What passes then is *flaky*:
the summary names it, and the run may still pass, for a test that fails by chance shall not hold up what was finished
beside it. It is a defect all the same, and fails a run of the thorough tier.
"""

import contextlib
import gc
import multiprocessing
import os
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

import pytest
from _pytest._io import TerminalWriter
from hypothesis import given
from hypothesis.strategies import integers

from tests.kit.tiers import EXAMPLES, Tier, marked
from tests.kit.zygote import ROOT, Zygote

Link: TypeAlias = "Connection[Any, Any]"

AT_MOST = 10
"""Failures that may be chance; of a run with more nothing runs again."""

SHARE = 0.5
"""Seconds that a share of a file takes about, unless one test takes more."""

UNKNOWN = {Tier.QUICK: 0.02, Tier.STANDARD: 0.5, Tier.THOROUGH: 5.0}
"""Seconds that a test is expected to take which has never been measured."""

MEASURED = "workers/seconds"
"""Where pytest's cache keeps how long each test took."""

_COLLECTED = pytest.StashKey[Collection[str]]()
"""The names of all tests that were collected, of any tier."""

_RANGE = struct.Struct("ii")

gc.set_threshold(50_000, 20, 50)  # what tests make goes by its counts of references: to look for circles took a tenth


def shares(files: Sequence[str], seconds: Sequence[float], whole: Collection[str] = ()) -> list[range]:
    """Divide a list of tests, each with its file and the seconds it takes, into parts of files, longest first.

    A file of ``whole`` stays in one part.
    """
    begins, total = 0, 0.0
    ranges: list[tuple[float, range]] = []
    for index, (file, took) in enumerate(zip(files, seconds, strict=True)):
        other = index and file != files[index - 1]
        if index and (other or (total + took > SHARE and file not in whole)):
            ranges.append((total, range(begins, index)))
            begins, total = index, 0.0
        total += took
    ranges.append((total, range(begins, len(files))))
    return [share for _, share in sorted(ranges, key=lambda share: -share[0])]


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many processes."""
    parser.addoption("--workers", type=int, default=0, help="run the tests in so many processes")


def pytest_sessionstart(session: pytest.Session) -> None:
    """What forks programs for all the processes warms up while the tests are collected; garbage is looked for later."""
    if session.config.getoption("--workers"):
        gc.disable()  # thousands of modules and tests come to stay: to go through them takes a fifth of the time
        if session.config.rootpath == ROOT:
            Zygote.get()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the names of all tests, before some are left out."""
    config.stash[_COLLECTED] = {item.nodeid for item in items}


def still_there(
    seconds: Mapping[str, float], collected: Collection[str], arguments: Iterable[str], root: Path
) -> dict[str, float]:
    """What was measured, without the tests that have another name by now, or none.

    Args:
        seconds: what was measured, by the names of tests.
        collected: the names of all tests of this run.
        arguments: what pytest was given, with ``::`` where it is only a part of a file.
        root: the directory of the files.
    """
    whole = {_file(name) for name in collected} - {_file(argument) for argument in arguments if "::" in argument}
    return {
        name: took
        for name, took in seconds.items()
        if name in collected or (_file(name) not in whole and (root / _file(name)).exists())
    }


def _file(name: str) -> str:
    return name.partition("::")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what was collected; pytest does so itself without the option, and where tests could not be collected."""
    if not session.config.getoption("--workers") or session.config.option.collectonly or session.testsfailed:
        return None
    run = Run(session)
    session.config.pluginmanager.register(run)
    run.all_tests(session.config.getoption("--workers"))
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


@dataclass(eq=False)
class Worker:
    """A process that runs tests, as the one that forked it sees it."""

    process: int
    running: range = range(0)
    """The test that it has begun, and those behind it in its share."""


@dataclass(eq=False)
class Run:
    """A run of the tests of a session."""

    session: pytest.Session
    _crew: dict[Link, Worker] = field(default_factory=dict)
    _reports: dict[int, list[pytest.TestReport]] = field(default_factory=dict)
    """Of each test that has not ended or failed."""
    _seconds: dict[str, float] = field(default_factory=dict)
    _flaky: list[pytest.TestReport] = field(default_factory=list)

    def all_tests(self, workers: int) -> None:
        """Run all, and once more what fails."""
        gc.freeze()  # first: what follows has the collector go through all that it knows, twice, which takes seconds
        if any(hasattr(getattr(item, "obj", None), EXAMPLES) for item in self.session.items):
            _read_constants()
        assert threading.active_count() == 1, "A process with threads cannot be forked."
        gc.freeze()
        gc.enable()
        queue = self._queue()
        servers = ExitStack()
        try:
            if any("postgres_url" in getattr(item, "fixturenames", ()) for item in self.session.items):
                from tests.kit.databases import URL, postgres_server  # imported here: few runs of tests have databases

                os.environ[URL] = servers.enter_context(postgres_server())  # one for all processes
            for _ in range(workers):
                self._fork(_taken(queue))
            self._listen(queue)
            self._once_more()
        finally:
            for worker in self._crew.values():
                os.kill(worker.process, signal.SIGINT)
                os.waitpid(worker.process, 0)
            os.close(queue)
            servers.close()
        if cache := self.session.config.cache:
            config = self.session.config
            known = still_there(cache.get(MEASURED, {}), config.stash[_COLLECTED], config.args, config.rootpath)
            cache.set(MEASURED, {**known, **self._seconds})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the flaky tests."""
        for report in self._flaky:
            terminalreporter.section(f"flaky: {report.nodeid}")
            terminalreporter.write_line(report.longreprtext)
            terminalreporter.write_line("It failed, and passed when it ran alone. That is a defect: mend it first.")

    def _queue(self) -> int:
        """A pipe that holds the shares of the list of tests."""
        items = self.session.items
        known = self.session.config.cache.get(MEASURED, {}) if self.session.config.cache else {}
        seconds = [known.get(item.nodeid, UNKNOWN[marked(item)]) for item in items]
        whole = {item.location[0] for item in items if _shares_a_fixture(item)}
        packed = b"".join(
            _RANGE.pack(share.start, share.stop)
            for share in shares([item.location[0] for item in items], seconds, whole)
        )
        reading, writing = os.pipe()
        assert len(packed) <= 65536, "So many shares do not fit into a pipe."
        os.write(writing, packed)
        os.close(writing)
        return reading

    def _fork(self, jobs: Iterable[range]) -> None:
        ours, theirs = multiprocessing.Pipe()
        if process := os.fork():
            theirs.close()
            self._crew[ours] = Worker(process)
            return
        for link in (ours, *self._crew):
            link.close()
        _work(self.session, jobs, theirs)

    def _listen(self, queue: int | None = None) -> None:
        """Hear what the workers tell until all have ended."""
        while self._crew:
            for link in cast(list[Connection], wait(list(self._crew))):
                try:
                    message = link.recv()
                except (EOFError, ConnectionResetError):
                    self._ended(self._crew.pop(link), queue)
                    continue
                if isinstance(message, range):
                    self._crew[link].running = message
                else:
                    self._heard(self._crew[link].running.start, message)

    def _heard(self, index: int, report: dict[str, Any]) -> None:
        """Keep a report; log those of a test that has passed."""
        config = self.session.config
        reports = self._reports.setdefault(index, [])
        reports.append(config.hook.pytest_report_from_serializable(config=config, data=report))
        self._seconds[reports[0].nodeid] = sum(report.duration for report in reports)
        stops = bool(config.option.maxfail)
        if reports[-1].when == "teardown" and (stops or not any(report.failed for report in reports)):
            self._log(index)

    def _log(self, index: int) -> None:
        for report in (reports := self._reports.pop(index)):
            self.session.ihook.pytest_runtest_logreport(report=report)
        self.session.ihook.pytest_runtest_logfinish(nodeid=reports[0].nodeid, location=reports[0].location)
        if self.session.shouldfail:
            for link in self._crew:
                with contextlib.suppress(OSError):  # it has ended
                    link.send("stop")

    def _ended(self, worker: Worker, queue: int | None) -> None:
        """Where a worker has crashed, its test has failed, and another one goes on."""
        _, status = os.waitpid(worker.process, 0)
        if not status:
            return
        item = self.session.items[worker.running.start]
        how = f"The process that ran this test ended with {os.waitstatus_to_exitcode(status)}."
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", how, "call")
        self._reports.setdefault(worker.running.start, []).append(report)
        if queue is not None and not self.session.shouldfail:
            self._fork(chain([worker.running[1:]], _taken(queue)))

    def _once_more(self) -> None:
        """Run what failed again, each test alone, and log how it ended."""
        failed, self._reports = self._reports, {}
        chance = len(failed) <= AT_MOST and not self.session.shouldfail
        for index, reports in failed.items():
            if chance:
                self._fork([range(index, index + 1)])
                self._listen()
            again = self._reports.pop(index, None)
            if chance and not again:
                self._flaky += [report for report in reports if report.failed]
            if again or not chance or self.session.config.getoption("--tier") == "thorough":
                self._reports[index] = reports
                self._log(index)


def _read_constants() -> None:
    """Have Hypothesis look for constants in every module here, which takes seconds, and not in each process."""
    given(integers())(lambda _: None)()


def _taken(queue: int) -> Iterator[range]:
    """Take shares from the queue until it is empty; one call reads one whole share."""
    while share := os.read(queue, _RANGE.size):
        yield range(*_RANGE.unpack(share))


def _shares_a_fixture(item: pytest.Item) -> bool:
    fixtures = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
    return any(fixture.scope == "module" for name_of in fixtures for fixture in name_of)


@dataclass(eq=False)
class Sender:
    """What a worker sends of its tests."""

    config: pytest.Config
    link: Link

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        self.link.send(self.config.hook.pytest_report_to_serializable(config=self.config, report=report))


def _work(session: pytest.Session, jobs: Iterable[range], link: Link) -> NoReturn:
    """Be a worker: run shares of the tests, tell, and end."""
    status = 1
    try:
        _alone(session.config)
        session.config.pluginmanager.register(Sender(session.config, link))
        for share in jobs:
            for index in share:
                link.send(range(index, share.stop))
                # Behind its share's last test a worker keeps what belongs to the session.
                following = session.items[index + 1] if index + 1 < share.stop else session
                session.config.hook.pytest_runtest_protocol(item=session.items[index], nextitem=following)
                if session.shouldfail or link.poll():
                    break
        session._setupstate.teardown_exact(None)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _alone(config: pytest.Config) -> None:
    """Share no file with the other processes, and print nothing."""
    if capture := config.pluginmanager.getplugin("capturemanager"):
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    writer = config.get_terminal_writer()
    writer._file = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    config.pluginmanager.unregister(name="terminalreporter")  # the process that forked this one reports
    config.pluginmanager.register(Silent(writer), "terminalreporter")


@dataclass(eq=False)
class Silent:
    """What plugins that print find in place of the reporter."""

    _tw: TerminalWriter
