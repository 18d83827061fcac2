"""What the figures were measured on."""

import os
import platform
import sqlite3
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.places import Place

PACKAGES = ("ikigai-actors", "psycopg", "openai-agents", "claude-agent-sdk", "langgraph", "langgraph-checkpoint-sqlite")


def describe(places: list[Place]) -> str:
    """Machine and versions, as a list in Markdown."""
    lines = [
        f"- {datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.release()}, {_hardware()}",
        f"- Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        *(f"- {place.name}: {place.description}" for place in places),
        "- " + ", ".join(f"{name} {installed(name) or 'not installed'}" for name in PACKAGES),
    ]
    return "\n".join(lines)


def installed(package: str) -> str | None:
    """The version of an installed package; None when it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _hardware() -> str:
    return f"{_processor()}, {os.cpu_count()} cores, {_memory()}; load before the run {_load()}"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
    except (ValueError, OSError):
        return "memory unknown"


def _load() -> str:
    try:
        return f"{os.getloadavg()[0]:.1f}"
    except OSError:
        return "unknown"
