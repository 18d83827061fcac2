"""Connections to Ray: made for one operation, and closed after it.

Ray ends a connected program when the head of the cluster has been gone for a minute. So a fleet connects only while it
does something. If the program itself is connected to Ray, its connection is used.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

from ikigai_actors.cluster import local
from ikigai_actors.errors import BadInput, ClusterError


class RayConnection(NamedTuple):
    """A connection to Ray."""

    ray: Any
    """The imported module ``ray``."""
    is_local: bool
    """Whether it is a Ray that this program started on this machine, see `ikigai_actors.cluster.local`."""


@contextmanager
def connected(address: str | None, begin: bool = False) -> Iterator[RayConnection]:
    """Connect to Ray for the length of a block.

    Args:
        address: as `ray.init` takes it; None for ``$RAY_ADDRESS``, else for the Ray that this package runs on this
            machine.
        begin: whether to start the Ray of this machine if it is not running.

    Raises:
        BadInput: Ray is not installed.
        ClusterError: Ray cannot be reached.
    """
    imported = "ray" in sys.modules
    if not imported and not _is_installed():
        raise BadInput("A cluster needs Ray: pip install 'ikigai-actors[ray]'.")
    where, is_local = address or os.environ.get("RAY_ADDRESS"), False
    if not where and not (imported and _connected_already()):
        where, is_local = _own(begin, imported), True
    import ray  # from here on it knows the token of ours

    if ray.is_initialized():
        yield RayConnection(ray, False)
        return
    try:
        ray.init(where, log_to_driver=False, logging_level=logging.CRITICAL, configure_logging=False)
    except Exception as error:  # Ray raises many
        lines = str(error).strip().splitlines()
        raise ClusterError(
            f"Ray at {where} cannot be reached: {lines[0] if lines else type(error).__name__}"
        ) from error
    try:
        yield RayConnection(ray, is_local)
    finally:
        ray.shutdown()


def _is_installed() -> bool:
    try:
        return find_spec("ray") is not None
    except ModuleNotFoundError:
        return False


def _connected_already() -> bool:
    import ray

    return bool(ray.is_initialized())


def _own(begin: bool, imported: bool) -> str:
    """Return the address of the Ray that this package runs on this machine, and set its token in the environment."""
    known = local.environment()
    if imported and not known.items() <= os.environ.items():
        raise ClusterError(
            "This program has imported ray, so that it cannot be given the token of the Ray on this machine any more. "
            "Connect to yours by ray.init() first, or import ray after this."
        )
    head = local.ensure_local_ray() if begin else local.local_ray()
    if head is None:
        raise ClusterError(
            "No Ray of ours runs on this machine: ikigai cluster up starts one. For another one give --address, or set "
            "RAY_ADDRESS."
        )
    os.environ.update(known)
    return head.address
