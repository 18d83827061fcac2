"""The architecture, held: who imports whom, and who may import which library."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LAYERS = (
    {"shell"},
    {"testing"},
    {"system", "attached"},
    {"interface"},
    {"opening", "parts"},
    {"keeper"},
    {"population"},
    {"attached_ref"},
    {"process_tools", "ref", "approvals"},
    {"agentmail", "agentlife"},
    {"lives"},
    {"agent"},
    {"performer"},
    {"errands"},
    {"runtime", "post"},
    {"actor_messages"},
    {"awaited"},
    {"follower"},
    {"writer"},
    {"host", "journal", "boot", "fsck", "outside", "publisher", "reader", "statistics", "toolbox"},
    {"dispatch", "seeded", "lifecheck", "logcheck", "mailcheck"},
    {"pooled"},
    {"inbox"},
    {"machine"},
    {"toolsteps"},
    {"performances"},
    {"forks"},
    {"drafts"},
    {"state"},
    {"mcp_server"},
    {"mcp_run"},
    {"mcp_process"},
    {"workspace"},
    {"tools", "toolsets"},
    {"events"},
    {"descriptions"},
    {"calls"},
    {"futures", "assembly"},
    {"replies", "providers"},
    {"restarts", "acts", "signalling"},
    {"deaths", "documents", "waits"},
    {"scrollback"},
    {"append", "registry", "log", "mailbox", "gate"},
    {"units"},
    {"locks"},
    {"store"},
    {"history", "clock", "settings", "providers.base", "slots", "threads", "verdicts", "lifeline"},
    {"closing"},
    {"messages", "identity", "violations"},
    {"text", "frozen", "forked", "policy"},
    {"arguments"},
    {"errors", "forms"},
)
"""Top first. A module imports its own layer and those below."""

LIBRARIES = {
    "sqlite3": {"store"},
    "psycopg": {"store"},
    "psycopg_pool": {"store"},
    "anthropic": {"providers", "tools", "workspace", "mcp_server", "mcp_run"},
    "mcp": {"mcp_run", "mcp_process"},
    "anyio": {"mcp_run", "mcp_process"},
    "httpx2": {"providers"},
    "pykka": {"inbox", "pooled", "futures"},
    "click": {"shell"},
    "hypothesis": {"testing"},
    "pytest": {"testing"},
    "filelock": {"host"},
    "platformdirs": {"store", "shell"},
    "rich": {"shell"},
    "textual": {"shell"},
    "textual_serve": {"shell"},
    "aiohttp": {"providers", "shell"},
    "aiohttp_jinja2": {"shell"},
    "jinja2": {"shell"},
}
"""Which parts may import a library."""


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def part(module: str) -> str:
    """The part of the architecture that a module of ours belongs to."""
    names = module.split(".")[1:]
    return ".".join(names[:2]) if names[:2] == ["providers", "base"] else (names[0] if names else "")


def module_of(path: Path) -> str:
    names = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions; what only the type checker sees is left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.module in ("ikigai_actors", "ikigai_actors.providers"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


def rank(name: str) -> int:
    return next(place for place, layer in enumerate(LAYERS) if name in layer)


@pytest.mark.parametrize("path", sources("ikigai_actors"), ids=module_of)
def test_imports_point_down_only(path: Path) -> None:
    own = part(module_of(path))
    if not own or own == "__main__":
        return
    for module in imports(path):
        if module.startswith("ikigai_actors."):
            assert rank(part(module)) >= rank(own), f"{own} is below {part(module)}, and imports it"


@pytest.mark.parametrize("path", sources("ikigai_actors"), ids=module_of)
def test_each_library_has_its_home(path: Path) -> None:
    own = part(module_of(path)).split(".")[0]
    for module in imports(path):
        library = module.split(".")[0]
        assert own in LIBRARIES.get(library, {own}), f"{own} imports {library}"


@pytest.mark.parametrize("path", sources("supervisors"), ids=module_of)
def test_supervisors_know_nothing_of_models_databases_or_threads(path: Path) -> None:
    for module in imports(path):
        assert module.split(".")[0] in {"collections", "dataclasses", "enum", "supervisors", "typing"}


@pytest.mark.parametrize("path", sources("ikigai_actors"), ids=module_of)
def test_only_the_application_and_who_waits_draw_on_a_screen(path: Path) -> None:
    drawing = {module.split(".")[0] for module in imports(path)} & {"textual", "rich"}
    drawn_by = ("ikigai_actors.shell.app", "ikigai_actors.shell.waiting")
    assert not drawing or module_of(path).startswith(drawn_by)
