"""The public surface: few names, pinned."""

import ast
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ikigai_actors
import ikigai_actors.cluster
import ikigai_actors.shell
import ikigai_actors.testing

PUBLIC = [
    "ActorGone",
    "ActorSystem",
    "AgentDead",
    "AgentNotFound",
    "AgentRecord",
    "AgentRef",
    "AgentStatistics",
    "AgentStopped",
    "AmbiguousAgent",
    "AnthropicProvider",
    "BadInput",
    "Context",
    "Delta",
    "Died",
    "Document",
    "DocumentChanged",
    "DocumentNotFound",
    "DocumentVersion",
    "Documents",
    "Exit",
    "Fenced",
    "FunctionProvider",
    "Future",
    "HistoryError",
    "HostRecord",
    "IkigaiError",
    "InboxFull",
    "Kind",
    "Mail",
    "MailNotFound",
    "Mailbox",
    "MailboxFull",
    "Mailed",
    "MarkNotFound",
    "McpServer",
    "Message",
    "NameTaken",
    "NoCurrentAgent",
    "NoTurn",
    "OfflineProvider",
    "OnDelta",
    "OrphanPolicy",
    "OutcomeUnknown",
    "PendingCall",
    "PromptKept",
    "Provider",
    "ProviderError",
    "Renamed",
    "Reply",
    "Request",
    "RootProtected",
    "ScriptedProvider",
    "Signal",
    "Spent",
    "StoreError",
    "StoreInUse",
    "StoreTrouble",
    "Stream",
    "Streamed",
    "SystemClosed",
    "TimedOut",
    "TooManyAgents",
    "ToolCall",
    "ToolError",
    "TurnInterrupted",
    "Usage",
    "Workspace",
    "WouldDeadlock",
    "WouldWaitForItself",
    "current_agent",
    "tool",
]


HANDING_ON = [ikigai_actors, ikigai_actors.testing, ikigai_actors.shell, ikigai_actors.cluster]
"""Packages whose names are looked up when they are used."""


def test_the_package_exports_these_names_sorted() -> None:
    assert ikigai_actors.__all__ == PUBLIC


@pytest.mark.parametrize("package", HANDING_ON, ids=lambda package: package.__name__)
def test_every_export_is_there_and_documented_with_all_that_can_be_called_of_it(package: ModuleType) -> None:
    for name in package.__all__:
        export = getattr(package, name)
        assert export.__doc__, name
        assert not export.__doc__.startswith(f"{name}("), f"{name} has only what dataclass says of it"
        for part, value in vars(export).items() if inspect.isclass(export) else ():
            if not part.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
                assert inspect.getdoc(getattr(export, part)), f"{name}.{part}"


@pytest.mark.parametrize("package", HANDING_ON, ids=lambda package: package.__name__)
def test_type_checkers_see_the_same_names(package: ModuleType) -> None:
    tree = ast.parse(Path(package.__path__[0], "__init__.pyi").read_text(encoding="utf-8"))
    aliases = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(alias.name for alias in aliases) == package.__all__
    assert all(alias.asname == alias.name for alias in aliases), "without it the name is private to the stub"


@pytest.mark.parametrize("package", HANDING_ON, ids=lambda package: package.__name__)
def test_no_module_has_the_name_of_an_export_which_it_would_hide_once_it_is_imported(package: ModuleType) -> None:
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert modules.isdisjoint(package.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ikigai_actors, "Manager")


def test_importing_the_system_imports_neither_the_model_client_nor_a_database_server_client() -> None:
    code = (
        "import sys; from ikigai_actors import ActorSystem, McpServer; McpServer('uvx mcp-server-time'); "
        "print([m for m in sys.modules if '.' not in m])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"anthropic", "psycopg", "aiohttp", "hypothesis", "mcp"} & set(ast.literal_eval(loaded))
