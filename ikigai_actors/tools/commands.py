"""Commands that run to their end: with a text as their input, and with what they print as the result."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ikigai_actors.tools.process import ChildProcess

if TYPE_CHECKING:
    from ikigai_actors.tools.fence.launch import FencedStart

MOST_OUTPUT = 2**16
"""The most bytes that such a command may print."""


async def run_command(
    bash: str,
    command: str,
    text: str,
    *,
    directory: Path,
    environment: Mapping[str, str],
    fence: "FencedStart | None" = None,
) -> tuple[int, str, str]:
    """Run a command until its end. What it has started ends with it, also where this is cancelled.

    Args:
        bash: the path of bash.
        command: the command, for bash.
        text: its standard input.
        directory: its working directory.
        environment: its variables; ``CLAUDE_PROJECT_DIR`` is added, with the directory.
        fence: starts it behind a fence; None for none.

    Returns:
        Its exit code, its output and its standard error.

    Raises:
        OSError: it cannot be started.
        RuntimeError: it prints too much.
    """
    variables = {**environment, "CLAUDE_PROJECT_DIR": str(directory)}
    where = directory if fence is None else None
    with tempfile.TemporaryFile() as errors:
        process = await ChildProcess().spawn(
            [bash, "-c", command], environment=variables, stderr=errors.fileno(),
            directory=where, guard=bash, fence=fence,
        )  # fmt: skip
        try:
            assert process.stdin is not None
            process.stdin.write(text.encode(errors="replace"))
            process.stdin.close()
            output = b""
            while piece := await process.stdout.read(MOST_OUTPUT):
                output += piece
                if len(output) > MOST_OUTPUT:
                    raise RuntimeError(f"it printed more than {MOST_OUTPUT:,} bytes")
            await process.ended(None)
        finally:
            if process.exit_code is None:
                process.kill()
            await process.reap()
        errors.seek(0)
        wrote = errors.read(MOST_OUTPUT).decode(errors="replace")
    return process.exit_code or 0, output.decode(errors="replace"), wrote
