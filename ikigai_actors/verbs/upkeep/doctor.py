"""The work of ``ikigai doctor``: which fence for agents' programs this machine supports."""

import os
from dataclasses import asdict

from ikigai_actors.system.configuration import host_paths
from ikigai_actors.tools.fence.doctor import Examination, look_at_fence
from ikigai_actors.tools.fence.policy import Fence
from ikigai_actors.tools.fence.tiers import Tier
from ikigai_actors.verbs.opening import Options

STATUS = {Tier.NAMESPACES: 0, Tier.LANDLOCK: 1, Tier.SEATBELT: 1, Tier.NONE: 2}
"""The exit status, by the tier of the fence."""


def examination(options: Options) -> Examination:
    """Examine which fence this machine supports; return the result. Raises `BadInput`."""
    fence = Fence(options.write, options.read, options.network or "all", mode=options.fence or "auto")
    return look_at_fence(fence, host_paths(options.database, options.config), options.workspace, os.environ)


def report(report: Examination) -> list[str]:
    """Return the result of the examination as lines for a person."""
    rows = {
        "tier": report.tier,
        "Landlock": f"version {report.landlock_abi}, errata {report.errata}" if report.landlock_abi else "no",
        "namespaces": "yes" if report.namespaces else "no",
        "seccomp": "yes" if report.seccomp else "no",
        "network": ", ".join(report.network),
        "open": "; ".join(report.open) or "nothing",
    }
    return [f"{name:<12}{text}" for name, text in rows.items()] + [f"{'advice':<12}{text}" for text in report.advice]


def as_fields(report: Examination) -> dict[str, object]:
    """Return the result of the examination as data for JSON."""
    return asdict(report)
