"""Files beneath a directory, opened so that no path and no race leads out of it.

    root = Root(Path("work"))
    descriptor = root.open("notes/today.txt", os.O_RDONLY)     # raises Outside for "../secret" or a link to /etc

A path that is checked first and opened later can be exchanged for a link in between. So the kernel resolves the path
and refuses to leave the directory (openat2 with RESOLVE_BENEATH, Linux 5.6 and later). Where that call is missing, in
an older system or under a filter of system calls, `Root` goes from directory to directory by hand: it does not follow
links, but reads the text of a link and treats it like a given path.

Links within the directory are followed, relative and absolute ones. The directory itself is found by its path each
time: a program that can replace it can write outside of it already. A mount within it belongs to it, and so does a file
that has a second name elsewhere (a hard link): see `ikigai_actors.tools.workspace.files` on writing to one.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

LINKS = 40
"""The most links that are followed on the way to a file, as on Linux."""

PLACE = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC
"""Flags to open a path without reading it. Linux then needs no read permission, and does not wake a process that waits
at a pipe.
"""

_DIRECTORY = PLACE | os.O_DIRECTORY
_NUMBER = 437
"""The number of openat2, on all machines but Alpha."""
_HERE = -100
"""The working directory, for openat2."""
_BENEATH_WITHOUT_MAGIC_LINKS = 0x08 | 0x02
_TRIES = 100
"""The most attempts to open a path while files on the way are being renamed."""


acting_top: ContextVar[int | None] = ContextVar("acting_top", default=None)
"""A descriptor of the directory as the acting agent sees it; None if it sees the directory on the disk."""


class Outside(ValueError):
    """Raised if a path leads out of the directory."""


class Protected(ValueError):
    """Raised if a path leads to a file that no agent may change."""


class Root:
    """A directory that file tools do not leave. Paths are relative to it, or absolute paths beneath it."""

    def __init__(self, directory: Path, *, by_hand: bool = False, protect: Sequence[str] = ()) -> None:
        """Use an absolute directory; nothing is opened yet.

        Args:
            by_hand: whether to resolve paths without the kernel's help, even if it is available.
            protect: names beneath the directory for which `parent` refuses writing.
        """
        self.directory = directory
        self.protect = tuple(protect)
        self._by_hand = by_hand or not kernel_helps()

    @property
    def resolved(self) -> Path:
        """The directory, with links resolved."""
        return Path(os.path.realpath(self.directory))

    def within(self, path: str) -> str:
        """Return a path relative to the directory, with ``.`` and ``..`` collapsed. Links are not resolved.

        Raises:
            Outside: the path is not beneath the directory.
            ValueError: the path contains a NUL character.
        """
        if "\0" in path:
            raise ValueError(f"path {path!r} holds a NUL character")
        inner = os.path.normpath(path or ".")
        if inner.startswith("/"):
            known = self._without_root(inner)
            known = self._without_root(os.path.realpath(inner)) if known is None else known  # another name of it
            if known is None:
                raise self._outside(path)
            inner = os.path.normpath(known)
        if inner == ".." or inner.startswith("../"):
            raise self._outside(path)
        return inner

    def shown(self, path: str) -> str:
        """Resolve the links of a path. The result is relative to the directory, or absolute if it is outside."""
        try:
            real = os.path.realpath(self.resolved / self.within(path))
        except (OSError, ValueError):
            return path
        inner = os.path.relpath(real, self.resolved)
        return real if inner == ".." or inner.startswith("../") else inner

    def without_links(self, path: str) -> str:
        """Resolve the links of a path in the acting agent's view, relative to the directory.

        Return the path itself if nothing exists there.

        Raises the errors of `within`.
        """
        inner = self.within(path)
        try:
            place = self.open(inner, PLACE)
        except (OSError, Outside):
            return inner
        try:
            resolved = self._inner_of(_path_of(place))
        finally:
            os.close(place)
        return inner if resolved is None else resolved or "."

    def open(self, path: str, flags: int) -> int:
        """Open a path; the caller closes the descriptor.

        Args:
            path: the path. Links are followed.
            flags: the flags of `os.open`, without ``O_CREAT``.

        Raises:
            Outside: the path leads out of the directory.
            OSError: the path cannot be opened.
        """
        return self._unchecked(self.within(path), flags)

    def open_regular(self, path: str) -> int:
        """Open a regular file for reading; the caller closes the descriptor.

        Raises:
            Outside: the path leads out of the directory.
            OSError: the file cannot be opened. ``EINVAL`` means that it is no regular file: a pipe, a device, a
                directory.
        """
        place = self.open(path, PLACE)
        try:
            _check_regular(place)
        finally:
            os.close(place)
        file = self.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)  # exchanged for a pipe, it does not wait
        try:
            _check_regular(file)
        except OSError:
            os.close(file)
            raise
        return file

    def names(self, path: str) -> list[tuple[str, bool]]:
        """Return the entries of a directory, in no order: each name, and whether it is a directory (and no link)."""
        opened = self.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK)
        try:
            with os.scandir(opened) as entries:
                return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        finally:
            os.close(opened)

    @contextmanager
    def parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Open the directory that contains a file; also return the file's name there.

        Links are followed first, so the returned name is no link.

        Args:
            path: the file, which need not exist.
            create: whether to make missing directories.

        Raises:
            Outside: the path leads out of the directory.
            Protected: the file must not be written.
            OSError: there is no such directory, or it cannot be made.
        """
        inner = self.within(path)
        for _ in range(LINKS):
            above, _, name = inner.rpartition("/")
            try:
                held = self._made(above or ".") if create else self._unchecked(above or ".", _DIRECTORY)
            except Outside as error:
                raise self._outside(path) from error
            try:
                text = _link(name, held)
                if text is None:
                    if name in ("", ".", ".."):
                        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                    self._check_protected(held, name)
                    yield held, name
                    return
            finally:
                os.close(held)
            inner = self._link_within(text, path) if text.startswith("/") else f"{above or '.'}/{text}"
        raise _loop()

    def _made(self, inner: str) -> int:
        """Open a directory; create it and its parents if they are missing. Return the descriptor."""
        try:
            return self._unchecked(inner, _DIRECTORY)
        except FileNotFoundError:
            if inner == ".":
                raise
            above, _, name = inner.rpartition("/")
            held = self._made(above or ".")
        try:
            self._check_protected(held, name)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=held)
        finally:
            os.close(held)
        return self._unchecked(inner, _DIRECTORY)

    def _check_protected(self, held: int, name: str) -> None:
        """Raise `Protected` if a name in an open directory is protected, by whatever path it was found."""
        own = [] if acting_top.get() is None else [".git"]  # of a worktree, it says where the repository is
        if not (names := [*self.protect, *own]):
            return
        inner = self._inner_of(f"{_path_of(held)}/{name}")
        for protected in names:
            if inner is not None and f"{inner}/".casefold().startswith(f"{protected}/".casefold()):
                raise Protected(
                    f"{protected} is protected: programs of a person run what is in it. Ask them to change it"
                )

    def _inner_of(self, path: str) -> str | None:
        """Return the resolved path, relative to the directory in the acting agent's view; None if it is elsewhere."""
        top = acting_top.get()
        if top is None:
            return self._without_root(path)
        above = _path_of(top).rstrip("/")
        return path[len(above) + 1 :] if f"{path}/".startswith(f"{above}/") else None

    def _unchecked(self, inner: str, flags: int) -> int:
        """Open a path without the check of `within`, so it may have ``..`` after a link. Return the descriptor."""
        held = acting_top.get()
        top = os.open(self.directory, _DIRECTORY) if held is None else os.dup(held)
        try:
            return self._open(top, inner, flags)
        finally:
            os.close(top)

    def _open(self, top: int, inner: str, flags: int) -> int:
        if not self._by_hand:
            for _ in range(_TRIES):
                try:
                    return openat2(top, inner, flags)
                except InterruptedError:
                    continue
                except OSError as error:
                    if error.errno == errno.EXDEV:  # it leads out, or by an absolute link, perhaps back in
                        break
                    if error.errno != errno.EAGAIN:
                        raise
        return self._walk(top, inner, flags)

    def _walk(self, top: int, inner: str, flags: int) -> int:
        """Open a path directory by directory, without openat2. Return the descriptor."""
        to_go, gone = _parts(inner), list[str]()
        held, links = os.dup(top), 0
        try:
            while to_go:
                name = to_go.pop()
                if name == "..":
                    if not gone:
                        raise self._outside(inner)
                    to_go += reversed(gone[:-1])  # from the top again, rather than by `..`, which may be elsewhere
                    held, gone = _changed(held, os.dup(top)), []
                    continue
                entry = _step(name, held, flags if not to_go else _DIRECTORY)
                if isinstance(entry, int):
                    held, gone = _changed(held, entry), [*gone, name]
                    if not to_go:
                        return os.dup(held)
                    continue
                if (links := links + 1) > LINKS:
                    raise _loop()
                if entry.startswith("/"):
                    entry = self._link_within(entry, inner)
                    held, gone = _changed(held, os.dup(top)), []
                to_go += _parts(entry)
            return os.open(".", flags, dir_fd=held)
        finally:
            os.close(held)

    def _link_within(self, text: str, path: str) -> str:
        """Return the target of an absolute link, relative to the directory. Raises `Outside` if it is elsewhere."""
        inner = self._without_root(text)
        if inner is None:
            raise self._outside(path)
        return inner or "."

    def _without_root(self, path: str) -> str | None:
        """Return an absolute path relative to the directory; None if it does not begin with the directory's path."""
        for root in (str(self.directory), str(self.resolved)):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return path[len(root) :].lstrip("/")
        return None

    def _outside(self, path: str) -> Outside:
        return Outside(f"path {path!r} is outside of the workspace: expected one beneath {self.directory}")


@functools.cache
def kernel_helps() -> bool:
    """Return whether the system call openat2 is available.

    The system may be too old, or a filter may refuse the call.
    """
    try:
        os.close(openat2(None, ".", _DIRECTORY))
    except OSError:
        return False
    return True


def openat2(directory: int | None, path: str, flags: int) -> int:
    """Open a path beneath a directory by the system call openat2; return the descriptor.

    Args:
        directory: a descriptor; None is the working directory.
        path: the path, relative to the directory.
        flags: the flags of `os.open`, without ``O_CREAT``.

    Raises:
        OSError: ``EXDEV`` when the path leads out of the directory, ``EAGAIN`` when something was renamed meanwhile,
            ``ENOSYS`` where there is no such call.
    """
    call = _syscall()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    how = (ctypes.c_uint64 * 3)(flags | os.O_CLOEXEC, 0, _BENEATH_WITHOUT_MAGIC_LINKS)
    at = ctypes.c_long(_HERE if directory is None else directory)
    opened = call(ctypes.c_long(_NUMBER), at, os.fsencode(path), how, ctypes.c_size_t(ctypes.sizeof(how)))
    if opened < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return opened


@functools.cache
def _syscall() -> Callable[..., int] | None:
    if os.uname().sysname != "Linux" or os.uname().machine == "alpha":
        return None
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return call


def _step(name: str, held: int, flags: int) -> int | str:
    """Open a name in a directory; if it is a link, return its text."""
    try:
        entry = os.open(name, flags | os.O_NOFOLLOW, dir_fd=held)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):  # what systems say of a link
            text = _link(name, held)
            if text is not None:
                return text
        raise
    if stat.S_ISLNK(os.fstat(entry).st_mode):  # O_PATH opens links as well
        os.close(entry)
        text = _link(name, held)
        return f"./{name}" if text is None else text  # it was exchanged meanwhile: once more
    return entry


def _link(name: str, held: int) -> str | None:
    """Return the text of a link; None if the name is no link, or does not exist."""
    try:
        return os.readlink(name or ".", dir_fd=held)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _path_of(held: int) -> str:
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(held, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return str(Path(f"/proc/self/fd/{held}").readlink())


def _parts(path: str) -> list[str]:
    """Return the names in a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _changed(held: int, other: int) -> int:
    """Close the descriptor ``held``, which ``other`` replaces; return ``other``."""
    os.close(held)
    return other


def _check_regular(opened: int) -> None:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")


def _loop() -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP))
