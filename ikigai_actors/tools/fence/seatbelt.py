"""The fence of macOS: a profile for ``sandbox-exec``, made from the same rights as on Linux. Pure.

The profile is not tested, because no Mac runs the tests. So it does not count as a fence if one is required, and no
rule allows all of bash in it.
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from ikigai_actors.tools.fence.policy import Network, Reach

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
"""The macOS program that runs another program with a profile."""

_SYSTEM = (
    "/System", "/Library/Developer", "/Library/Apple", "/private/etc/ssl", "/private/var/db/dyld",
    "/private/var/db/timezone", "/private/var/select", "/opt/homebrew",
)  # fmt: skip
"""The paths that programs read on macOS, besides those that they read on other systems."""

_DEVICES = ("null", "zero", "random", "urandom", "tty", "dtracehelper")

_SERVICES = (
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.notification_center",
    "com.apple.trustd.agent",
)
"""The services that programs ask for users, time zones and certificates."""


def seatbelt_command(profile: str, command: Sequence[str]) -> list[str]:
    """Return the command that runs another command with a profile."""
    return [SANDBOX_EXEC, "-p", profile, *command]


def seatbelt_profile(reach: Reach, private: str) -> str:
    """Return the profile of a program. If several of its rules fit a request, the last one counts.

    Args:
        reach: the files and networks that the program may reach.
        private: the private directory with ``home`` and ``tmp``.
    """
    read = [*_SYSTEM, *(source for source, _, write in reach.mounts if not write)]
    written = [f"{private}/home", f"{private}/tmp", *(source for source, _, write in reach.mounts if write)]
    above = dict.fromkeys(str(parent) for path in (*read, *written) for parent in PurePath(path).parents)
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork process-exec)",
        "(allow signal process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        _rule("allow mach-lookup", (f"(global-name {_quoted(name)})" for name in _SERVICES)),
        _rule("allow file-read-metadata", (f"(literal {_quoted(path)})" for path in above)),
        _rule("allow file-read*", ['(literal "/")', *map(_beneath, (*read, *written))]),
        _rule("allow file-write*", map(_beneath, written)),
        _rule("allow file-read* file-write-data file-ioctl", (f'(literal "/dev/{name}")' for name in _DEVICES)),
        "(deny file-write-setugid)",
        _rule("deny file-write*", (_beneath(f"{place}/{name}") for place, name in reach.protect)),
        *_network(reach.network),
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _network(network: Network) -> list[str]:
    match network.kind:
        case "all":
            return ["(allow network*)", "(allow system-socket)"]
        case "ports":
            return [_rule("allow network-outbound", (f'(remote tcp "*:{port}")' for port in network.ports))]
        case "proxy":
            return [f'(allow network-outbound (remote tcp "localhost:{network.ports[0]}"))']
    return []


def _rule(what: str, filters: Iterable[str]) -> str:
    """Return the rule for requests that fit any of the filters; empty without filters, as it would fit everything."""
    some = " ".join(filters)
    return f"({what} {some})" if some else ""


def _beneath(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
