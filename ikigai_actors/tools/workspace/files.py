"""The file tools: read, write, edit and glob, confined to a directory (see `ikigai_actors.tools.workspace.beneath`).

The tools block, so they run on tool threads.

A file is written beside its place and renamed into it, so no reader sees half of it, and a full disk leaves the old
one. If that is impossible, since the directory may not be written or the file belongs to another user, it is written in
place. A file with several names (a hard link, as package stores and copies of repositories use them) gets a new file
under the one name: its other names, which may lie outside, keep the old text, and the result says so.

Models write line ends as LF. An edit of a file whose lines all end with CRLF takes that for CRLF, so the file keeps its
line ends. A write takes the content as it is given, and says so when that changes the line ends.
"""

import contextlib
import errno
import fnmatch
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import PurePosixPath

from ikigai_actors.attachments import LARGEST, Attachment, attachment
from ikigai_actors.errors import BadInput
from ikigai_actors.tools.function import FunctionTool, ToolError, tool
from ikigai_actors.tools.policy import Policy
from ikigai_actors.tools.workspace.beneath import PLACE, Outside, Root
from ikigai_actors.tools.workspace.withheld import Withheld

_LARGEST = 256 * 1024
"""The most bytes of a file that is read whole, or edited; and of the lines that are read of a larger one."""

_LISTED = 200
"""The most paths in a result of glob."""

MATCHED = 50_000
"""The most paths that glob examines."""

_CRLF = "CRLF"
_ANY_END = re.compile(r"\r?\n")

_PICTURES = {".gif", ".jpeg", ".jpg", ".pdf", ".png", ".webp"}
_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS)
"""Errors after which a file is written in place: its directory may not be written, or it is mounted."""


def file_tools(root: Root) -> list[FunctionTool]:
    """Return the file tools, confined to a directory."""

    @tool(read_only=True)
    def read(file_path: str, view_range: list[int] | None = None) -> str | Attachment:
        """Read a text file, or look at a picture or a PDF.

        Args:
            file_path: the file, relative to the working directory, or absolute and beneath it.
            view_range: the first and the last line, from 1; a last one of 0 is the file's. The whole file when left
                out.
        """
        with _said("read", file_path):
            return _read(root, file_path, view_range)

    @tool(policy=Policy.ASK)
    def write(file_path: str, content: str) -> str:
        """Write a file; make it, and its directory, if it is missing.

        Args:
            file_path: the file, relative to the working directory, or absolute and beneath it.
            content: all that it is to hold.
        """
        with _said("write", file_path):
            data = content.encode()
            with root.parent(file_path, create=True) as (directory, name):
                before, after = _line_ends_there(directory, name), _line_ends(data)
                note = _put(directory, name, data)
            if before and after and before != after:
                note += f" (its line ends were {before}, and are {after} now)"
            return f"wrote {len(data)} bytes to {file_path}{note}"

    @tool(policy=Policy.ASK)
    def edit(file_path: str, old_string: str, new_string: str, replace_all: bool | None = None) -> str:
        """Replace text in a file.

        Args:
            file_path: the file, relative to the working directory, or absolute and beneath it.
            old_string: the text to replace, exactly as it is there, once unless all are replaced.
            new_string: the text to put there.
            replace_all: replace it everywhere.
        """
        with _said("edit", file_path):
            return _edit(root, file_path, old_string, new_string, replace_all is True)

    @tool(read_only=True)
    def glob(pattern: str, path: str | None = None) -> str:
        """List files and directories that match a pattern, newest first. Does not search linked directories for ``**``.

        Args:
            pattern: such as ``*.py`` or ``src/**/*.py``, relative to where it is searched.
            path: the directory to search; the working directory when left out.
        """
        with _said("glob", path or "."):
            return _glob(root, pattern, path or ".", Withheld(root, "glob", path or ".", contents=False))

    return [read, write, edit, glob]


@contextmanager
def _said(name: str, path: str) -> Iterator[None]:
    """In the block, convert errors to a `ToolError` with text for the model; ``name`` is the tool's."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ToolError(f"{name}: {path}: not UTF-8 text. Only text can be read and edited.") from error
    except OSError as error:
        said = (error.strerror or "i/o error").lower()
        raise ToolError(f"{name}: {path}: {said}") from error
    except ValueError as error:
        raise ToolError(f"{name}: {error}") from error


def _read(root: Root, path: str, view_range: list[int] | None) -> str | Attachment:
    with _opened(root, path) as file:
        if PurePosixPath(path).suffix.lower() in _PICTURES:
            return _picture(file, path)
        if view_range is None or not view_range:
            return _whole(file, path, "Give view_range to read some lines, e.g. [1, 500].").decode()
        if len(view_range) != 2:
            raise ValueError(f"expected view_range as [first line, last line], got {view_range}")
        first, last = view_range
        return _lines(file, path, max(first, 1), last)


def editable_text(root: Root, path: str) -> str:
    """Return the text of a file that may be edited. Raises `OSError` or `ValueError` if there is no such text."""
    with _opened(root, path) as file:
        return _whole(file, path, "").decode()


def _picture(file: int, path: str) -> Attachment:
    with os.fdopen(file, "rb", closefd=False) as stream:
        data = stream.read(LARGEST + 1)
    try:
        return attachment(data, PurePosixPath(path).name)
    except BadInput as error:
        raise ValueError(str(error)) from error


def _lines(file: int, path: str, first: int, last: int) -> str:
    """Return some lines of a file of any size, as text for the model."""
    lines, size = list[bytes](), 0
    with os.fdopen(file, "rb", closefd=False) as stream:
        number = 0
        while (last <= 0 or number < last) and (line := stream.readline(_LARGEST + 1)):
            whole = line.endswith(b"\n") or len(line) <= _LARGEST
            number += 1
            if number >= first:
                lines.append(line)
                size += len(line)
                if size > _LARGEST:
                    raise ValueError(f"lines {first} to {number} of {path} are over {_LARGEST} bytes. Read fewer.")
            while not whole and (more := stream.readline(_LARGEST)):  # the rest of a line that is passed over
                whole = more.endswith(b"\n")
    text = b"".join(lines).decode()
    return re.sub(r"\r?\n\Z", "", text) if last > 0 and number == last else text


def _edit(root: Root, path: str, old: str, new: str, everywhere: bool) -> str:
    with root.parent(path) as (directory, name):
        with _regular(directory, name) as file:
            data = _whole(file, path, "A file of that size cannot be edited.")
        text, ends = data.decode(), _line_ends(data)
        if ends == _CRLF:
            old, new = _ANY_END.sub("\r\n", old), _ANY_END.sub("\r\n", new)
        count = text.count(old) if old else 0
        if count == 0 and old and _ANY_END.sub("\n", old) in _ANY_END.sub("\n", text):
            raise ValueError(
                f"old_string not found in {path}, whose line ends are {ends}. Give them as they are there."
            )
        if count == 0:
            raise ValueError(f"old_string not found in {path}")
        if count > 1 and not everywhere:
            raise ValueError(
                f"old_string appears {count} times in {path}. Give more of what is around it, or replace_all."
            )
        note = _put(directory, name, text.replace(old, new).encode())
    return f"edited {path} ({count} replacement{'s' if count > 1 else ''}){note}"


@contextmanager
def _opened(root: Root, path: str) -> Iterator[int]:
    file = root.open_regular(path)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _regular(directory: int, name: str) -> Iterator[int]:
    """Open a regular file in an open directory for reading; yield its descriptor. Raises `OSError` if there is none."""
    if _there(directory, name) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=directory)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield file
    finally:
        os.close(file)


def _there(directory: int, name: str) -> os.stat_result | None:
    """Return the status of a regular file; None if nothing has the name. Raises `OSError` if it is no regular file."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    return status


def _line_ends(data: bytes) -> str:
    """Return the line ends of a text in words: LF, CRLF or both; empty if no line ends."""
    crlf = data.count(b"\r\n")
    lf = data.count(b"\n") - crlf
    return "LF and CRLF" if lf and crlf else "LF" if lf else _CRLF if crlf else ""


def _line_ends_there(directory: int, name: str) -> str:
    """Return the line ends in the first part of a file; empty if the file is missing or cannot be read."""
    with (
        contextlib.suppress(OSError),
        _regular(directory, name) as file,
        os.fdopen(file, "rb", closefd=False) as stream,
    ):
        return _line_ends(stream.read(_LARGEST))
    return ""


def _whole(file: int, path: str, advice: str) -> bytes:
    size = os.fstat(file).st_size
    with os.fdopen(file, "rb", closefd=False) as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"{path} is {max(size, len(data))} bytes, over the limit of {_LARGEST}. {advice}")
    return data


def _put(directory: int, name: str, data: bytes) -> str:
    """Write a file by its name in a directory, which is no link; return a remark for the model."""
    old = _there(directory, name)
    if old is not None:  # whether it may be written: to put another in its place, that would not matter
        os.close(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory))
    beside = f".{name[:100]}.{secrets.token_hex(6)}"
    try:
        _write(beside, os.O_CREAT | os.O_EXCL, 0o666 if old is None else 0o600, directory, data, _like(old))
        try:
            os.rename(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(beside, dir_fd=directory)
            raise
    except OSError as error:
        if old is None or error.errno not in _IN_PLACE:
            raise
        if old.st_nlink > 1:
            raise OSError(
                error.errno,
                f"{os.strerror(error.errno)}: it has {old.st_nlink} names (hard links), some perhaps elsewhere, and "
                "its directory takes no file in its place. Write to another file",
            ) from error
        _write(name, 0, 0, directory, data, _emptied)
        return ""
    if old is not None and old.st_nlink > 1:
        return f" (a new file under this name: it had {old.st_nlink} names, and the others keep the old text)"
    return ""


def _write(name: str, flags: int, mode: int, directory: int, data: bytes, prepare: Callable[[int], None]) -> None:
    """Open a file, prepare it, and write it. A file that was made and cannot be written is removed."""
    file = os.open(name, flags | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK, mode, dir_fd=directory)
    try:
        prepare(file)
        left = memoryview(data)
        while left:
            left = left[os.write(file, left) :]
    except BaseException:
        if flags & os.O_EXCL:
            os.unlink(name, dir_fd=directory)
        raise
    finally:
        os.close(file)


def _like(old: os.stat_result | None) -> Callable[[int], None]:
    """Return a function that gives a new file the old one's owner and rights. It raises `PermissionError`."""

    def prepare(file: int) -> None:
        if old is not None:
            new = os.fstat(file)
            if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
                os.fchown(file, old.st_uid, old.st_gid)
            os.fchmod(file, stat.S_IMODE(old.st_mode) & 0o777)

    return prepare


def _emptied(file: int) -> None:
    """Empty a file before it is written in place. Raises `OSError` if the file has got a second name meanwhile."""
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise OSError(errno.EBUSY, "it was exchanged meanwhile. Write again")
    os.ftruncate(file, 0)


def _glob(root: Root, pattern: str, path: str, withheld: Withheld) -> str:
    parts = PurePosixPath(pattern).parts
    if not parts or pattern.startswith("/"):
        raise ValueError(f"expected a pattern relative to the directory, got {pattern!r}. Give the directory as path.")
    if ".." in parts:
        raise ValueError("'..' is not permitted in a pattern")
    ages = dict[str, float]()
    for name in _matches(root, root.within(path), parts):
        with contextlib.suppress(OSError, Outside):  # it is gone, or a link that leads out
            place = root.open(name, PLACE)
            try:
                ages[name] = os.fstat(place).st_mtime
            finally:
                os.close(place)
        if len(ages) >= MATCHED:
            break
    newest = (name for name in sorted(ages, key=lambda path: -ages[path]) if name not in withheld)
    listed = "\n".join(str(root.resolved / name) for name in islice(newest, _LISTED))
    return withheld.shown(listed or "no matches")


def _matches(root: Root, inner: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths beneath a directory that match the parts of a pattern; some paths twice."""
    first, rest = parts[0], parts[1:]
    if first == "**":
        for directory, entries in _tree(root, inner):
            if rest:
                yield from _matches(root, directory, rest)
            else:
                yield from (_joined(directory, name) for name, _ in entries)
    elif not re.search(r"[*?[]", first):
        yield from _matches(root, _joined(inner, first), rest) if rest else [_joined(inner, first)]
    else:
        wanted = re.compile(fnmatch.translate(first))
        for name in [name for name, _ in _names(root, inner) if wanted.match(name)]:
            yield from _matches(root, _joined(inner, name), rest) if rest else [_joined(inner, name)]


def _tree(root: Root, inner: str) -> Iterator[tuple[str, list[tuple[str, bool]]]]:
    """Yield a directory and all directories beneath it, each with its entries. Links are not followed."""
    to_do = [inner]
    while to_do:
        directory = to_do.pop()
        entries = _names(root, directory)
        yield directory, entries
        to_do += [_joined(directory, name) for name, is_directory in entries if is_directory]


def _names(root: Root, inner: str) -> list[tuple[str, bool]]:
    with contextlib.suppress(OSError, Outside):
        return root.names(inner)
    return []


def _joined(directory: str, name: str) -> str:
    return name if directory == "." else f"{directory}/{name}"
