"""Workspaces that fork with their agent, in a system, with real mounts and shells."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, Reply, Request, ScriptedProvider, ToolCall, Workspace
from ikigai_actors.errors import FilesConflict, NotBelow
from ikigai_actors.records.fsck.check import check
from ikigai_actors.tools.fence.policy import Fence
from ikigai_actors.tools.fence.tiers import TIER_VARIABLE
from ikigai_actors.tools.trees.places import MOUNTED, TreePlaces
from ikigai_actors.verbs.upkeep.prune import prune_database as prune
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.fences import enclosed, escaped, needs, run_in, scene
from tests.kit.file_trees import OneTree, put
from tests.kit.zygote import PYTHON, popen

pytestmark = pytest.mark.slow("mounts directories and starts shells")

Call = tuple[str, Mapping[str, object]]


def scripted(request: Request) -> Reply | str:
    """Make the calls that the latest prompt lists; then say that it is done."""
    last = request.messages[-1]
    for block in reversed(last["content"]) if isinstance(last["content"], list) else [{"text": last["content"]}]:
        if str(block.get("text", "")).startswith("[["):
            return Reply(tool_calls=tuple(ToolCall(name, arguments) for name, arguments in json.loads(block["text"])))
    return "done"


def do(agent: AgentRef, *calls: Call) -> list[str]:
    """What calls of one reply give, as they end: calls that only read run at once."""
    agent.prompt(json.dumps(calls)).get(timeout=DEADLINE)
    answered = [message.content for message in agent.history() if message.kind == "tool_result"]
    return answered[-len(calls) :]


def bash(agent: AgentRef, command: str) -> str:
    """What a command prints, without news of its shell."""
    [text] = do(agent, ("bash", {"command": command}))
    return "\n".join(line for line in text.splitlines() if not line.startswith("[new shell"))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    needs("required")
    monkeypatch.setenv("IKIGAI_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / "d").mkdir(parents=True)
    (work / "a").write_text("a\n")
    (work / "d" / "old").write_text("old\n")
    return work


@contextmanager
def opened(work: Path, on_fork: str = "overlay") -> Iterator[ActorSystem]:
    tools = [Workspace(work, fence="required", on_fork=on_fork)]
    with ActorSystem.open(work.parent / "d.db", ScriptedProvider(scripted), tools=tools, approvals="allow") as system:
        yield system
        assert check(system._store) == []


def files(directory: Path) -> dict[str, str]:
    return {str(place.relative_to(directory)): place.read_text() for place in directory.rglob("*") if place.is_file()}


def test_parent_and_child_do_not_see_what_the_other_changes_and_the_directory_stays_as_it_is(work: Path) -> None:
    before = files(work)
    with opened(work) as system:
        root = system.root
        assert bash(root, "echo early > early; cat a") == "a"
        before = {**before, "early": "early\n"}
        kid = root.fork(name="kid")
        assert bash(kid, "ls; echo kid >> a; rm d/old; mkdir d/new; echo x > d/new/x") == "a\nd\nearly"
        assert bash(root, "cat a d/old; ls d; echo root > mine; echo root >> a") == "a\nold\nold"
        assert bash(kid, "cat a; ls -A . d") == "a\nkid\n.:\na\nd\nearly\n\nd:\nnew"
        grandchild = kid.fork(name="grandchild")
        assert bash(kid, "echo later >> a") == ""
        assert do(grandchild, ("read", {"file_path": "a"})) == ["a\nkid\n"]  # its first call, which needs no shell
        assert bash(grandchild, "cat a; rm -r d; mkdir d; ls d") == "a\nkid"
        assert bash(kid, "cat a; ls d") == "a\nkid\nlater\nnew"
        assert files(work) == before


@pytest.mark.thorough("a second play of layers")
@pytest.mark.parametrize("on_fork", ["overlay", "worktree"])
def test_what_only_a_pattern_allows_sees_the_files_and_jobs_of_its_agent_and_no_function(
    work: Path, on_fork: str
) -> None:
    if on_fork == "worktree":
        subprocess.run(["git", "init", "-q", work], check=True)
    tools, rules = [Workspace(work, fence="required", on_fork=on_fork)], [("allow", "bash", "cat *")]
    script = ScriptedProvider(scripted)
    with ActorSystem.open(work.parent / "d.db", script, tools=tools, approvals=lambda _: True, rules=rules) as system:
        kid = system.root.fork(name="kid")
        assert bash(kid, "cat() { echo EVIL; }; echo mine >> a; sleep 100 & echo $! > /tmp/job; cd d; cat x") == "EVIL"
        for _ in range(2):
            *_, text = bash(kid, "cat ../a").splitlines()
            assert text == "mine"
        job = bash(kid, "cat /tmp/job").splitlines()[-1]
        assert "sleep" in bash(kid, f"cat /proc/{job}/cmdline")
        assert bash(system.root, "cat a") == "a"
        kid.fork(
            name="grandchild"
        )  # with layers, the files of kid are in another one from now on, and its shell is new
        assert bash(kid, "echo more >> ../a; command cat ../a") == "a\nmine\nmore"
        assert bash(kid, "cat ../a").splitlines()[-1] == "more"
    assert (work / "a").read_text() == "a\n"


@pytest.mark.thorough("another way to read what a shell sees")
def test_the_file_tools_see_what_the_shell_of_their_agent_sees(work: Path) -> None:
    with opened(work) as system:
        kid = system.root.fork(name="kid")
        bash(kid, "echo kid >> a")
        assert do(kid, ("read", {"file_path": "a"})) == ["a\nkid\n"]
        assert [system._text_of(agent.uuid, f"{work}/a") for agent in (kid, system.root)] == ["a\nkid\n", "a\n"]
        assert do(kid, ("write", {"file_path": f"{work}/new/b", "content": "hello\n"})) == [
            f"wrote 6 bytes to {work}/new/b"
        ]
        do(kid, ("edit", {"file_path": "d/old", "old_string": "old", "new_string": "young"}))
        assert bash(kid, "cat new/b d/old") == "hello\nyoung"
        assert sorted(do(kid, ("glob", {"pattern": "**/*"}))[0].splitlines()) == [
            f"{work}/{name}" for name in ("a", "d", "d/old", "new", "new/b")
        ]
        assert do(kid, ("grep", {"pattern": "hello|kid|young", "path": "new"})) == [f"{work}/new/b:1:hello\n"]
        assert sorted(do(kid, ("grep", {"pattern": "hello|kid"}))[0].splitlines()) == [
            f"{work}/a:2:kid", f"{work}/new/b:1:hello",
        ]  # fmt: skip
        [outside] = do(kid, ("read", {"file_path": "../d.db"}))
        assert "outside of the workspace" in outside
        bash(kid, "ln -s / way; mkdir -p .git/hooks; echo '[core]' > .git/config")
        assert "outside of the workspace" in do(kid, ("read", {"file_path": "way/etc/hosts"}))[0]
        assert [system._text_of(kid.uuid, path) for path in ("way/etc/hosts", "../d.db", "none", "d")] == [None] * 4
        assert "is protected" in do(kid, ("write", {"file_path": ".git/config", "content": ""}))[0]
        assert files(work) == {"a": "a\n", "d/old": "old\n"}


def test_a_rule_for_a_path_holds_where_a_link_of_the_agents_own_leads_there(work: Path) -> None:
    with opened(work) as system:
        kid = system.root.fork()
        bash(kid, "ln -s d way")
        system.root.set_rule("deny", "read", "d/**")
        for path in ("d/old", "way/old"):
            assert "denies this call" in do(kid, ("read", {"file_path": path}))[0]
        assert do(kid, ("read", {"file_path": "a"})) == ["a\n"]


@pytest.mark.thorough("another look at a shell after a fork")
def test_a_shell_goes_on_in_its_directory_with_its_variables_after_a_fork(work: Path) -> None:
    with opened(work) as system:
        root = system.root
        assert do(root, ("bash", {"command": "cd d; export tea='green tea' lost; cup=1; sleep 300 &"})) == [
            f"[new shell in {work}]"
        ]
        root.fork()
        assert do(root, ("bash", {"command": 'pwd; echo "$tea, $cup"; jobs'})) == [
            (
                f"[new shell in {work}; your files have forked, so background jobs were ended; directory and exported "
                f"variables are as before]\n{work}/d\ngreen tea, "
            )
        ]


@pytest.mark.thorough("another moment of a fork")
def test_a_command_that_runs_while_its_agent_forks_counts_as_one_before_the_fork(work: Path) -> None:
    with opened(work) as system:
        do(
            system.root,
            ("bash", {"command": "sleep 0.2; echo whole > slow"}),
            ("fork", {"name": "kid", "prompt": "wait"}),
        )
        kid = system.agent("kid")
        assert bash(kid, "cat slow") == "whole"


def test_a_merge_brings_all_that_a_child_has_changed_and_then_what_is_new(work: Path) -> None:
    with opened(work) as system:
        root = system.root
        kid = root.fork(name="kid")
        bash(kid, "echo kid >> a; rm -r d; mkdir d; echo n > d/new; ln -s a way; chmod 755 a")
        bash(root, "echo root > mine")
        assert root.merge_files(kid) == ["a", "d/new", "d/old", "way"]
        assert bash(root, "cat a mine; ls d; readlink way; stat -c %a a") == "a\nkid\nroot\nnew\na\n755"
        assert root.merge_files(kid) == []
        assert bash(kid, "ls; echo more >> a") == "a\nd\nway"
        bash(root, "echo root >> mine")
        assert root.merge_files("kid") == ["a"]
        assert do(root, ("read", {"file_path": "a"})) == ["a\nkid\nmore\n"]
        grandchild = kid.fork(name="grandchild")
        bash(grandchild, "echo g > g; rm way")
        bash(kid, "echo later > later")
        assert root.merge_files(grandchild) == ["g", "way"]
        assert bash(root, "ls; cat g") == "a\nd\ng\nmine\ng"
        assert root.merge_files(kid) == ["later"]
        with pytest.raises(NotBelow, match="Merge them above"):
            kid.merge_files(root)


@pytest.mark.thorough("programs of git; a merge of files, and commits of worktrees, are in every run")
def test_commits_of_a_child_come_as_a_branch_and_git_goes_on_in_both(work: Path) -> None:
    git = "git -c user.name=a -c user.email=b"
    with opened(work) as system:
        root = system.root
        bash(root, f"git init -q; git add .; {git} commit -qm first; git gc -q")
        kid = root.fork()
        bash(kid, f"echo kid >> a; {git} commit -qam second; echo more > new; git status")
        bash(root, "echo root > mine; git add mine; git status")
        branch = f".git/refs/heads/ikigai/{kid.uuid[:8]}"
        assert root.merge_files(kid) == ["a", "new", branch]
        assert bash(root, f"git log --format=%s ikigai/{kid.uuid[:8]}; git log --format=%s; git status --short") == (
            "second\nfirst\nfirst\n M a\nA  mine\n?? new"
        )
        assert bash(root, f"git stash -qu && git merge -q ikigai/{kid.uuid[:8]}; cat a; git fsck --strict") == "a\nkid"
        assert root.merge_files(kid) == []
        bash(kid, "git reset -q --hard HEAD~1")
        assert system.agents()
    assert (work / ".git" / "index").exists()


@pytest.mark.thorough("a second conflict; every run has that of worktrees")
def test_a_conflict_changes_nothing_and_names_the_files(work: Path) -> None:
    with opened(work) as system:
        root = system.root
        kid = root.fork()
        bash(kid, "echo kid >> a; echo x > new")
        bash(root, "echo root >> a")
        with pytest.raises(FilesConflict, match="both agents have changed the same files: a\\.") as caught:
            root.merge_files(kid)
        assert caught.value.paths == ("a",)
        assert bash(root, "cat a; ls") == "a\nroot\na\nd"
        bash(root, "echo a > a")
        assert root.merge_files(kid) == ["a", "new"]
        assert bash(root, "cat a new") == "a\nkid\nx"


@pytest.mark.thorough("a second merge")
def test_what_an_agent_has_changed_goes_into_the_directory_unless_somebody_changed_it_there(work: Path) -> None:
    with opened(work) as system:
        root = system.root
        root.fork()
        bash(root, "echo root >> a; rm d/old; rmdir d; echo x > new")
        (work / "new").write_text("mine")
        with pytest.raises(FilesConflict, match="somebody has, in the directory, changed the same files: new"):
            root.merge_files()
        assert files(work) == {"a": "a\n", "d/old": "old\n", "new": "mine"}
        (work / "new").unlink()
        assert root.merge_files() == ["a", "d", "d/old", "new"]
        assert files(work) == {"a": "a\nroot\n", "new": "x\n"}
        assert not (work / "d").exists()
        assert root.merge_files() == []
        bash(root, "echo again >> a")
        assert root.merge_files() == ["a"]
        assert files(work) == {"a": "a\nroot\nagain\n", "new": "x\n"}


@pytest.mark.thorough("four agents with layers; a fork, a merge and a kill are in every run")
def test_layers_go_with_the_agents_that_are_pruned(work: Path) -> None:
    with opened(work) as system:
        kid, other = system.root.fork(), system.root.fork()
        grandchild = kid.fork()
        for agent in (kid, grandchild, other):
            bash(agent, "echo x >> a")
        system.root.merge_files(kid)
        grandchild.kill()
        kid.kill()
        gone = [kid.uuid, grandchild.uuid]
    trees = work.parent / "home" / "trees"
    assert all((trees / uuid).is_dir() for uuid in gone)
    prune(str(work.parent / "d.db"), "0s", dry_run=False, vacuum=False)
    assert not any((trees / uuid).exists() for uuid in gone)
    with opened(work) as system:
        assert bash(system.root, "cat a") == "a\nx"
        assert bash(system.handle(other.uuid), "cat a") == "a\nx"


@pytest.mark.thorough("many layers; a fork after a change is in every run")
def test_an_agent_may_fork_however_often_it_has_changed_files_between(work: Path) -> None:
    with opened(work) as system:
        layers = work.parent / "home" / "trees" / system.root.uuid
        for number in range(2 * MOUNTED + 2):
            system.root.fork()
            (layers / str(number)).mkdir(parents=True)
            (layers / str(number) / f"f{number}").write_text(str(number))
            if number % 50 == 49:
                assert bash(system.root, "ls | grep -c f") == str(number + 1)
        assert bash(system.root, "cat f0 f1 f66 f129; rm f0; ls | wc -l") == f"0166129{2 * MOUNTED + 3}"
        assert len([place for place in layers.iterdir() if place.name.startswith("flat")]) == 1
        kid = system.root.fork()
        assert bash(kid, "test -e f0 || cat f1") == "1"
        assert not any(place.name.startswith("flat") for place in (layers.parent / kid.uuid).iterdir())


def test_an_agent_without_files_of_its_own_has_nothing_to_merge(work: Path) -> None:
    with opened(work, "share") as system:
        kid = system.root.fork()
        with pytest.raises(BadInput, match=r"works in .* itself"):
            system.root.merge_files(kid)
        bash(kid, "echo kid >> a")
        assert files(work)["a"] == "a\nkid\n"
    with ActorSystem.open(":memory:", ScriptedProvider([])) as system, pytest.raises(BadInput, match="no workspace"):
        system.root.merge_files()


@pytest.mark.thorough("two hosts one after the other; files after a kill are in every run")
def test_files_are_there_after_a_restart_also_where_children_share_from_now_on(work: Path) -> None:
    with opened(work) as system:
        kid = system.root.fork(name="kid")
        bash(kid, "echo kid >> a")
    with opened(work, "share") as system:
        kid = system.agent("kid")
        assert do(kid, ("read", {"file_path": "a"})) == ["a\nkid\n"]
        assert bash(kid, "cat a") == "a\nkid"


@pytest.mark.thorough("a machine of other rights")
def test_a_machine_that_cannot_mount_says_so_and_an_agent_with_files_of_its_own_touches_no_others(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(work) as system:
        kid = system.root.fork(name="kid")
        bash(kid, "echo kid >> a")
    for fence in ("none", "landlock"):
        with pytest.raises(BadInput, match="on_fork='overlay'"):
            ActorSystem.open(":memory:", ScriptedProvider([]), tools=[Workspace(work, fence=fence, on_fork="overlay")])
    tools = [Workspace(work, fence="landlock")]
    monkeypatch.setenv(TIER_VARIABLE, "landlock")
    with ActorSystem.open(work.parent / "d.db", ScriptedProvider(scripted), tools=tools, approvals="allow") as system:
        for call in (("bash", {"command": "cat a"}), ("read", {"file_path": "a"}), ("grep", {"pattern": "a"})):
            assert "only a fence with namespaces can mount" in do(system.agent("kid"), call)[0]
    (work.parent / "home" / "trees" / "machine").write_text("elsewhere-1")
    monkeypatch.delenv(TIER_VARIABLE)
    with opened(work) as system:
        for call in (("bash", {"command": "cat a"}), ("read", {"file_path": "a"})):
            assert "and this is elsewhere-1" in do(system.agent("kid"), call)[0]


@pytest.mark.thorough("attempts in layers; every run has those of a tier in test_fence_escapes.py")
def test_no_attempt_gets_out_of_a_fence_in_which_the_workspace_is_seen_through_layers(tmp_path: Path) -> None:
    trees = tmp_path / "outside" / "state" / "trees"
    with scene(tmp_path) as of, enclosed(of, Fence(mode="required", network="none")) as made:
        put(trees, {"machine": "here", "agent/0/frozen": "x"})
        places = TreePlaces(trees.parent, str(of.work.resolve()), OneTree(upper=1))
        stack = places.stack(places.rows("agent"))
        assert escaped(of, made, layered=(str(trees), stack.layers)) == set()
        before = files(of.work)
        assert run_in(of, ["bash", "-c", "cat frozen; rm frozen"], made, (str(trees), stack.layers)).stdout == "x"
        assert files(of.work) == before
        assert (trees / "agent" / "0" / "frozen").read_text() == "x"


HOST = """
import sys
from pathlib import Path
from ikigai_actors import ActorSystem, ScriptedProvider, Workspace
from tests.tools.test_forked_workspaces import do, scripted
work = Path(sys.argv[1])
tools = [Workspace(work, fence="required", on_fork="overlay")]
with ActorSystem.open(work.parent / "d.db", ScriptedProvider(scripted), tools=tools, approvals="allow") as system:
    kid = system.root.fork(name="kid")
    for agent in (system.root, kid):
        do(agent, ("bash", {"command": "(setsid sleep 300 &); touch held; for i in 1 2 3; do echo $i >> many; done"}))
    do(kid, ("read", {"file_path": "many"}))
    print("ready", flush=True)
    do(kid, ("bash", {"command": "while :; do echo x >> endless; done"}))
"""


def mounted(place: Path) -> list[str]:
    """The processes in whose namespaces a directory is mounted through layers."""
    mounts = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                lines = (process / "mounts").read_text().splitlines()
            except OSError:
                continue
            mounts += [process.name for line in lines if line.startswith(f"overlay {place} ")]
    return mounts


@pytest.mark.thorough("a host that is killed; every run has one in test_fenced_shells.py")
def test_a_killed_host_leaves_no_mount_and_no_process_and_the_files_are_there(work: Path) -> None:
    host = popen((*PYTHON, "-c", HOST, str(work)), cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    assert host.stdout.readline() == "ready\n"
    trees = work.parent / "home" / "trees"
    eventually(lambda: any(place.stat().st_size for place in trees.glob("*/*/endless")), "a command that writes")
    assert len(mounted(work)) >= 4
    os.kill(host.pid, signal.SIGKILL)
    host.wait()
    host.stdout.close()
    eventually(lambda: not mounted(work), "no mount, and so no process behind its fence")
    assert "many" not in files(work)
    with opened(work) as system:
        assert bash(system.agent("kid"), "cat many; test -s endless && echo there") == "1\n2\n3\nthere"
        assert bash(system.root, "cat many; ls") == "1\n2\n3\na\nd\nheld\nmany"


BUSY = """
import itertools, sys
from pathlib import Path
from ikigai_actors import ActorSystem, ScriptedProvider, Workspace
from tests.tools.test_forked_workspaces import do, scripted
work = Path(sys.argv[1])
tools = [Workspace(work, fence="required", on_fork=sys.argv[2])]
with ActorSystem.open(work.parent / "d.db", ScriptedProvider(scripted), tools=tools, approvals="allow") as system:
    for number in itertools.count():
        kid = system.root.fork(name=f"kid{number}")
        print("forked", number, flush=True)
        do(kid, ("write", {"file_path": f"f{number}", "content": str(number)}))
        print("wrote", number, flush=True)
        system.root.merge_files(kid)
        print("merged", number, flush=True)
"""


@pytest.mark.thorough("a kill at any moment")
@pytest.mark.sample(1, "two hosts for each moment of a kill")
@pytest.mark.parametrize("moment", range(24))
def test_what_was_acknowledged_of_files_survives_a_kill_at_any_moment(work: Path, moment: int) -> None:
    kind, lines = ("overlay", "worktree")[moment % 2], moment // 2 + 1
    if kind == "worktree":
        commit = "git init -q; git add -A; git -c user.name=a -c user.email=b commit -qm first"
        subprocess.run(["bash", "-c", commit], cwd=work, check=True)
    host = popen(
        (*PYTHON, "-c", BUSY, str(work), kind), cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    said = [host.stdout.readline().split() for _ in range(lines)]
    host.send_signal(signal.SIGKILL)
    said += [line.split() for line in host.stdout]  # what it said meanwhile
    host.wait()
    host.stdout.close()
    eventually(lambda: not mounted(work), "no mount")
    done = {word: [int(number) for what, number in said if what == word] for word in ("forked", "wrote", "merged")}
    with opened(work, kind) as system:
        for number in done["wrote"]:
            assert bash(system.agent(f"kid{number}"), f"cat f{number}") == str(number)
        for number in done["forked"]:
            system.root.merge_files(f"kid{number}")
        seen = bash(system.root, "cat f* 2> /dev/null; true")
        assert seen.startswith("".join(map(str, done["wrote"])))
