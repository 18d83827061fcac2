"""The conformance suite of MCP, against a door that has what it calls."""

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit.mcp_conformance import conformance_door
from tests.kit.npm import installed

MISSING = {
    "logging-set-level", "tools-call-with-logging", "completion-complete", "tools-call-sampling",
    "tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums",
    "resources-subscribe", "resources-unsubscribe",
}  # fmt: skip
"""The scenarios about what a door does not declare: logs, completion, questions to the client, and subscriptions."""


def node() -> str:
    """A node that the suite runs on."""
    program = shutil.which("node")
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout if program else "v0"
    if program is None or int(said[1:].partition(".")[0]) < 22:
        pytest.skip("the suite needs node 22")
    return program


@pytest.mark.thorough("installs a package of npm with many others, and runs 32 scenarios")
def test_a_door_passes_the_conformance_suite(request: pytest.FixtureRequest) -> None:
    program, cache = node(), request.config.cache
    assert cache is not None
    home = installed("@modelcontextprotocol/conformance@0.1.16", cache)
    script = home / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

    async def run() -> str:
        async with conformance_door() as url:
            command = [program, str(script), "server", "--suite", "all", "--url", url]
            process = await asyncio.create_subprocess_exec(
                *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=Path(home)
            )
            output, _ = await asyncio.wait_for(process.communicate(), 120)
            return output.decode()

    output = asyncio.run(run())
    passed, failed = (set(re.findall(rf"^{sign} ([\w-]+):", output, re.MULTILINE)) for sign in "✓✗")
    assert (len(passed), failed) == (23, MISSING), output[-3000:]
