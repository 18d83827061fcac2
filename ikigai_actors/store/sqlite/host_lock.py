"""The locks by which a host owns an SQLite file for its life.

One lock is on ``<database>.lock``, the other on the file itself, which may have a second name. The kernel frees
both locks when the process ends, so the next host takes over at once. No pid, host name or clock decides: a process
that wants to know whether there is a host tests the lock.
"""

import time
from collections.abc import Callable

from ikigai_actors.errors import StoreUnusable
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.rows import in_use, open_hosts_of_any_version
from ikigai_actors.store.sqlite.file import ASKED, SQLiteFile, lock_path


def lock_file(store: Store, file: SQLiteFile) -> Callable[[], object]:
    """Lock the file itself; return the function that unlocks it. Raises `StoreInUse`, `StoreUnusable`."""
    until = time.monotonic() + ASKED
    while True:
        try:
            release = file.lock()
        except OSError as error:
            raise StoreUnusable(f"Database {store.location} cannot be locked: {error}. Use a local disk.") from error
        if release is not None:
            return release
        if time.monotonic() > until or store.read(lambda tx: tx.is_hosted()):
            raise in_use(store.location, store.read(open_hosts_of_any_version))
        time.sleep(ASKED / 100)  # somebody asks, or a host begins or ends


def lock_name(store: Store, file: SQLiteFile) -> Callable[[], object]:
    """Lock the file beside the database; return the function that unlocks it. Raises `StoreInUse`, `StoreUnusable`.

    Other processes test this lock to find out whether there is a host.
    """
    from filelock import FileLock, Timeout  # 0.08 s: a command that only reads does without

    # No fallback: a lock that is a file's existence would survive kill -9, and lock the database for good.
    lock = FileLock(lock_path(file.path), mode=0o600, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=ASKED, poll_interval=ASKED / 100)
    except Timeout as error:
        raise in_use(store.location, store.read(open_hosts_of_any_version)) from error
    except (OSError, NotImplementedError) as error:  # the latter: a file system without kernel locks
        raise StoreUnusable(f"The lock file {lock.lock_file} cannot be used: {error}. Use a local disk.") from error
    return lock.release
