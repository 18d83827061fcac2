"""The example of a lead in Python, killed at commits: one answer, each effect once, agents and person asked once."""

import json
from contextlib import closing
from pathlib import Path
from random import Random
from subprocess import PIPE

import pytest

from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, ROOT
from tests.kit.program import completed, environment
from tests.kit.programs import cheaper
from tests.kit.zygote import PYTHON, popen
from tests.system.test_cut_off import said

KILLED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from night_review import review
from ikigai_actors.events import Instrument

class Kill(Instrument):
    left = int(sys.argv[3])
    def commit_begins(self, agent):
        Kill.left -= 1
        if Kill.left == 0:
            os.kill(os.getpid(), 9)

options = {"join": True, "name": sys.argv[4], "lease": 2} if len(sys.argv) > 4 else {}
print(review(sys.argv[2], "monday", lambda text: "y", instruments=[Kill()], **options))
"""

ANSWER = "3 reviews posted\n"
MOST = 34
"""Commits, of which the run without kills has fewer."""


def command(database: str, commit: int, *name: str) -> list[str]:
    """The example, killed at a commit; 0 for none."""
    return [*PYTHON, "killed.py", str(ROOT / "examples"), database, str(commit), *name]


def judge(database: str, where: Path) -> None:
    """See that all of it was done once."""
    [reviews] = json.loads((where / "board.json").read_text()).values()
    assert len(reviews) == 3
    with AttachedSystem.open(database) as system:
        kids = system.agent("lead").children()
        assert sorted(kid.name or "" for kid in kids) == ["security-monday", "speed-monday", "words-monday"]
        assert [said(kid) for kid in kids] == [["The change of monday"]] * 3
        assert [message.kind for message in system.agent("lead").history()].count("approval") == 1  # one question
    with closing(open_store(database)) as store:
        assert check(store) == []


@pytest.mark.thorough("a second program that is killed; every run has one in test_programs.py")
@pytest.mark.slow("starts a program for each kill")
@pytest.mark.timeout(600)
@cheaper("kills", 2, 50, "starts 50 programs")
def test_the_example_that_is_killed_at_commits_gives_one_answer_and_posts_once(tmp_path: Path, kills: int) -> None:
    chance, died, plays = Random(kills), 0, 0
    while died < kills:
        plays += 1
        place = tmp_path / str(plays)
        place.mkdir()
        (place / "killed.py").write_text(KILLED)
        while (done := completed(command("team.db", 1 + chance.randrange(MOST)), cwd=place)).returncode == -9:
            died += 1
        assert (done.returncode, done.stderr, done.stdout) == (0, "", ANSWER)
        judge(str(place / "team.db"), place)


@pytest.mark.thorough("two hosts as processes, one of which is killed")
@pytest.mark.parametrize("round_", range(10))
def test_the_example_on_two_hosts_of_which_one_is_killed_gives_one_answer_to_both(
    new_postgres: NewDatabase, tmp_path: Path, round_: int
) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    url, chance = new_postgres(), Random(round_)
    begun = command(url, 1 + chance.randrange(MOST), "a")
    with popen(begun, stdout=PIPE, stderr=PIPE, env=environment(), cwd=tmp_path) as killed:
        other = completed(command(url, 0, "b"), cwd=tmp_path)
        output, complained = killed.communicate(timeout=DEADLINE)
    assert (other.returncode, other.stdout) == (0, ANSWER), other.stderr
    assert killed.returncode == -9 or output.decode() == ANSWER, complained
    assert completed(command(url, 0, "a"), cwd=tmp_path).stdout == ANSWER
    judge(url, tmp_path)
