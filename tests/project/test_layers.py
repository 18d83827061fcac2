"""The architecture, held: which room may know which, and which library belongs to which room."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "ikigai_actors"

ROOMS = (
    {"shell", "testing"},
    {"cluster", "doors", "sight"},
    {"behaviour", "guests", "recordings"},
    {"verbs"},
    {"reach"},
    {"system"},
    {"programs"},
    {"agent"},
    {"records"},
    {"store", "tools", "providers", "http_server"},
    {"actors"},
    {"errors", "arguments", "certificates", "extras", "text", "attachments", "whole_pictures", "frozen", "lazy"}
    | {"budgets", "events", "hooks", "types", "api"},
)
"""Top first. A room knows the rooms below it; what lies at the bottom are modules, which may know each other."""

LIBRARIES = {
    "pykka": {"actors"},
    "sqlite3 psycopg filelock": {"store"},
    "anthropic": {"providers", "tools"},
    "openai pydantic_ai": {"providers"},
    "aiohttp": {"providers", "shell", "system"},
    "httpx2": {"providers", "shell", "doors", "tools", "certificates"},
    "acp ag_ui": {"doors"},
    "mcp anyio": {"tools", "doors"},
    "uvicorn": {"http_server"},
    "cryptography": {"records"},
    "agents claude_agent_sdk langchain_core langgraph": {"guests"},
    "click": {"shell", "verbs", "behaviour", "recordings"},
    "rich": {"shell", "verbs"},
    "textual textual_serve aiohttp_jinja2 jinja2 PIL": {"shell"},
    "hypothesis pytest": {"testing"},
    "jsonschema": {"records", "tools", "verbs"},
    "referencing cronsim": {"records"},
    "ray": {"cluster"},
    "google opentelemetry": {"sight"},
    "platformdirs": {"store", "shell"},
}
"""Which rooms may import a library."""

LATE = {"PIL", "agents", "claude_agent_sdk", "google", "openai", "opentelemetry", "pydantic_ai", "ray", "uvicorn"}
"""Libraries that are imported when they are first used, within a function: they may be missing."""

PURE = ("agent.turn", "behaviour.plans")
"""Packages that decide, and do nothing: what they import, and what that imports, does no I/O and has no clock."""

IMPURE = {"asyncio", "os", "random", "socket", "sqlite3", "subprocess", "threading", "time"}
"""What no pure package imports, beside the store and the modules that name statements."""

SQL = ("store", "records")
"""The only rooms that name a statement."""


def module_of(path: Path) -> str:
    names = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


FILES = {module_of(path): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}
RUNTIME = [module for module in FILES if module not in (PACKAGE, f"{PACKAGE}.__main__")]


STRING = r'"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''

STRINGS = re.compile(rf"{STRING}|#[^\n]*", re.DOTALL)
"""Strings and comments: no code."""

IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^\n]+)|import ([^\n]+))", re.MULTILINE)

STATEMENT = re.compile(r"\btx\s*\.\s*(?:run|defer)\(")


class Imported(NamedTuple):
    """A name that a line imports."""

    module: str
    name: str | None
    """A name in the module; None for the whole module."""
    alias: str


@cache
def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def code(path: Path) -> str:
    """A file without its strings and comments: to look through that takes a tenth of the time to parse it."""
    return STRINGS.sub("", source(path))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(source(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file. To parse is slow, so a test asks only for files whose text may break its rule."""
    return tuple(walked(parsed(path)))


def walked(tree: ast.AST) -> list[ast.AST]:
    """The nodes of a tree in the order of `ast.walk`, in a third of its time."""
    every = [tree]
    for node in every:
        for value in [getattr(node, name, None) for name in node._fields]:
            if isinstance(value, list):
                every += [child for child in value if isinstance(child, ast.AST)]
            elif isinstance(value, ast.AST):
                every.append(value)
    return every


def outside_of_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs when its module is imported."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        seen_by_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not seen_by_types:
            yield from outside_of_functions(child)


def imported_by(code: str) -> Iterator[Imported]:
    """Every import in code: within functions too, and what only the type checker sees."""
    for module, names, modules in IMPORT.findall(code):
        for words in (each.split() for each in (names or modules).strip("()").split(",")):
            if words:
                yield Imported(module or words[0], words[0] if module else None, words[-1])


@cache
def imported(path: Path) -> tuple[Imported, ...]:
    return tuple(imported_by(code(path)))


def full_name(module: str, name: str | None) -> str:
    """The module that an import names."""
    return f"{module}.{name}" if f"{module}.{name}" in FILES else module


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports."""
    return tuple(full_name(module, name) for module, name, _ in imported(path))


for _path in FILES.values():
    imports(_path)  # before the processes that run tests are forked: they share it


def imports_at_once(path: Path) -> Iterator[str]:
    """The libraries that are imported with a file."""
    for node in outside_of_functions(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.split(".")[0]


@cache
def statements(path: Path) -> list[str]:
    """The statements of the store that a file runs, by name; ``?`` for one that is not written there."""
    if not STATEMENT.search(code(path)):
        return []
    calls = (node for node in nodes(path) if isinstance(node, ast.Call))
    return [
        str(call.args[0].value) if call.args and isinstance(call.args[0], ast.Constant) else "?"
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in {"run", "defer"}
        if isinstance(call.func.value, ast.Name) and call.func.value.id == "tx"
    ]


def known_by(module: str) -> set[str]:
    """All that a module imports, and what that imports in its turn within the package."""
    known: set[str] = set()
    new = {module}
    while new:
        known |= new
        new = {name for fresh in new & FILES.keys() for name in imports(FILES[fresh])} - known
    return known - {module}


def circles(known: Mapping[str, set[str]]) -> list[list[str]]:
    """What knows itself by way of others, in groups."""
    reached = {name: set(below) for name, below in known.items()}
    for between in known:  # Warshall's closure
        for module in known:
            if between in reached[module]:
                reached[module] |= reached[between]
    groups = {tuple(sorted(a for a in reached[b] if b in reached[a])) for b in known if b in reached[b]}
    return [list(group) for group in sorted(groups)]


def parts() -> dict[str, set[str]]:
    """The files and folders of each room, and which others of the room each of them knows."""
    known: dict[str, set[str]] = {}
    for module, path in FILES.items():
        part = ".".join(module.split(".")[:3])
        within = {".".join(name.split(".")[:3]) for name in imports(path) if name in FILES}
        same = {child for child in within if child.split(".")[1:2] == part.split(".")[1:2] and child.count(".") == 2}
        known.setdefault(part, set()).update(same - {part})
    return known


def floor(room: str) -> int:
    return next(place for place, rooms in enumerate(ROOMS) if room in rooms)


def room(module: str) -> str:
    return module.split(".")[1]


def may_know(own: str, known: str) -> bool:
    """Whether a room may import another one."""
    return known == own or floor(known) > floor(own) or floor(own) == floor("errors")


def test_a_room_knows_only_rooms_below() -> None:
    every = ((module, name) for module in RUNTIME for name in imports(FILES[module]) if name.startswith(f"{PACKAGE}."))
    assert [(module, name) for module, name in every if not may_know(room(module), room(name))] == []


def test_no_two_files_know_each_other() -> None:
    assert (
        circles(
            {module: {name for name in imports(path) if name in FILES} - {module} for module, path in FILES.items()}
        )
        == []
    )


def test_nothing_runs_up_inside_a_room() -> None:
    assert circles(parts()) == []


def test_each_library_has_its_room() -> None:
    homes = {library: rooms for libraries, rooms in LIBRARIES.items() for library in libraries.split()}
    every = ((module, name.split(".")[0]) for module in RUNTIME for name in imports(FILES[module]))
    assert [
        (module, library) for module, library in every if room(module) not in homes.get(library, {room(module)})
    ] == []


CORE = ("system", "agent", "records", "store", "tools", "providers", "actors")


@pytest.mark.slow("starts a program, which imports everything")
def test_the_core_imports_without_the_libraries_of_shell_and_kit() -> None:
    """Nor does another library bring them along."""
    late = (f"{PACKAGE}.tools.mcp", f"{PACKAGE}.providers.connections")  # imported with the first connection alone
    names = [module for module in RUNTIME if room(module) in CORE and not module.startswith(late)]
    unwanted = {"click", "textual", "rich", "hypothesis", "pytest", "uvicorn", "mcp", "cryptography", "anthropic"}
    code = f"import importlib, sys\nfor name in {names}: importlib.import_module(name)\n"
    code += f"print(*{unwanted} & {{*sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


@pytest.mark.thorough("a second fresh interpreter")
def test_the_network_api_serves_without_what_runs_agents_and_calls_models() -> None:
    unwanted = {f"{PACKAGE}.{name}" for name in ("agent.toolbox", "providers.anthropic", "system.options", "tools.mcp")}
    code = f"import sys, {PACKAGE}.doors.api.serving\nprint(*{unwanted} & {{*sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


def test_a_library_that_may_be_missing_is_imported_late() -> None:
    some = [module for module in RUNTIME if any(name.split(".")[0] in LATE for name in imports(FILES[module]))]
    assert [(module, name) for module in some for name in imports_at_once(FILES[module]) if name in LATE] == []


def test_each_kind_of_import_is_seen_and_no_string() -> None:
    text = (
        "import a\nimport b.c, d as e\nfrom f.g import h\nfrom i import (\n    j,  # a comment\n    k as l,\n)\n"
        'def m() -> None:\n    """Import.\n\n    from n import o\n    """\n    from p import q, r\n\'"""\'\nimport s\n'
    )
    assert [*imported_by(STRINGS.sub("", text))] == [
        *(("a", None, "a"), ("b.c", None, "b.c"), ("d", None, "e"), ("f.g", "h", "h")),
        *(("i", "j", "j"), ("i", "k", "l"), ("p", "q", "q"), ("p", "r", "r"), ("s", None, "s")),
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "supervisors").rglob("*.py")), ids=module_of)
def test_supervisors_know_nothing_of_models_databases_or_threads(path: Path) -> None:
    for module in imports(path):
        assert module.split(".")[0] in {"collections", "dataclasses", "enum", "supervisors", "typing"}


def test_a_statement_is_named_in_the_store_and_the_records_alone() -> None:
    named = ((module, statements(FILES[module])) for module in RUNTIME if room(module) not in SQL)
    assert [(module, statements) for module, statements in named if statements] == []


def test_only_the_records_of_accounts_read_and_write_credentials() -> None:
    text = (ROOT / PACKAGE / "store" / "queries.sql").read_text(encoding="utf-8")
    blocks = (block.partition("\n") for block in text.split("\n-- name: ")[1:])
    own = {name for name, _, statement in blocks if re.search(r"\b(accounts|account_flows)\b", statement)}
    assert len(own) >= 10
    word = re.compile("|".join(own))
    users = {module for module in RUNTIME if word.search(source(FILES[module])) and own & {*statements(FILES[module])}}
    assert users == {f"{PACKAGE}.records.accounts"}


@pytest.mark.parametrize(
    "module", [module for module in RUNTIME if module.removeprefix(f"{PACKAGE}.").startswith(PURE)]
)
def test_a_pure_package_reaches_no_statement_no_thread_and_no_clock(module: str) -> None:
    for known in known_by(module):
        assert known.split(".")[0] not in IMPURE, f"{module} reaches {known}"
        if known in FILES:
            assert room(known) not in {"store", "actors"}, f"{module} reaches {known}"
            assert not statements(FILES[known]), f"{module} reaches {known}, which names a statement"
