"""Tiers: the kinds of fences that this machine may make, their order of strength, and the gaps of each.

`candidates` names the tiers that the features of the kernel allow. The caller starts a program in each, to test which
one works.
"""

import ctypes
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ikigai_actors.tools.fence.policy import Network
from ikigai_actors.tools.fence.seatbelt import SANDBOX_EXEC

TIER_VARIABLE = "IKIGAI_FENCE_TIER"
"""The environment variable with the strongest tier to use, for testing the weaker tiers on a stronger machine."""

KNOWN_LANDLOCK = 9
"""The latest version of Landlock whose rights are used here."""

WHOLE_LANDLOCK = 6
"""The first version of Landlock that covers signals and abstract sockets."""

TCP_LANDLOCK = 4
"""The first version of Landlock that distinguishes TCP ports."""

_MACHINES = ("x86_64", "aarch64")
_CREATE_RULESET, _VERSION, _ERRATA = 444, 1, 2
_PR_GET_SECCOMP = 21


class Tier(StrEnum):
    """The kinds of fences, by the features of the kernel that they use."""

    NAMESPACES = "namespaces"
    """Namespaces, Landlock and seccomp."""
    LANDLOCK = "landlock"
    """Landlock and seccomp."""
    SEATBELT = "seatbelt"
    """The sandbox of macOS. It is not tested."""
    NONE = "none"
    """No fence, or a Landlock with too many gaps."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The features of the kernel that matter for fences."""

    system: str = "Linux"
    machine: str = "x86_64"
    landlock: int = 0
    """The version of Landlock; 0 for none."""
    errata: int = 0
    """The bits of the Landlock errata that the kernel has fixed."""
    seccomp: bool = True
    seatbelt: bool = False
    """Whether the system has the sandbox of macOS."""
    strongest: str = ""
    """The tier that `TIER_VARIABLE` names; empty for none."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kind of fence that may be tried."""

    tier: Tier
    """The tier of the fence."""
    namespaces: bool
    landlock: int
    """The version of Landlock that the fence uses; 0 for none."""
    unix_sockets: bool
    """Whether programs may create UNIX sockets."""

    @property
    def is_proven(self) -> bool:
        """Return whether tests cover this kind of fence."""
        return self.tier in (Tier.NAMESPACES, Tier.LANDLOCK)

    @property
    def open(self) -> tuple[str, ...]:
        """Return the gaps of the fence, as phrases for people."""
        if self.tier == Tier.SEATBELT:
            return ("all that macOS leaves open to a profile: this tier is unproven by us",)
        if self.namespaces:
            return ()
        since = {2: "moves between directories", 3: "truncation of what may be read", 4: "ports", 5: "ioctl on devices"}
        below = [text for version, text in since.items() if self.landlock < version]
        if self.landlock < WHOLE_LANDLOCK:
            below += ["signals to other processes of the user", "abstract UNIX sockets"]
        return (
            *below,
            "chmod, chown, times, attributes, stat and inotify of files that the user owns",
            "protected names, such as .git/hooks and .git/config",
        )

    @property
    def lacks(self) -> tuple[str, ...]:
        """Return the features that programs lack in this fence, as phrases for people."""
        missing = [] if self.unix_sockets else ["UNIX sockets"]
        if not self.namespaces and self.tier != Tier.SEATBELT:
            missing += ["shared memory", "/tmp, but as $TMPDIR"]
        return tuple(missing)


def kernel(environ: Mapping[str, str] = os.environ) -> Kernel:
    """Read the features of this system's kernel."""
    strongest = environ.get(TIER_VARIABLE, "")
    system, machine = platform.system(), platform.machine()
    if system != "Linux":
        mac = system == "Darwin" and os.access(SANDBOX_EXEC, os.X_OK)
        return Kernel(system, machine, seccomp=False, seatbelt=mac, strongest=strongest)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long

    def ask(flag: int) -> int:
        return max(0, int(libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint(flag))))

    seccomp = libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0
    return Kernel(system, machine, ask(_VERSION), ask(_ERRATA), seccomp, strongest=strongest)


def candidates(mode: str, network: Network, of: Kernel) -> tuple[Candidate, ...]:
    """Return the fences to try, the strongest first.

    A list of ports, and a proxy, need namespaces, because other protocols stay open without them. Landlock without
    scopes does not restrict abstract sockets. So with such a Landlock, and without an own network, UNIX sockets are
    refused.
    """
    if of.seatbelt and mode == "auto" and of.strongest in ("", Tier.SEATBELT):
        return (Candidate(Tier.SEATBELT, False, 0, network.kind == "all"),)
    if mode == "none" or of.system != "Linux" or of.machine not in _MACHINES or not of.seccomp:
        return ()
    own_network = network.kind in ("none", "proxy")
    used = min(of.landlock, KNOWN_LANDLOCK)
    tiers = []
    if mode != "landlock" and of.strongest not in (Tier.LANDLOCK, Tier.NONE) and (
        network.kind != "ports" or used >= TCP_LANDLOCK
    ):  # fmt: skip
        tiers.append(Candidate(Tier.NAMESPACES, True, used, used >= WHOLE_LANDLOCK or own_network))
    least = 1 if mode == "auto" else WHOLE_LANDLOCK
    if mode != "required" and of.strongest != Tier.NONE and used >= least and network.kind in ("all", "none"):
        tier = Tier.LANDLOCK if used >= WHOLE_LANDLOCK else Tier.NONE
        tiers.append(Candidate(tier, False, used, used >= 9))
    return tuple(tiers)


def shortfall(mode: str, network: Network, of: Kernel, failures: Sequence[str] = ()) -> str:
    """Return the reason why the requested fence is not possible, and how a person can make it possible.

    The text is the end of a sentence.

    Args:
        mode: the requested mode.
        network: the network that programs may reach.
        of: the features of the kernel.
        failures: the error of each fence that was tried.
    """
    if of.system == "Windows":
        return "Windows has none. Use WSL 2, or a virtual machine with Linux"
    if of.seatbelt:
        tried = f" ({'; '.join(failures)})" if failures else ""
        return f"macOS has a sandbox that is unproven by us{tried}. Use a container or a virtual machine with Linux"
    if of.system != "Linux":
        return f"there is none on {of.system}. Use a container or a virtual machine with Linux"
    if of.machine not in _MACHINES:
        return f"its table of system calls is for {' and '.join(_MACHINES)}, and this is {of.machine}"
    if of.strongest:
        return f"${TIER_VARIABLE} is {of.strongest!r}. Unset it"
    if not of.seccomp:
        return "this kernel has no seccomp. Take one with CONFIG_SECCOMP_FILTER"
    said = "; ".join(dict.fromkeys(failures))
    if mode == "landlock" or (not failures and network.kind == "ports"):
        least = TCP_LANDLOCK if network.kind == "ports" else WHOLE_LANDLOCK
        have = f"version {of.landlock}" if of.landlock else "none, or it is switched off (lsm=… at boot)"
        return f"Landlock of version {least} is needed, and this kernel has {have}" + (f" ({said})" if said else "")
    return f"namespaces of its own are refused here ({said}). {advice()}"


def advice() -> str:
    """Return a sentence on how a person can allow namespaces on this machine."""
    return (
        "As root: sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), kernel.unprivileged_userns_clone=1 "
        "(Debian), user.max_user_namespaces=15000 (RHEL); in Docker: --security-opt seccomp=unconfined --security-opt "
        "apparmor=unconfined --security-opt systempaths=unconfined"
    )
