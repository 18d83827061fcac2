"""One small case of the fence: what is outside is out of reach, and what is inside works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.base import HostPaths
from ikigai_actors.tools.fence.enclosure import git_configuration, open_enclosure, variables_of
from ikigai_actors.tools.fence.policy import Fence, Network, Reach
from ikigai_actors.tools.fence.private import PrivateDirectories
from tests.kit.deep_directories import nest
from tests.kit.fences import ENVIRONMENT, Scene, enclosed, needs, run_in, run_started

TRIES = "cat ../secret; echo mine > ../made; echo fine > made; cat made; git config user.name; env | grep -c ANTHROPIC"


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("mode", ["required", "landlock"])
def test_a_program_reads_and_writes_its_workspace_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a secret")
    (tmp_path / "work").mkdir()
    (tmp_path / "secret").write_text("a secret")
    of = Scene(tmp_path / "work", tmp_path, tmp_path, tmp_path / "d.db", {})
    with enclosed(of, Fence(mode=mode)) as made:
        ran = run_in(of, ["bash", "-c", TRIES], made)
    assert ran.stdout.splitlines()[0] == "fine"
    assert ran.stdout.splitlines()[-1] == "0"
    assert ran.stderr.count("No such file or directory" if made.how.namespaces else "Permission denied") >= 1
    assert not (tmp_path / "made").exists()


def test_of_a_persons_configuration_of_git_a_program_gets_the_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / ".gitconfig").write_text('[user]\n\tname = Ann "A" \\\\ B\n\temail = a@b.c\n[core]\n\tpager = mine\n')
    (tmp_path / "its").write_text(git_configuration(["/usr/bin", "/usr/local/bin", "/bin"]))
    listed = subprocess.run(
        ["git", "config", "-f", "its", "--list"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert listed.stdout.splitlines() == ["safe.directory=*", "user.name=Ann A \\ B", "user.email=a@b.c"]
    assert git_configuration([str(tmp_path)]) == ""


def test_a_server_that_may_write_to_a_repository_plants_no_hook_there(tmp_path: Path) -> None:
    needs("required")
    repository, paths = tmp_path / "repository", HostPaths(tmp_path / "state")
    (repository / ".git" / "hooks").mkdir(parents=True)
    made = open_enclosure(Fence(mode="required", write=[repository]), paths, None, ENVIRONMENT, {}, print)
    assert made is not None
    tries = f"cd {repository}; touch mine .git/index; touch .git/hooks/post-commit; mv .git other"
    run_started(made.launch("server"), made.environment("server"), ["bash", "-c", tries], tmp_path)
    made.close()
    names = {str(place.relative_to(repository)) for place in repository.rglob("*")}
    assert names == {"mine", ".git", ".git/index", ".git/hooks"}


def test_private_directories_of_a_host_that_is_gone_are_removed_and_others_stay(
    tmp_path: Path,
) -> None:
    living = PrivateDirectories(tmp_path, {".note": "tea"})
    place = living.of("ann")
    assert (place / "home" / ".note").read_text() == "tea"
    (tmp_path / "fence" / "gone" / "of-bob").mkdir(parents=True)
    (tmp_path / "fence" / "gone" / "of-bob").chmod(0o500)
    other = PrivateDirectories(tmp_path)
    assert place.exists()
    assert not (tmp_path / "fence" / "gone").exists()
    other.close()
    living.remove("ann")
    assert not place.exists()
    living.close()
    assert [*(tmp_path / "fence").iterdir()] == []


def test_what_cannot_be_removed_of_a_host_that_is_gone_keeps_nobody_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nest(tmp_path / "fence" / "deep" / "of-ann" / "tmp", 1_200)
    (tmp_path / "fence" / "a-file").write_text("")
    PrivateDirectories(tmp_path).close()
    assert [place.name for place in (tmp_path / "fence").iterdir()] == ["a-file"]
    assert caplog.messages == []


def test_the_paths_of_a_host_are_its_database_with_what_is_beside_it_and_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ikigai_actors.system.configuration import host_paths

    monkeypatch.setenv("IKIGAI_HOME", str(tmp_path / "home"))
    (tmp_path / "c.toml").write_text("")
    known = host_paths(tmp_path / "d.db", tmp_path / "c.toml")
    names = ["d.db", "d.db-wal", "d.db-shm", "d.db.lock", "d.db-journal", "c.toml"]
    assert known == HostPaths(tmp_path / "home", tuple(tmp_path / name for name in names))
    assert host_paths(":memory:", "") == HostPaths(tmp_path / "home")


@pytest.mark.slow("takes a tenth of a second")
def test_a_person_hears_of_code_that_agents_could_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, paths = tmp_path / "work", HostPaths(tmp_path / "state")
    (work / "own").mkdir(parents=True)
    heard = list[str]()

    def warning_of(mode: str, *path: Path) -> str:
        needs(mode)
        heard.clear()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "path", [*map(str, path), *sys.path])
            made = open_enclosure(Fence(mode=mode), paths, str(work), ENVIRONMENT, {}, heard.append)
        assert made is not None
        made.close()
        return "".join(heard)

    assert warning_of("landlock") == ""
    assert f"imports modules from {work}, where agents write" in warning_of("required", work)
    assert f"imports modules from {work / 'own'}, where agents write" in warning_of("landlock", work / "own")
    assert warning_of("required", work / "own") == ""


def test_a_toolchain_that_is_seen_is_found_from_another_home() -> None:
    mounts = (
        ("/home/ann/.rustup", "/home/ann/.rustup", False),
        ("/home/ann/.cargo/bin", "/home/ann/.cargo/bin", False),
    )
    made = variables_of({"PATH": "/usr/bin", "NVM_DIR": "/n"}, Reach("/work", mounts=mounts), "/home/ann")
    assert made == {"PATH": os.path.realpath("/usr/bin"), "NVM_DIR": "/n", "RUSTUP_HOME": "/home/ann/.rustup"}
    proxied = variables_of({}, Reach("/work", network=Network("proxy", (3128,))), "/home/ann")
    assert proxied["https_proxy"] == "http://127.0.0.1:3128"


def test_a_directory_that_is_missing_is_told_and_left_out_and_too_many_are_refused(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    paths, heard = HostPaths(tmp_path / "state"), list[str]()
    needs("landlock")
    fence = Fence(mode="landlock", read=[tmp_path / "missing"])
    made = open_enclosure(fence, paths, str(tmp_path / "work"), ENVIRONMENT, {}, heard.append)
    assert made is not None
    made.close()
    assert heard == [f"There is no {tmp_path / 'missing'} to read."]
    long = [tmp_path / f"{number}-{'long' * 50}" for number in range(200)]
    for each in long:
        each.mkdir()
    many = Fence(mode="landlock", read=long)
    with pytest.raises(BadInput, match="list directories, not their files"):
        open_enclosure(many, paths, str(tmp_path / "work"), ENVIRONMENT, {}, heard.append)
    assert [*(tmp_path / "state" / "fence").iterdir()] == []
