"""The verbs of handles as acts of a program, killed at commits: each is done once, whatever dies when."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import open_store
from tests.conftest import NewDatabase
from tests.kit.program import completed
from tests.kit.programs import each_commit
from tests.kit.zygote import PYTHON

KILLED = """
import json, os, sys
from ikigai_actors import ActorSystem, Reply, ScriptedProvider, current_agent
from ikigai_actors.errors import StepFailed
from ikigai_actors.events import Instrument
from ikigai_actors.programs import program, step

def said(request):
    return Reply("said")

def grandchild(kid):
    child = current_agent().system.agent(kid).fork(name="grandkid", model="worker", system="Be brief.", key="grandkid")
    child.prompt("Say more.", key="more").get()
    return child.uuid

@program
def lead(task):
    me = current_agent()
    kid, doomed = me.fork(name="kid", model="worker"), me.fork(name="doomed", model="worker")
    kid.prompt("Say it.").get()
    gave = [
        me.send(kid, "a mail"),
        me.send(kid, "later", after=3600),
        me.remind("look", every="0 2 * * *"),
        kid.remind("rise", after=3600, prompt=True),
        me.system.documents.write("plan.md", "Sail."),
        me.grant(tokens=5).granted["tokens"],
        me.merge(kid).text,
    ]
    kid.prompt("Say it again.").get()
    gave.append(me.merge(kid, how="summary").text)
    grandkid = step(grandchild, kid.uuid, idempotent=True)
    gave += [kid.merge(grandkid).text, len(doomed.kill(reason="done"))]
    try:
        doomed.kill()
    except StepFailed as error:
        gave.append("is dead" in str(error))
    return json.dumps(gave)

class Kill(Instrument):
    left = int(sys.argv[2])
    def commit_begins(self, agent):
        Kill.left -= 1
        if Kill.left == 0:
            os.kill(os.getpid(), 9)

with ActorSystem.open(sys.argv[1], providers={"worker": ScriptedProvider(said)}, programs=[lead],
                      provider="offline", instruments=[Kill()]) as system:
    boss = system.root.fork(name="boss", model=lead, key="boss", budget={"tokens": 1_000_000})
    gave = json.loads(boss.prompt("Go", key="monday").get(timeout=60).text)
    kid, log = system.agent("kid"), system.documents.log("plan.md")
    print(json.dumps({
        "gave": gave,
        "prompts": [message.content for message in kid.history() if message.kind == "user"],
        "mails": [mail.body for mail in kid.mails() if mail.kind == "mail"],
        "timers": sorted(timer.body for timer in (*kid.timers(), *boss.timers())),
        "versions": [(version.version, version.author == boss.uuid) for version in log],
        "granted": boss.budget.granted["tokens"],
        "merges": [[message.kind for message in each.history()].count("merge") for each in (boss, kid)],
        "children": sorted(child.name for child in boss.children()),
    }))
"""

DONE = {
    "gave": [2, 1, 1, 2, 1, 1_000_005, "said", "said", "said", 1, True],
    "prompts": ["Say it.", "Say it again."],
    "mails": ["a mail"],
    "timers": ["later", "look", "rise"],
    "versions": [[1, True]],
    "granted": 1_000_005,
    "merges": [2, 1],
    "children": ["kid"],
}
"""The answer of the program, and what it leaves."""

MOST = 65
"""Commits, of which the run without kills has fewer."""


@pytest.mark.thorough("a second program that is killed; every run has one in test_programs.py")
@pytest.mark.slow("starts three programs for each kill")
@each_commit(22)
def test_the_verbs_of_a_program_that_is_killed_at_a_commit_are_done_once(
    durable_url: NewDatabase, tmp_path: Path, step: int
) -> None:
    (tmp_path / "team.py").write_text(KILLED)
    for commit in range(5, MOST, step):
        database = durable_url()
        for left in (commit, 4):  # the second process is killed soon after it goes on
            killed = completed([*PYTHON, "team.py", database, str(left)], cwd=tmp_path)
            assert killed.returncode in (-9, 0), killed.stderr
        ended = completed([*PYTHON, "team.py", database, "0"], cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout) == DONE
        with closing(open_store(database)) as store:
            assert check(store) == []
