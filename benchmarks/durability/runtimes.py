"""Who takes part: the driver of each runtime, where it stores, what runs beside it, and with which packages.

The packages of a runtime stand in ``drivers/NAME.txt``, pinned. `prepare` installs them in an environment of their own,
below the directory ``IKIGAI_DURABILITY`` (or ``~/.cache/ikigai-durability``). ``drivers/NAME.md`` names the pages of
its documentation that the driver follows.
"""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

DRIVERS = Path(__file__).parent / "drivers"


@dataclass(frozen=True)
class Runtime:
    """A row of the table."""

    name: str
    driver: str
    """The module in ``drivers``; its packages and its pages have the same name."""
    store: str = "directory"
    """``directory``, ``postgresql`` or ``server``: a server of the runtime's own."""
    last: int = 1
    """The step of the lead's last request."""
    hosts: int = 1
    """Workers. With two nobody starts the killed one again: the other has to take over."""
    settle: float = 0.0
    """Seconds that two workers take to share what there is."""
    cancels: bool = True
    """Whether a run can be cancelled from outside."""


RUNTIMES = {
    runtime.name: runtime
    for runtime in (
        Runtime("ikigai-sqlite", "ikigai_agents", last=3),
        Runtime("ikigai-postgresql", "ikigai_agents", "postgresql", last=3),
        Runtime("ikigai-two-hosts", "ikigai_agents", "postgresql", last=3, hosts=2, settle=7),
        Runtime("ikigai-program-sqlite", "ikigai_program"),
        Runtime("ikigai-program-postgresql", "ikigai_program", "postgresql"),
        Runtime("ikigai-program-two-hosts", "ikigai_program", "postgresql", hosts=2, settle=7),
        Runtime("langgraph-sqlite", "langgraph_graph", cancels=False),
        Runtime("langgraph-postgresql", "langgraph_graph", "postgresql", cancels=False),
        Runtime("dbos-sqlite", "dbos_workflows"),
        Runtime("dbos-postgresql", "dbos_workflows", "postgresql"),
        Runtime("pydantic-ai-dbos-sqlite", "pydantic_ai_dbos"),
        Runtime("openai-agents", "openai_agents", cancels=False),
        Runtime("temporal", "temporal_workflows", "server"),
        Runtime("temporal-two-workers", "temporal_workflows", "server", hosts=2),
        Runtime("restate", "restate_services", "server"),
        Runtime("prefect", "prefect_flows", "server", cancels=False),
        Runtime("agent-framework", "agent_framework_workflows", cancels=False),
        Runtime("claude-agent", "claude_agent", cancels=False),
        Runtime("naive", "naive"),
    )
}

INSTALLED = "installed.txt"
"""The file of an environment that says which packages are there. It is written last, so an installation that was ended
in the middle goes on.
"""

NOT_RUN = {
    "Inngest": "its package downloads the server while it installs, which our machines do not allow",
    "pi-durable": "no package of this name was found on PyPI or npm",
    "Hatchet": "no package of its server was found on PyPI, npm or Debian",
    "Trigger.dev": "no package of its server was found on PyPI, npm or Debian",
    "Durable Task scheduler": "no package of its server was found on PyPI, npm or Debian",
    "DBOS, two processes": "takeover by another process needs Conductor, a service",
}
"""Who has no row, and why."""


def environments() -> Path:
    """The directory of the runtimes' environments."""
    return Path(os.environ.get("IKIGAI_DURABILITY", Path.home() / ".cache" / "ikigai-durability"))


def python_of(runtime: Runtime) -> str:
    """The interpreter that runs a driver: this one, where the driver needs no package."""
    if not (DRIVERS / f"{runtime.driver}.txt").exists():
        return sys.executable
    python = environments() / runtime.driver / "bin" / "python"
    return str(python)


def is_prepared(runtime: Runtime) -> bool:
    """Whether the environment of a runtime has the packages that its driver pins, all of them."""
    packages = DRIVERS / f"{runtime.driver}.txt"
    installed = environments() / runtime.driver / INSTALLED
    return not packages.exists() or (installed.exists() and installed.read_text() == packages.read_text())


def prepare(runtime: Runtime) -> None:
    """Make the environment of a runtime. Raises `CalledProcessError` where its packages cannot be installed."""
    if is_prepared(runtime):
        return
    place, packages = environments() / runtime.driver, DRIVERS / f"{runtime.driver}.txt"
    venv.create(place, with_pip=True, clear=True)  # what was left of a broken installation goes
    subprocess.run([place / "bin" / "pip", "install", "-q", "-r", packages], check=True)
    (place / INSTALLED).write_text(packages.read_text())


def versions_of(runtime: Runtime) -> dict[str, str]:
    """The packages that a driver runs with, as its file pins them; of ours the version of this tree."""
    packages = DRIVERS / f"{runtime.driver}.txt"
    if not packages.exists():
        from importlib.metadata import version

        return {"ikigai-actors": version("ikigai-actors")}
    lines = (line.split("#")[0].strip() for line in packages.read_text().splitlines())
    return dict(line.split("==", 1) for line in lines if "==" in line)
