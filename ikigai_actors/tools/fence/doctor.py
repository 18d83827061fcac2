"""A report on the fence that this machine can make, for ``ikigai doctor``."""

from collections.abc import Mapping
from dataclasses import dataclass

from ikigai_actors.tools.base import HostPaths
from ikigai_actors.tools.fence.enclosure import first_that_starts, variables_of
from ikigai_actors.tools.fence.grounds import grounds, names_in, real
from ikigai_actors.tools.fence.policy import Fence, reach_of
from ikigai_actors.tools.fence.private import PrivateDirectories
from ikigai_actors.tools.fence.tiers import TCP_LANDLOCK, Candidate, Kernel, Tier, candidates, kernel, shortfall

_WITHOUT = ("files, processes, sockets, terminals and keys of the user", "processes that outlive their agent")
"""The things that are open without any fence."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The report on the fence of this machine, for people."""

    tier: Tier
    landlock_abi: int
    errata: int
    namespaces: bool
    seccomp: bool
    network: tuple[str, ...]
    """The values of ``network`` that the fence can enforce."""
    open: tuple[str, ...]
    """The gaps of the fence: what programs can reach although they should not."""
    advice: tuple[str, ...]
    """Advice for a person: what to do, and what to know."""


def look_at_fence(fence: Fence, paths: HostPaths, workspace: str | None, environment: Mapping[str, str]) -> Examination:
    """Start a program in the strongest fence that works here, and report on the fence. Blocks.

    Args:
        fence: the rights that a person gives programs.
        paths: the host's own files.
        workspace: the directory of agents; None for none.
        environment: environment variables, of which ``PATH`` is used.

    Raises:
        BadInput: a directory that programs may reach contains a secret.
    """
    directory = None if workspace is None else real(workspace)
    ground = grounds(paths, directory, environment)
    reach = reach_of(fence, directory, ground, real, names_in)
    of, directories = kernel(), PrivateDirectories(paths.state)
    try:
        variables = variables_of(environment, reach, ground.home)
        among = candidates(fence.mode, reach.network, of)
        how, _, failures = first_that_starts(among, reach, directories, variables)
    finally:
        directories.close()
    why = shortfall("required", reach.network, of, failures)
    return examined(how, of, why, [f"there is no {place} to read" for place in reach.missing])


def examined(how: Candidate | None, of: Kernel, why: str, notes: list[str]) -> Examination:
    """Return the report on the fence that has started, if any. ``why``: the reason why no stronger one is possible."""
    whole = how is not None and how.namespaces
    network = ["all"] if how is None else ["all", "none"]
    if how is not None and how.tier == Tier.SEATBELT:
        network += ["ports", "proxy"]
    if whole and of.landlock >= TCP_LANDLOCK:
        network.append("ports")
    if whole:
        network.append("proxy")
    return Examination(
        tier=how.tier if how is not None else Tier.NONE,
        landlock_abi=of.landlock,
        errata=of.errata,
        namespaces=whole,
        seccomp=of.seccomp,
        network=tuple(network),
        open=how.open if how is not None else _WITHOUT,
        advice=tuple(notes if whole else [*notes, why]),
    )
