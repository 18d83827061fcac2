"""Lines on standard error, as text for people and as JSON for programs that collect them."""

import json
import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors.shell.cli import program_log
from tests.kit.program import Program, run


@pytest.fixture(autouse=True)
def of_one_test() -> Iterator[None]:
    """Leave the loggers as they were."""
    loggers = [logging.getLogger(name) for name in (None, "ikigai_actors", "mcp")]
    before = [(logger.handlers[:], logger.propagate) for logger in loggers]
    yield
    program_log.log_as(program_log.TEXT)
    for logger, (handlers, propagate) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_what_is_logged_is_a_line_of_json_with_its_traceback_and_so_is_what_other_libraries_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    program_log.log_in_lines()
    program_log.log_as(program_log.JSON)
    logging.getLogger("ikigai_actors.store").warning("a\nb %s \x1b", 5)
    logging.getLogger("ikigai_actors.store").info("not told")
    logging.getLogger("mcp.client").error("its result reports it")
    try:
        raise ValueError("planted")
    except ValueError:
        logging.getLogger("aiohttp.server").exception("Error handling request")
    program_log.log_as(program_log.TEXT)
    logging.getLogger("ikigai_actors.store").warning("as text")
    written = capsys.readouterr().err
    assert "\x1b" not in written
    *earlier, text = written.splitlines()
    first, second = lines("\n".join(earlier))
    assert (first["level"], first["logger"], first["message"]) == ("warning", "ikigai_actors.store", "a\nb 5 \x1b")
    assert first["time"].endswith("+00:00")
    assert (second["message"], second["error"].splitlines()[-1]) == ("Error handling request", "ValueError: planted")
    assert text == "ikigai: as text"
    program_log.log_as(program_log.JSON)
    program_log.announce("runs team.db", logging.INFO)
    [said] = lines(capsys.readouterr().err)
    assert (said["logger"], said["level"], said["message"]) == ("ikigai", "info", "runs team.db")


def test_a_host_and_an_error_of_a_command_say_json_where_that_is_asked_for(tmp_path: Path) -> None:
    database = str(tmp_path / "team.db")
    with Program.by_pipe("--database", database, "--model", "offline", "--log", "json", "host", notices=True) as host:
        line = json.loads(host.expect(r"\{.*runs .*\}\n").group())
        assert (line["logger"], line["message"].split()[0]) == ("ikigai", "runs")
        host.process.send_signal(signal.SIGTERM)
        assert host.process.wait(60) == 0
    refused = run("--database", database, "--log", "json", "log", "nobody")
    assert refused.returncode == 1
    [line] = lines(refused.stderr)
    assert (line["level"], "nobody" in line["message"]) == ("error", True)
