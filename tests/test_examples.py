"""The examples run, and do what they say."""

import subprocess
import sys
from pathlib import Path

from tests.program import PATIENCE, environment

ROOT = Path(__file__).parent.parent


def test_an_agent_that_stumbles_is_restarted_with_its_history_intact(tmp_path: Path) -> None:
    lines = "Our shop sells tea.\n/fork --name buyer\nNow stumble.\n/agents\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "examples/supervised.py", str(tmp_path / "tea.db")],
        input=lines, capture_output=True, text=True, timeout=PATIENCE, env=environment(), check=True, cwd=ROOT,
    )  # fmt: skip
    assert "(buyer crashes)\nPrompt 2; the first was “Our shop sells tea.”.\n" in done.stdout
    assert "2 running, 0 dead" in done.stdout
    assert done.stderr == ""
