"""Workspaces whose agents fork into worktrees of git, in a system, with real shells and a real git."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput, ScriptedProvider, Workspace
from ikigai_actors.errors import FilesConflict
from ikigai_actors.records.fsck.check import check
from ikigai_actors.verbs.upkeep.prune import prune_database as prune
from tests.kit.fences import needs
from tests.tools.test_forked_workspaces import bash, do, scripted

pytestmark = pytest.mark.slow("starts shells and git")


AUTHOR = "-c user.name=k -c user.email=k@x"


def git(work: Path, *words: str) -> str:
    """What git says on the host."""
    own = ("-c", "user.name=p", "-c", "user.email=p@x", "-C", str(work))
    return subprocess.run(["git", *own, *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    needs("required")
    monkeypatch.setenv("IKIGAI_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / "d").mkdir(parents=True)
    (work / "a").write_text("a\n")
    (work / "d" / "old").write_text("old\n")
    (work / ".gitignore").write_text("cache\n")
    git(work, "init", "-q", "-b", "main")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    return work


@contextmanager
def opened(work: Path) -> Iterator[ActorSystem]:
    tools = [Workspace(work, fence="required", on_fork="worktree")]
    with ActorSystem.open(work.parent / "d.db", ScriptedProvider(scripted), tools=tools, approvals="allow") as system:
        yield system
        assert check(system._store) == []


def test_a_child_works_on_a_branch_of_its_own_and_begins_with_what_its_parent_had_not_committed(work: Path) -> None:
    with opened(work) as system:
        root = system.root
        bash(root, "echo more >> a; echo new > new; echo x > cache; rm d/old")
        kid = root.fork(name="kid")
        assert bash(root, "echo later >> a; pwd; ls") == f"{work}\na\ncache\nd\nnew"
        branch = f"ikigai/{kid.uuid[:8]}"
        assert bash(kid, "pwd; cat a; ls; git branch --show-current; git status --short") == (
            f"{work}\na\nmore\na\nnew\n{branch}"
        )
        assert do(kid, ("read", {"file_path": f"{work}/a"})) == ["a\nmore\n"]
        do(kid, ("write", {"file_path": "mine", "content": "kid\n"}))
        assert sorted(do(kid, ("grep", {"pattern": "kid|more"}))[0].splitlines()) == [
            f"{work}/a:2:more", f"{work}/mine:1:kid",
        ]  # fmt: skip
        assert not (work / "mine").exists()
        grandchild = kid.fork()
        assert (
            bash(grandchild, "cat mine; git log --format=%s -2")
            == "kid\nKeep what was not committed\nKeep what was not committed"
        )
        assert (work / "a").read_text() == "a\nmore\nlater\n"
        assert git(work, "status", "--short") == "M a\n D d/old\n?? new"
        assert git(work, "branch", "--show-current") == "main"


@pytest.mark.thorough("a second play of git; every run has a fork, a conflict and what an agent may not do")
def test_a_merge_brings_commits_and_what_is_not_committed_and_a_conflict_changes_nothing(work: Path) -> None:
    with opened(work) as system:
        root = system.root
        kid = root.fork(name="kid")
        assert root.merge_files(kid) == []
        bash(kid, "echo kid >> a; git -c user.name=k -c user.email=k@x commit -qam second; echo x > new; rm d/old")
        bash(root, "echo root > mine")
        assert root.merge_files(kid, how="branch") == ["a", "d/old", "new"]
        assert bash(root, "cat a new; ls; git status --short; git log --merges --format=%s") == (
            f"a\nkid\nx\na\nmine\nnew\n?? mine\nMerge branch 'ikigai/{kid.uuid[:8]}'"
        )
        assert root.merge_files(kid) == []
        bash(kid, "echo more >> a; echo both > both")
        bash(root, "echo other > both; git add both; git -c user.name=r -c user.email=r@x commit -qm both")
        with pytest.raises(FilesConflict, match="both agents have changed the same files: both") as caught:
            root.merge_files(kid)
        assert caught.value.paths == ("both",)
        assert bash(root, "cat both a; git status --short") == "other\na\nkid\n?? mine"
        bash(kid, "rm both")
        bash(root, "echo mine >> a")
        with pytest.raises(FilesConflict, match=r"not committed: a\. Commit them here") as caught:
            root.merge_files(kid)
        assert caught.value.paths == ("a",)
        assert bash(root, "git checkout -q a; cat a") == "a\nkid"
        assert root.merge_files(kid) == ["a"]
        with pytest.raises(BadInput, match="how='branch'"):
            root.merge_files(kid, how="apply")
        assert kid.merge_files() == []
        bash(kid, "echo last > last")
        assert kid.merge_files() == ["last"]
        assert (work / "last").read_text() == "last\n"


@pytest.mark.thorough("a second play of git; every run has a fork, a conflict and what an agent may not do")
def test_what_nobody_has_changed_since_the_fork_is_no_conflict(work: Path) -> None:
    with opened(work) as system:
        root = system.root
        bash(root, "echo u > notes; echo edit >> a; rm d/old; echo s > staged; git add staged")
        kid = root.fork(name="kid")
        bash(kid, "cat notes; echo new > new")
        assert root.merge_files(kid) == ["new"]
        assert (
            bash(root, "git status --short; cat a notes new") == " M a\n D d/old\nA  staged\n?? notes\na\nedit\nu\nnew"
        )
        bash(kid, "echo kid >> notes; mkdir -p d; echo again > d/old; echo t >> staged")
        assert root.merge_files(kid) == ["d/old", "notes", "staged"]
        assert bash(root, "git status --short; cat a notes d/old staged") == " M a\na\nedit\nu\nkid\nagain\ns\nt"
        bash(kid, "echo k > late")
        bash(root, "echo r > late; echo root >> notes")
        with pytest.raises(FilesConflict, match=r"not committed: late\. Commit them") as caught:
            root.merge_files(kid)
        assert caught.value.paths == ("late",)
        assert bash(root, "cat late; git status --short") == "r\n M a\n M notes\n?? late"


def test_what_both_have_changed_and_the_parent_has_not_committed_is_named(work: Path) -> None:
    with opened(work) as system:
        root = system.root
        bash(root, "echo edit >> a; mkdir cache; echo c > cache/c")
        kid = root.fork(name="kid")
        bash(kid, "sed -i s/edit/kid/ a; echo k > cache; git add -f cache")
        bash(root, "sed -i s/edit/root/ a")
        with pytest.raises(FilesConflict, match="both agents") as caught:
            root.merge_files(kid)
        assert caught.value.paths == ("a",)
        bash(kid, "git checkout -q a")
        with pytest.raises(FilesConflict, match=r"not committed: cache\. Commit") as caught:  # which git ignores here
            root.merge_files(kid)
        assert caught.value.paths == ("cache",)
        bash(root, "rm -r cache")
        assert root.merge_files(kid) == ["cache"]
        assert bash(root, "cat a cache; git status --short") == "a\nroot\nk\n M a"


@pytest.mark.thorough("a second play of git; every run has a fork, a conflict and what an agent may not do")
@pytest.mark.parametrize("gone", ["tree/work", ".", pytest.param("tree", marks=pytest.mark.thorough("the same"))])
def test_a_worktree_that_somebody_has_removed_is_made_again_and_the_next_result_says_so(work: Path, gone: str) -> None:
    again = "[your worktree had been removed, and was made again from what git has of it: the rest is lost]"
    with opened(work) as system:
        kid = system.root.fork(name="kid")
        bash(kid, f"echo kid >> a; git {AUTHOR} commit -qam kid; echo lost > lost")
        place = work.parent / "home" / "trees" / kid.uuid
        shutil.rmtree(place / gone)
        assert bash(kid, "cat a; ls") == f"{again}\na\nkid\na\nd"
        assert bash(kid, "echo kept > kept") == ""
        grandchild = kid.fork(name="grandchild")  # its snapshot has what the kid has not committed
        bash(grandchild, "true")
        shutil.rmtree(place / gone)
        assert do(kid, ("read", {"file_path": "kept"})) == [f"{again}\nkept\n"]
    shutil.rmtree(place / gone)
    if gone == ".":
        git(work, "update-ref", "-d", f"refs/heads/ikigai/{kid.uuid[:8]}")
    with opened(work) as system:
        assert bash(system.agent("kid").fork(), "ls").splitlines()[-4:] == ["a", "d", "kept"][-4:]
        assert bash(system.agent("kid"), "cat a") == f"{again}\na\nkid"
        assert bash(system.agent("grandchild"), "cat kept") == "kept"


@pytest.mark.thorough("a second play of git; every run has a fork, a conflict and what an agent may not do")
def test_a_worktree_that_its_repository_has_forgotten_keeps_its_files(work: Path) -> None:
    with opened(work) as system:
        kid = system.root.fork(name="kid")
        bash(kid, "echo mine > mine")
        place = work.parent / "home" / "trees" / kid.uuid
        shutil.rmtree(next((work / ".git" / "worktrees").iterdir()))
        notice = "[the repository had forgotten your worktree, and knows it again: nothing is staged]"
        assert bash(kid, "cat mine; git status --short") == f"{notice}\nmine\n?? mine"
        (place / "tree" / "work" / ".git").unlink()
        (place / "gitfile").unlink()
        assert bash(kid, "cat mine; git status --short") == f"{notice}\nmine\n?? mine"
        assert system.root.merge_files(kid) == ["mine"]


@pytest.mark.thorough("a second play of git; every run has a fork, a conflict and what an agent may not do")
def test_a_prune_commits_what_was_not_committed_before_it_removes_a_worktree_and_counts(work: Path) -> None:
    database = str(work.parent / "d.db")
    with opened(work) as system:
        kid, idle, other = (system.root.fork(name=name) for name in ("kid", "idle", "other"))
        bash(kid, "echo precious > precious; echo staged > staged; git add staged")
        bash(other, f"git checkout -q --detach; echo o > o; git add o; git {AUTHOR} commit -qm o; echo p > p")
        bash(idle, "true")
        for agent in (kid, idle, other):
            agent.kill()
    assert prune(database, "0s", dry_run=True, vacuum=False)[1:] == [
        "Would remove 3 worktrees of git, after what was not committed there is on a branch."
    ]
    assert len(list((work.parent / "home" / "trees").glob("*/made"))) == 3
    lines = prune(database, "0s", dry_run=False, vacuum=False)
    branches = sorted(f"ikigai/{agent.uuid[:8]}" for agent in (kid, other))
    assert lines[1] == f"Removed 3 worktrees of git. What was not committed is on {' and '.join(branches)}."
    assert not list((work.parent / "home" / "trees").glob("*/made"))
    assert git(work, "worktree", "list").count("\n") == 0
    assert git(work, "show", f"ikigai/{kid.uuid[:8]}:precious") == "precious"
    assert git(work, "show", f"ikigai/{kid.uuid[:8]}:staged") == "staged"
    assert git(work, "show", f"ikigai/{other.uuid[:8]}:o") == "o"
    assert git(work, "show", f"ikigai/{other.uuid[:8]}:p") == "p"
    for dry_run in (False, True):
        assert prune(database, "0s", dry_run, vacuum=False) == [
            "Nothing to delete: no agent died longer than 0s ago that nobody needs."
        ]


@pytest.mark.thorough("a second play of git; every run has a fork, a conflict and what an agent may not do")
def test_a_repository_within_the_repository_is_named_at_the_fork_and_at_the_merge_and_a_prune_leaves_it(
    work: Path,
) -> None:
    commit = f"git add -A && git {AUTHOR} commit -qm w"
    with opened(work) as system:
        root = system.root
        bash(root, f"(git init -q lib && cd lib && echo l > l && {commit}); git init -q cache; git init -q bare")
        kid = root.fork(name="kid")
        assert bash(kid, "ls; echo new > new") == (
            "[repositories of their own, whose files do not come along with a fork: bare, lib]\na\nd"
        )
        assert root.merge_files(kid) == ["new"]
        assert bash(root, "cat lib/l; git status --short") == "l\n?? bare/\n?? lib/"
        bash(kid, f"(git init -q d/sub && cd d/sub && echo work > w && {commit})")
        with pytest.raises(FilesConflict, match=r"d/sub is a repository of its own.*d/sub/\.git") as caught:
            root.merge_files(kid)
        assert caught.value.paths == ("d/sub",)
        bash(kid, "git init -q unborn; echo u > unborn/u")
        with pytest.raises(FilesConflict) as caught:
            root.merge_files(kid)
        assert caught.value.paths == ("d/sub", "unborn")
        bash(kid, "rm -rf unborn/.git")
        kid.kill()
    lines = prune(str(work.parent / "d.db"), "0s", dry_run=False, vacuum=False)
    place = work.parent / "home" / "trees" / kid.uuid / "tree" / "work"
    assert lines[1] == (
        f"Left the worktree {place}: d/sub is a repository of its own, with work that no remote has. Bring that "
        "elsewhere or remove it, then prune again."
    )
    assert (place / "d" / "sub" / "w").read_text() == "work\n"
    shutil.rmtree(place / "d" / "sub" / ".git")
    [line] = prune(str(work.parent / "d.db"), "0s", dry_run=False, vacuum=False)
    assert line.startswith("Removed 1 worktree of git.")
    assert git(work, "show", f"ikigai/{kid.uuid[:8]}:d/sub/w") == "work"


@pytest.mark.thorough("a second play of git; every run has a fork, a conflict and what an agent may not do")
def test_a_submodule_is_named_and_merges_as_git_does_where_its_commits_are_elsewhere(work: Path) -> None:
    origin = work.parent / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    (origin / "l").write_text("l\n")
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "first")
    git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin), "lib")
    git(work, "commit", "-qm", "lib")
    with opened(work) as system:
        kid = system.root.fork(name="kid")
        assert bash(kid, "ls -A lib; echo new > new") == (
            "[repositories of their own, whose files do not come along with a fork: lib]"
        )
        assert system.root.merge_files(kid) == ["new"]
        bash(kid, f"(cd lib && git init -q && echo m > m && git add m && git {AUTHOR} commit -qm mine)")
        with pytest.raises(FilesConflict, match="lib is a repository of its own") as caught:
            system.root.merge_files(kid)
        assert caught.value.paths == ("lib",)
        assert bash(system.root, "cat lib/l; git status --short") == "l"


@pytest.mark.thorough("two hosts one after the other; a child at work is in every run")
def test_what_a_child_has_written_is_there_after_a_restart_and_its_worktree_goes_when_it_is_pruned(work: Path) -> None:
    with opened(work) as system:
        kid = system.root.fork(name="kid")
        bash(kid, f"echo kid >> a; git {AUTHOR} commit -qam kid; echo lost > lost")
        uuid = kid.uuid
    place = work.parent / "home" / "trees" / uuid
    shutil.rmtree(place)  # as a person does who needs the room
    with opened(work) as system:
        assert bash(system.agent("kid"), "cat a; ls").splitlines()[1:] == ["a", "kid", "a", "d"]
        bash(system.agent("kid"), "echo again >> a")
    with opened(work) as system:
        assert bash(system.agent("kid"), "cat a") == "a\nkid\nagain"
        system.agent("kid").kill()
    assert git(work, "worktree", "list").count("\n") == 1
    prune(str(work.parent / "d.db"), "0s", dry_run=False, vacuum=False)
    assert not place.exists()
    assert git(work, "worktree", "list").count("\n") == 0
    assert git(work, "branch", "--list", "ikigai/*") == f"ikigai/{uuid[:8]}"


@pytest.mark.thorough("a second play of git; every run has a fork, a conflict and what an agent may not do")
@pytest.mark.parametrize(
    "moment",
    [1, *(pytest.param(other, marks=pytest.mark.thorough("the same once more")) for other in (0, 2, 3))],
)
def test_a_merge_that_was_cut_off_is_finished_before_the_next_call(work: Path, moment: int) -> None:
    with opened(work) as system:
        kid = system.root.fork(name="kid")
        bash(kid, f"echo kid >> a; echo new > new; rm d/old; git add -A; git {AUTHOR} commit -qm kid")
        bash(system.root, "echo mine > mine")
        tree = git(work, "merge-tree", "--write-tree", "HEAD", f"ikigai/{kid.uuid[:8]}").splitlines()[0]
        head = git(work, "rev-parse", "HEAD")
        commit = git(work, "commit-tree", tree, "-p", head, "-p", f"ikigai/{kid.uuid[:8]}", "-m", "merge")
        root = system.root.uuid
    git(work, "update-ref", f"refs/ikigai/{root}/merging", commit)
    (work.parent / "home" / "trees" / root / "merging").touch()
    if moment == 1:
        (work / "a").write_text("a\nkid\n")
        (work / "d" / "old").unlink()
        (work / ".git" / "index.lock").touch()
    if moment >= 2:
        git(work, "read-tree", "-m", "-u", head, commit)
    if moment == 3:
        git(work, "update-ref", "HEAD", commit)
    with opened(work) as system:
        assert bash(system.root, "cat a; ls; git status --short; git log -1 --format=%s") == (
            "a\nkid\na\nmine\nnew\n?? mine\nmerge"
        )
        assert system.root.merge_files("kid") == []
    assert "ikigai" not in git(work, "for-each-ref", "refs/ikigai/*/merging")


@pytest.mark.thorough("a second play of git; every run has a fork, a conflict and what an agent may not do")
def test_a_merge_over_what_was_not_committed_that_was_cut_off_is_finished_too(work: Path) -> None:
    with opened(work) as system:
        bash(system.root, "echo u > notes; echo g > gone")
        kid = system.root.fork(name="kid")
        bash(kid, "echo kid >> notes; rm gone; echo x > x")
        head = git(work, "rev-parse", "HEAD")
        assert system.root.merge_files(kid) == ["gone", "notes", "x"]
        root = system.root.uuid
    git(work, "update-ref", f"refs/ikigai/{root}/merging", "HEAD")
    git(work, "update-ref", f"refs/ikigai/{root}/merging-from", f"refs/ikigai/{root}/0")
    git(work, "update-ref", "HEAD", head)
    git(work, "read-tree", head)
    (work / "notes").write_text("u\n")
    (work / "gone").write_text("g\n")
    (work.parent / "home" / "trees" / root / "merging").touch()
    with opened(work) as system:
        assert bash(system.root, "cat notes; ls; git status --short") == "u\nkid\na\nd\nnotes\nx"
        assert system.root.merge_files("kid") == []
    assert "merging" not in git(work, "for-each-ref", "refs/ikigai")


def test_no_hook_and_no_program_of_the_repository_runs_for_a_fork_or_a_merge(work: Path) -> None:
    ran = work.parent / "ran"
    for name in ("post-checkout", "post-commit", "pre-commit", "reference-transaction", "post-index-change"):
        hook = work / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {work}/ran; echo {name} >> {ran}\n")
        hook.chmod(0o755)
    git(work, "config", "core.fsmonitor", f"echo fsmonitor >> {work}/ran;")
    with opened(work) as system:
        bash(system.root, f"cp -r .git evil; git config -f evil/config core.hooksPath {work}/.git/hooks")
        bash(system.root, f"echo {work}/evil > .git/commondir; echo evil > .git/info/exclude")
        kid = system.root.fork()
        do(kid, ("write", {"file_path": "new", "content": "x"}))
        assert system.root.merge_files(kid) == ["new"]
        assert bash(kid, "git rev-parse --git-common-dir; ls") == "/repository\na\nd\nnew"
    assert not ran.exists()
    assert not (work / "ran").exists()


def test_an_agent_can_neither_point_its_worktree_elsewhere_nor_change_the_settings_of_the_repository(
    work: Path,
) -> None:
    with opened(work) as system:
        kid = system.root.fork(name="kid")
        bash(kid, "true")
        for attempt in (
            "echo 'gitdir: /tmp/mine' > .git", "rm -f .git", "mv .git gone", "git config core.fsmonitor ./evil",
            "echo x > /repository/hooks/post-checkout", "mv /repository/config /repository/c", "ln -sfn /tmp .git",
        ):  # fmt: skip
            assert "exit code" in bash(kid, attempt)
    tools = [Workspace(work, fence="required", protect=())]  # children share from now on, and no name is protected
    with ActorSystem.open(work.parent / "d.db", ScriptedProvider(scripted), tools=tools, approvals="allow") as system:
        kid = system.agent("kid")
        assert "is protected" in do(kid, ("write", {"file_path": ".git", "content": "gitdir: /tmp"}))[0]
        place = work.parent / "home" / "trees" / kid.uuid / "tree" / "work"
        assert str(work / ".git" / "worktrees") in (place / ".git").read_text()
        assert git(place, "status", "--short") == ""
        assert "No such file" in bash(kid, f"ls {work.parent}/home")


@pytest.mark.thorough("a second merge; every run has a conflict")
def test_a_merge_changes_no_protected_name_and_leaves_nothing_half_done(work: Path) -> None:
    (work / ".envrc").write_text("mine\n")
    git(work, "add", ".envrc")
    git(work, "commit", "-qm", "settings")
    with opened(work) as system:
        kid = system.root.fork()
        assert "exit code" in bash(kid, "echo evil > .envrc")
        blob = "$(echo evil | git hash-object -w --stdin)"
        bash(
            kid, f"echo b > b; git add b; git update-index --cacheinfo 100644,{blob},.envrc; git {AUTHOR} commit -qm x"
        )
        bash(kid, "git update-index --assume-unchanged .envrc")
        with pytest.raises(FilesConflict, match=r"\.envrc is protected") as caught:
            system.root.merge_files(kid)
        assert caught.value.paths == (".envrc",)
        assert bash(system.root, "cat .envrc; ls; git status --short") == "mine\na\nd"


def test_a_directory_that_is_no_repository_is_refused(work: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for place, fence in ((tmp_path / "plain", "auto"), (work, "landlock"), (work, "none")):
        tools = [Workspace(place, on_fork="worktree", fence=fence)]
        with pytest.raises(BadInput, match="on_fork='worktree'"):
            ActorSystem.open(":memory:", ScriptedProvider([]), tools=tools)
    with pytest.raises(BadInput, match="needs on_fork='overlay'"):
        Workspace(work, on_fork="worktree", keep_turns=True)
