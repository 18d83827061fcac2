"""The examples run, without a key."""

import re
import subprocess
import sys
from pathlib import Path

from ikigai_actors import ActorSystem
from tests.databases import ROOT
from tests.program import PATIENCE, environment

FAN_OUT = ROOT / "examples" / "fan_out.py"


def test_an_agent_forks_three_waits_for_all_and_reads_their_mail(durable: str) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from fan_out import ask; print(ask('Tea?', sys.argv[2]))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(FAN_OUT.parent), durable],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(),
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    forks, read = [line for line in done.stdout.splitlines() if line.startswith("fork gave")], done.stdout
    assert len(forks) == 3
    assert len(re.findall(r"^mail \d of |: mail \d of ", read, re.MULTILINE)) == 3
    assert "The view of a guest." in read
    with ActorSystem.open(durable, "offline") as system:
        chair = system.agent("chair")
        assert [child.name for child in chair.children()] == ["owner", "guest", "baker"]
        assert chair.check_mail().unread == 0
        [waited] = [one for one in chair.history() if one.kind == "tool_result" and one.data["name"] == "wait"]
        assert waited.content.count('"mail"') == 3


def test_an_agent_that_stumbles_is_restarted_with_its_history_intact(tmp_path: Path) -> None:
    lines = "Our shop sells tea.\n/fork --name buyer\nNow stumble.\n/agents\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "examples/supervised.py", str(tmp_path / "tea.db")],
        input=lines, capture_output=True, text=True, timeout=PATIENCE, env=environment(), check=True, cwd=ROOT,
    )  # fmt: skip
    assert "(buyer crashes)\nPrompt 2; the first was “Our shop sells tea.”.\n" in done.stdout
    assert "2 running, 0 dead" in done.stdout
    assert done.stderr == ""


def count_words(database: Path, *texts: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "error", "examples/worker.py", str(database), *texts],
        capture_output=True, text=True, timeout=PATIENCE, env=environment(), check=False, cwd=ROOT,
    )  # fmt: skip


def test_a_worker_comes_back_until_it_crashes_too_often(tmp_path: Path) -> None:
    first = count_words(tmp_path / "words.db", "tea and milk", "please crash")
    assert (first.returncode, first.stdout, first.stderr) == (0, "text 1: 3 word(s)\ntext 2: 2 word(s)\n", "")
    second = count_words(tmp_path / "words.db", "crash once more", "again", "crash three times")
    assert (second.returncode, second.stdout) == (1, "text 3: 3 word(s)\ntext 4: 1 word(s)\n")
    assert "is dead: gave up: ConnectionError: text 5 broke the counter" in second.stderr
