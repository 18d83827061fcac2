"""The limit on open files, for what needs more of them than a shell usually allows."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

BESIDE = 200
"""Files that a process has open beside its connections, at most."""


@contextmanager
def allow_open_files(connections: int) -> Iterator[None]:
    """Let this process have so many connections open, within the block. Raises ValueError if the hard limit forbids."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, connections + BESIDE), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
