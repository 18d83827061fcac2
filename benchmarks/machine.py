"""What the figures are measured on. No name of a host, no path."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.peers.erlang import otp_release
from benchmarks.places import Place

PACKAGES = (
    "ikigai-actors", "anthropic", "psycopg", "pykka", "xoscar", "agent-framework-core", "openai-agents",
    "claude-agent-sdk", "langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres",
    "pi-durable-python", "dbos", "ray",
)  # fmt: skip
"""Ours, what it stands on, and the peers."""


def machine() -> dict[str, Any]:
    """Processor, cores, bytes of memory, kind of system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory": _memory(),
        "system": platform.system(),
    }


def versions(places: Sequence[Place]) -> dict[str, str]:
    """Of Python, the databases (with the settings that matter) and all packages; the ones missing, too."""
    return {
        "Python": platform.python_version(),
        **{place.name: place.description for place in places},
        "Erlang": otp_release() or "not installed",
        **{name: installed(name) or "not installed" for name in PACKAGES},
    }


def installed(package: str) -> str | None:
    """The version of an installed package; None when it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def load() -> float:
    """The load average of one minute; 0 where the system does not tell."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return 0.0


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
