"""Make an open system unusable in a child process after `os.fork`: each use raises an error, and none hangs.

A fork copies the memory and only the thread that forks. The journal, the event loop and the workers of an open system
stay with the parent, and so does the right to its database. In the child an `OfOneProcess` loses all that it holds, so
every use of it there ends in one `SystemClosed`. Nothing is closed: connections and locks are the parent's, and closing
a copy of them would end them for both.
"""

import os
from typing import TYPE_CHECKING, Any, NoReturn, Self
from weakref import WeakSet

from ikigai_actors.errors import SystemClosed

_opened: "WeakSet[OfOneProcess]" = WeakSet()
_kept: list[dict[str, Any]] = []  # what the parent's objects held: to let go of a connection would close it


class OfOneProcess:
    """The base of objects that only the process that made them may use.

    In a forked child their use raises `SystemClosed`.
    """

    _parent: int | None = None

    def __new__(cls, *_: Any, **__: Any) -> Self:
        made = super().__new__(cls)
        _opened.add(made)
        return made

    @property
    def _forked(self) -> bool:
        """Whether this process is a fork of the process in which the object was made."""
        return self._parent is not None

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: the resources of the object belong to this process."""
        raise TypeError(
            f"Cannot pickle or copy {type(self).__name__}, nor a handle of an agent with it: it belongs to this "
            "process. Hand on ref.uuid, and in the other process use "
            "ActorSystem.attach(database).agent(uuid)."
        )

    if not TYPE_CHECKING:  # a type checker would take it for every attribute there could be

        def __getattr__(self, name: str) -> Any:
            """Raise `AttributeError`; in a forked child, where the object has no attributes left, `SystemClosed`."""
            if self._parent is None or name.startswith("__"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise SystemClosed(
                f"This process (pid {os.getpid()}) is a fork of the one that opened the system (pid {self._parent}), "
                "which alone may use it. Open the system after forking; with multiprocessing, use the start method "
                "'spawn'."
            )


def _lose_all() -> None:
    """Remove the attributes of all `OfOneProcess` objects. Runs in a child process right after a fork."""
    for each in list(_opened):
        if not each._forked:
            _kept.append(each.__dict__)
            each.__dict__ = {"_parent": os.getppid()}


os.register_at_fork(after_in_child=_lose_all)
