"""A path is opened beneath its directory: by the kernel and by hand alike, whatever is exchanged meanwhile."""

import asyncio
import errno
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors.tools.function import Result, Tool
from ikigai_actors.tools.workspace.beneath import LINKS, Outside, Root, kernel_helps
from ikigai_actors.tools.workspace.files import file_tools
from ikigai_actors.tools.workspace.grep import grep_tool
from tests.kit.program import PATIENCE
from tests.kit.zygote import PYTHON, popen

pytestmark = pytest.mark.slow("files, exchanged and searched by programs")

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="renameat2 and openat2 are Linux's")

Use = Callable[..., Result]

EXCHANGER = """
import ctypes, os, sys
libc, one, other = ctypes.CDLL(None, use_errno=True), *map(os.fsencode, sys.argv[1:])
def exchange():
    if libc.renameat2(-100, one, -100, other, 2) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
exchange()
print("ready", flush=True)
while os.getppid() == %d:
    exchange()
"""
"""Exchanges two names for as long as its parent lives and lets it."""

FILTERED = """
import ctypes, struct, sys
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)
words = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x00050000 | %d), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *word) for word in words))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(words), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0
from ikigai_actors.tools.workspace.beneath import kernel_helps
from ikigai_actors.tools.workspace.files import file_tools
from ikigai_actors.tools.workspace.beneath import Root
read = file_tools(Root(Path(sys.argv[1])))[0]
told = [read.call({"file_path": path}).content for path in ("notes.txt", "out/secret.txt")]
print(kernel_helps(), [text.split(":")[0] for text in told])
"""
"""Has the kernel refuse openat2 to it, as a container may, and reads."""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory beside a secret, with links of every kind."""
    place = tmp_path / "work"
    (place / "below" / "deep").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("the secret")
    (place / "notes.txt").write_text("tea")
    (place / "below" / "deep" / "plan.txt").write_text("plan")
    for name, text in {
        "inner": "below/deep",
        "up": "below/deep/../../notes.txt",
        "absolute": str(place / "below"),
        "twice": "absolute/deep/plan.txt",
        "here": str(place),
        "out": "..",
        "out_absolute": str(tmp_path),
        "out_and_in": "../work/notes.txt",
        "below/deep/far_up": "../../../secret.txt",
        "loop": "loop",
        "later": "below/new.txt",
        "later_out": "../new.txt",
    }.items():
        (place / name).symlink_to(text)
    return place


@pytest.fixture(params=[False, True], ids=["kernel", "by hand"])
def root(request: pytest.FixtureRequest, work: Path) -> Root:
    if not request.param and not kernel_helps():
        pytest.skip("this kernel has no openat2")
    return Root(work, by_hand=request.param)


@pytest.fixture
def use(root: Root) -> Use:
    return using(root)


def using(root: Root) -> Use:
    """Calls the tools of a directory as the runtime does."""
    grep = grep_tool(root, {"PATH": os.environ["PATH"]}, str(Path(sys.executable).parent))
    assert grep is not None
    tools: dict[str, Tool] = {tool.name: tool for tool in (*file_tools(root), grep)}

    def call(name: str, **arguments: Any) -> Result:
        tool = tools[name]
        return asyncio.run(tool.call_async(arguments)) if tool.is_async else tool.call(arguments)

    return call


def text_of(root: Root, path: str) -> bytes:
    opened = root.open(path, os.O_RDONLY)
    try:
        return os.read(opened, 100)
    finally:
        os.close(opened)


def open_files() -> list[str]:
    return sorted(os.listdir("/dev/fd"))  # noqa: PTH208 - the numbers, not paths


@pytest.mark.parametrize(
    ("path", "text"),
    {
        "notes.txt": b"tea",
        "./below/../notes.txt": b"tea",
        "inner/plan.txt": b"plan",
        "inner/../deep/plan.txt": b"plan",
        "up": b"tea",
        "absolute/deep/plan.txt": b"plan",
        "twice": b"plan",
        "here/here/notes.txt": b"tea",
        "{work}/notes.txt": b"tea",
        "{work}/here/twice": b"plan",
    }.items(),
)
def test_links_within_the_directory_are_followed(root: Root, work: Path, path: str, text: bytes) -> None:
    if path == "inner/../deep/plan.txt":  # collapsed before links are looked at: there is no `deep` beside `inner`
        with pytest.raises(FileNotFoundError):
            text_of(root, path)
        return
    assert text_of(root, path.format(work=work)) == text


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret.txt",
        "out/secret.txt",
        "out_absolute/secret.txt",
        "out_and_in",
        "inner/far_up",
        "{work}/../secret.txt",
        "{work}/out/secret.txt",
        "/etc/passwd",
        "below/../../secret.txt",
        "later_out",
        "{work}2/notes.txt",
    ],
)
def test_what_leads_out_is_refused(root: Root, work: Path, path: str) -> None:
    before = open_files()
    with pytest.raises(Outside, match="outside of the workspace"):
        root.open(path.format(work=work), os.O_RDONLY)
    with pytest.raises(Outside, match="outside of the workspace"), root.parent(path.format(work=work), create=True):
        pass
    assert open_files() == before


def test_a_directory_is_found_by_another_name_of_it(root: Root, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root.directory)
    assert text_of(root, str(tmp_path / "alias" / "notes.txt")) == b"tea"
    assert text_of(Root(tmp_path / "alias"), str(root.directory / "absolute" / "deep" / "plan.txt")) == b"plan"


def test_a_loop_of_links_a_file_that_is_no_directory_and_a_nul_are_errors(root: Root) -> None:
    before = open_files()
    for path, number in {"loop": errno.ELOOP, "notes.txt/x": errno.ENOTDIR, "none/x": errno.ENOENT}.items():
        with pytest.raises(OSError, match=r".") as refused:
            root.open(path, os.O_RDONLY)
        assert refused.value.errno == number
    with pytest.raises(OSError, match="levels"), root.parent("loop"):
        pass
    with pytest.raises(ValueError, match="NUL"):
        root.open("notes.txt\0", os.O_RDONLY)
    assert open_files() == before


def test_as_many_links_are_followed_as_the_system_follows(root: Root) -> None:
    for number in range(LINKS + 1):
        (root.directory / f"link{number + 1}").symlink_to(f"link{number}")
    (root.directory / "link0").write_text("end")
    assert text_of(root, f"link{LINKS}") == b"end"
    with pytest.raises(OSError, match="levels"):
        text_of(root, f"link{LINKS + 1}")


def test_a_directory_that_is_gone_is_an_error(root: Root, tmp_path: Path) -> None:
    gone = Root(tmp_path / "gone", by_hand=root._by_hand)
    with pytest.raises(FileNotFoundError), gone.parent("a/b", create=True):
        pass


def test_what_a_link_leads_to_within_the_directory_is_made(use: Use, work: Path) -> None:
    assert use("write", file_path="later", content="x") == Result("wrote 1 bytes to later")
    assert (work / "below" / "new.txt").read_text() == "x"
    assert (work / "later").is_symlink()
    assert use("write", file_path="absolute/a/b/c.txt", content="y") == Result("wrote 1 bytes to absolute/a/b/c.txt")
    assert (work / "below" / "a" / "b" / "c.txt").read_text() == "y"


def test_a_link_that_leads_out_makes_nothing(use: Use, work: Path) -> None:
    for path in ("later_out", "out/new.txt", "out/new/new.txt"):
        assert "outside" in use("write", file_path=path, content="x").content
    assert sorted(place.name for place in work.parent.iterdir()) == ["secret.txt", "work"]


def test_files_keep_their_rights_and_nothing_is_left_beside_them(use: Use, work: Path) -> None:
    (work / "run.sh").write_text("echo one")
    (work / "run.sh").chmod(0o750)
    before = sorted(work.iterdir())
    assert not use("edit", file_path="run.sh", old_string="one", new_string="two").is_error
    assert ((work / "run.sh").read_text(), stat.S_IMODE((work / "run.sh").stat().st_mode)) == ("echo two", 0o750)
    assert sorted(work.iterdir()) == before


def test_a_file_with_a_second_name_gets_a_new_file_and_the_other_name_keeps_the_old(use: Use, work: Path) -> None:
    (work / "shared.txt").hardlink_to(work.parent / "secret.txt")
    result = use("edit", file_path="shared.txt", old_string="secret", new_string="public")
    note = "(a new file under this name: it had 2 names, and the others keep the old text)"
    assert result == Result(f"edited shared.txt (1 replacement) {note}")
    assert ((work / "shared.txt").read_text(), (work.parent / "secret.txt").read_text()) == ("the public", "the secret")
    assert use("write", file_path="shared.txt", content="mine") == Result("wrote 4 bytes to shared.txt")


@pytest.mark.thorough("a fresh process")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may lay down its rights")
def test_where_no_file_can_be_made_one_is_written_in_place_unless_it_has_a_second_name() -> None:
    script = """
import os, sys
from pathlib import Path
from ikigai_actors.tools.workspace.beneath import Root
from ikigai_actors.tools.workspace.files import file_tools
write = file_tools(Root(Path(sys.argv[1])))[1]
os.setgroups([]), os.setgid(65534), os.setuid(65534)
for name in ("own.txt", "shared.txt"):
    print(write.call({"file_path": name, "content": "coffee"}).content)
"""
    with tempfile.TemporaryDirectory() as place:  # not pytest's, which others may not enter
        outside, work = Path(place, "secret.txt"), Path(place, "work")
        work.mkdir()
        for file in (outside, work / "own.txt"):
            file.write_text("the secret")
            file.chmod(0o666)
        (work / "shared.txt").hardlink_to(outside)
        Path(place).chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", script, str(work)], capture_output=True, text=True, timeout=PATIENCE
        )
        assert (done.stdout.splitlines()[0], done.stderr) == ("wrote 6 bytes to own.txt", "")
        assert "it has 2 names (hard links), some perhaps elsewhere" in done.stdout
        assert ((work / "own.txt").read_text(), outside.read_text()) == ("coffee", "the secret")


def test_lines_of_a_file_of_any_size_are_read(use: Use, work: Path) -> None:
    (work / "tall.txt").write_text("".join(f"line {number}\n" for number in range(1, 30_001)))
    (work / "wide.txt").write_text("x" * 600_000 + "\nend\n")
    assert "over the limit of 262144" in use("read", file_path="tall.txt").content
    assert use("read", file_path="tall.txt", view_range=[2, 3]) == Result("line 2\nline 3")
    assert use("read", file_path="tall.txt", view_range=[30_000, 0]) == Result("line 30000\n")
    assert use("read", file_path="tall.txt", view_range=[40_000, 40_001]) == Result("")
    assert use("read", file_path="wide.txt", view_range=[2, 2]) == Result("end")
    assert "Read fewer" in use("read", file_path="wide.txt", view_range=[1, 1]).content
    assert "[first line, last line]" in use("read", file_path="tall.txt", view_range=[1]).content
    (work / "noise").write_bytes(b"\xff\xfe\xfd")
    assert "not UTF-8 text" in use("read", file_path="noise").content


def test_glob_finds_what_a_pattern_says_newest_first(use: Use, work: Path) -> None:
    for age, name in enumerate(("below/a.py", "b.py", "below/deep/c.py")):
        (work / name).write_text("")
        os.utime(work / name, (1e9 - age, 1e9 - age))

    def files_found(pattern: str, **more: str) -> list[str]:
        return [os.path.relpath(line, work) for line in use("glob", pattern=pattern, **more).content.splitlines()]

    assert files_found("**/*.py") == ["below/a.py", "b.py", "below/deep/c.py"]
    assert files_found("*.py") == ["b.py"]
    assert files_found("b*/[a-b].p?") == ["below/a.py"]
    assert files_found("*.py", path="below") == ["below/a.py"]
    assert files_found("inner/*.py") == ["inner/c.py"]
    assert set(files_found("below/**")) == {f"below/{name}" for name in ("a.py", "deep", "deep/c.py", "deep/plan.txt")}
    assert use("glob", pattern="out*/*").content == use("glob", pattern="out_and_*").content == "no matches"


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_grep_refuses_a_pipe_and_a_device_and_passes_over_them_in_a_directory(use: Use, work: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(work / "odd")
    else:
        (work / "odd").symlink_to("/dev/zero")
    result = use("grep", pattern="tea", path="odd")
    assert result.is_error
    assert ("neither a regular file nor a directory" if kind == "pipe" else "outside") in result.content
    assert use("grep", pattern="tea") == Result(f"{work / 'notes.txt'}:1:tea\n")


def test_grep_searches_many_files_and_says_what_is_wrong_with_a_pattern_where_there_is_none(
    use: Use, work: Path
) -> None:
    for number in range(250):
        (work / "below" / f"file{number}.txt").write_text(f"leaf {number}\n")
    (work / "below" / "binary").write_bytes(b"leaf 1\n\0\n")
    (work / "below" / ".hidden").write_text("leaf 1\n")
    before = open_files()
    assert len(use("grep", pattern="^leaf", path="below").content.splitlines()) == 250
    assert use("grep", pattern="^leaf 249$").content == f"{work / 'below' / 'file249.txt'}:1:leaf 249\n"
    assert "binary file matches" in use("grep", pattern="leaf", path="below/binary").content
    assert open_files() == before
    (work / "empty").mkdir()
    assert "unclosed group" in use("grep", pattern="(", path="empty").content
    assert use("grep", pattern="x", path="empty") == Result("no matches")


@contextmanager
def exchanging(inside: Path, other: Path) -> Iterator[None]:
    """Another process exchanges two names, again and again."""
    script = [sys.executable, "-c", EXCHANGER % os.getpid(), str(inside), str(other)]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


@LINUX
@pytest.mark.slow("a race with another process")
def test_no_read_leaves_the_directory_while_it_is_exchanged_for_a_link(use: Use, work: Path) -> None:
    (work / "below" / "secret.txt").write_text("the decoy")
    with exchanging(work / "below", work / "out"):
        results = {use("read", file_path="below/secret.txt") for _ in range(400)}
    assert {result.content for result in results if not result.is_error} <= {"the decoy"}


@LINUX
@pytest.mark.slow("a race with another process")
def test_no_write_leaves_the_directory_while_it_is_exchanged_for_a_link(use: Use, work: Path) -> None:
    (work / "below" / "secret.txt").write_text("the decoy")
    with exchanging(work / "below", work / "out"):
        for number in range(80):
            use("write", file_path="below/secret.txt", content=f"mine {number}")
            use("write", file_path=f"below/new{number}/new.txt", content="mine")
            use("edit", file_path="below/secret.txt", old_string="mine", new_string="yours")
    assert (work.parent / "secret.txt").read_text() == "the secret"
    assert sorted(place.name for place in work.parent.iterdir()) == ["secret.txt", "work"]


@pytest.mark.thorough("a race by chance; every run has that of a read")
@LINUX
@pytest.mark.slow("a race with another process")
def test_no_search_leaves_the_directory_while_it_is_exchanged_for_a_link(use: Use, work: Path) -> None:
    (work / "below" / "secret.txt").write_text("the decoy")
    with exchanging(work / "below", work / "out"):
        greps = {use("grep", pattern="the (secret|decoy)").content for _ in range(10)}
        globs = [use("glob", pattern="**/*").content + use("glob", pattern="below/*").content for _ in range(40)]
    assert "the secret" not in "".join(greps)
    assert str(work / "below" / "work") not in "".join(globs)


@pytest.mark.sample(1, "a fresh process")
@LINUX
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_where_a_filter_refuses_openat2_files_are_opened_by_hand(work: Path, number: int) -> None:
    script = (*PYTHON, "-c", FILTERED % number, str(work))
    done = popen(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.communicate(timeout=PATIENCE) == ("False ['tea', 'read']\n", "")


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", "link/pre-commit", ".git/hooks/new/one", "link/new/one", ".envrc", "a/../.envrc",
             ".git/HOOKS", "way/../.git/hooks/x", "to_envrc"]
)  # fmt: skip
def test_no_path_leads_to_a_protected_name(tmp_path: Path, path: str, by_hand: bool) -> None:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "link").symlink_to(".git/hooks")
    (tmp_path / "way").symlink_to("link")
    (tmp_path / "to_envrc").symlink_to(".envrc")
    tools = {tool.name: tool for tool in file_tools(Root(tmp_path, by_hand=by_hand, protect=[".git/hooks", ".envrc"]))}
    result = tools["write"].call({"file_path": path, "content": "mine"})
    assert result.is_error
    assert "is protected" in result.content
    assert [*(tmp_path / ".git" / "hooks").iterdir()] == []
    assert not (tmp_path / ".envrc").exists()
    assert not tools["write"].call({"file_path": ".git/description", "content": "mine"}).is_error
    assert not tools["write"].call({"file_path": ".git/hooks2/x", "content": "mine"}).is_error


def test_an_edit_changes_no_protected_name_and_a_read_shows_it(tmp_path: Path) -> None:
    (tmp_path / ".envrc").write_text("tea")
    tools = {tool.name: tool for tool in file_tools(Root(tmp_path, protect=[".envrc"]))}
    assert tools["read"].call({"file_path": ".envrc"}).content == "tea"
    assert tools["edit"].call({"file_path": ".envrc", "old_string": "tea", "new_string": "x"}).is_error
    assert (tmp_path / ".envrc").read_text() == "tea"
