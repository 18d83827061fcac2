"""The public surface: few names, pinned."""

import ast
import builtins
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from pydoc import plain, render_doc
from types import ModuleType
from typing import get_args, get_type_hints

import pytest

import ikigai_actors
import ikigai_actors.behaviour
import ikigai_actors.cluster
import ikigai_actors.programs
import ikigai_actors.shell
import ikigai_actors.testing
from ikigai_actors import (
    ActorSystem,
    AgentRef,
    AsyncActorSystem,
    AsyncAgentRef,
    budgets,
    errors,
    events,
    hooks,
    providers,
    tools,
    types,
)
from ikigai_actors.agent.subscriptions import Event

PUBLIC = [
    "ActorSystem",
    "AgentDead",
    "AgentNotFound",
    "AgentRecord",
    "AgentRef",
    "AgentStopped",
    "AmbiguousAgent",
    "AnthropicProvider",
    "AsyncActorSystem",
    "AsyncAgentRef",
    "BadInput",
    "Budget",
    "BudgetExceeded",
    "Child",
    "Delta",
    "Died",
    "DocumentChanged",
    "DocumentNotFound",
    "Exit",
    "FunctionProvider",
    "Future",
    "HistoryPruned",
    "IkigaiError",
    "Kind",
    "Mail",
    "MailboxFull",
    "Mailed",
    "McpServer",
    "Message",
    "NameTaken",
    "NoHost",
    "NoTurn",
    "OfflineProvider",
    "OpenAIProvider",
    "OutputError",
    "PendingCall",
    "Provider",
    "ProviderError",
    "Reply",
    "Request",
    "ScriptedProvider",
    "Signal",
    "StoreError",
    "StoreInUse",
    "StoreTrouble",
    "Stream",
    "Streamed",
    "SystemClosed",
    "TimedOut",
    "Timer",
    "ToolCall",
    "TurnInterrupted",
    "Usage",
    "Withdrawn",
    "Workspace",
    "WouldDeadlock",
    "attachment",
    "current_agent",
    "read_output",
    "tool",
]


DOORS = [providers, tools, budgets, events, hooks, types]
"""Modules with the public names of one subject each, beside `errors`."""

HANDING_ON = [
    ikigai_actors, *DOORS, ikigai_actors.programs, ikigai_actors.testing, ikigai_actors.shell, ikigai_actors.cluster,
    ikigai_actors.behaviour,
]  # fmt: skip
"""Modules whose names are looked up when they are used."""

EVERY: dict[str, object] = {
    **{name: value for name, value in vars(errors).items() if inspect.isclass(value)},
    **{name: getattr(door, name) for door in (ikigai_actors, *DOORS) for name in door.__all__},
}
"""Every public name of a program, but for those of experiments, tests, shells and clusters."""


OURS = ("ikigai_actors", "supervisors")

INNER = {
    "Asked", "AttachedSystem", "Clock", "Copied", "DataclassValue", "FileTree", "ModelValue", "Platform", "RemoteTools",
    "Scope", "Subject", "System", "Trait", "TreeMerge", "TreeStore", "Until", "WaitTarget", "WrongArguments",
}  # fmt: skip
"""Types of members that only the runtime and the kit use, and of what `ActorSystem.attach` returns: as the methods of
`ActorSystem` say it.
"""

MADE_BY_US = {
    "ActorSystem", "AgentRef", "AsyncActorSystem", "AsyncAgentRef", "AsyncEventFeed", "AsyncReplyStream", "Documents",
    "Endpoints", "EventFeed", "FunctionTool", "Mailbox", "ReplyStream", "Subscription", "Subscriptions",
}  # fmt: skip
"""Classes that users do not make by calling them."""


def members(name: str) -> Iterator[object]:
    """An export, and whatever of it is public and can be called or read."""
    export = EVERY[name]
    yield export
    for base in inspect.getmro(export) if inspect.isclass(export) else ():
        for part, value in vars(base).items() if base.__module__.startswith(OURS) else ():
            if not part.startswith("_") or (part == "__init__" and name not in MADE_BY_US):
                yield getattr(value, "fget", None) or getattr(value, "__func__", value)


def types_of(hint: object) -> Iterator[type]:
    """The classes that an annotation names."""
    if inspect.isclass(hint):
        yield hint
    for argument in hint if isinstance(hint, list) else get_args(hint):
        yield from types_of(argument)


def hints(member: object) -> Iterator[object]:
    """What a signature, or a record's fields, say of types."""
    try:
        yield from get_type_hints(member).values()
    except TypeError:  # a value without annotations
        return


def raised(member: object) -> list[str]:
    """The exceptions that a docstring names."""
    said = inspect.getdoc(member) or ""
    section = re.search(r"^Raises:\n((?:    .*\n?)+)", said, re.MULTILINE)
    return re.findall(r"^    (\w+):", section[1], re.MULTILINE) if section else re.findall(r"Raises `(\w+)`", said)


def test_a_prompt_of_python_completes_every_name_before_it_is_used() -> None:
    rooms = ("", ".behaviour", ".budgets", ".events", ".hooks", ".providers", ".tools", ".types")
    code = "import importlib\nfor room in {rooms}:\n m = importlib.import_module('ikigai_actors' + room)\n"
    code = code.format(rooms=rooms) + " print(*(set(m.__all__) - set(dir(m))), end='')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == ""


def test_whatever_a_signature_an_event_or_a_docstring_names_can_be_imported() -> None:
    known = {*EVERY, *INNER, *dir(ikigai_actors.programs), *dir(builtins)}
    every = [(name, member) for name in EVERY for member in members(name)]
    named = {
        (name, kind.__name__)
        for name, member in every
        for hint in (*hints(member), *get_args(Event))
        for kind in types_of(hint)
        if kind.__module__.startswith(OURS)
    }
    named |= {(name, error) for name, member in every for error in raised(member)}
    assert sorted((name, missing) for name, missing in named if missing not in known) == []


def test_a_name_is_public_in_one_place_only_but_for_those_that_most_programs_use() -> None:
    homes = Counter(name for door in DOORS for name in door.__all__ if not hasattr(errors, name))
    assert [name for name, count in homes.items() if count > 1] == []
    assert len(PUBLIC) <= 60
    assert [name for name in PUBLIC if name not in EVERY] == []


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
    tree = ast.parse(Path(f"{package.__file__}i").read_text(encoding="utf-8"))
    aliases = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(alias.name for alias in aliases) == package.__all__
    assert all(alias.asname == alias.name for alias in aliases), "without it the name is private to the stub"


@pytest.mark.parametrize("package", HANDING_ON, ids=lambda package: package.__name__)
def test_no_module_has_the_name_of_an_export_which_it_would_hide_once_it_is_imported(package: ModuleType) -> None:
    modules = {module.name for module in pkgutil.iter_modules(getattr(package, "__path__", []))}
    assert modules.isdisjoint(package.__all__)


def test_both_faces_of_a_handle_have_the_same_methods_with_the_same_arguments_and_texts() -> None:
    def face(face: type, *apart: str) -> dict[str, tuple[list[inspect.Parameter], str | None]]:
        every = {name: value for name, value in inspect.getmembers(face) if name[0] != "_" and name not in apart}
        called = {name: value for name, value in every.items() if callable(value)}
        assert {name for name in every if name not in called} == {
            "budget", "name", "parent", "record", "state", "supervisor", "system", "uuid",
        }  # fmt: skip
        return {
            name: ([*inspect.signature(value).parameters.values()], inspect.getdoc(value))
            for name, value in called.items()
        }

    assert face(AgentRef, "aio") == face(AsyncAgentRef, "sync")


SYSTEM = {
    "agent", "agents", "approvals", "attached", "checkpoint", "close", "documents", "endpoints", "events", "export",
    "find", "groups", "handle", "hosts", "import_", "iter_agents", "kinds", "move", "questions", "root", "send",
    "skills", "spending", "state_of", "statistics", "subscribe", "subscriptions", "up", "verify",
}  # fmt: skip
HOST = {"open", "attach", "drain", "resume"}
AGENT = {
    "adopt", "aio", "ask", "budget",
    "cancel_timer", "charge", "check_mail", "children", "clear", "compact", "configure",
    "context", "delete_mail", "demonitor", "diff", "exit", "fork", "fork_many", "grant", "history", "join", "kill",
    "leave", "mails", "mark", "merge", "merge_files", "monitor", "move", "name", "next_times", "note", "open_mail",
    "parent", "prompt",
    "ranges", "read_mail", "record", "remind", "remove_rule", "rename", "reply", "resume", "rewind", "rules", "send",
    "set_budget", "set_rule", "signal", "sleep",
    "state", "statistics", "steer", "stream", "supervise", "supervisor", "system", "timers", "tools", "uncompact",
    "undo", "use_hooks", "use_instructions", "use_kinds", "use_skills", "uuid", "wait",
}  # fmt: skip


def offered(face: object) -> set[str]:
    """What is offered to whoever completes names at an object."""
    return {name for name in dir(face) if not name.startswith("_")}


def test_systems_and_handles_offer_the_interface_for_programs_and_nothing_else(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with ActorSystem.open(database, "offline") as system, ActorSystem.attach(database) as attached:
        assert offered(system) == SYSTEM | HOST
        assert offered(attached) == SYSTEM | {"open"}
        assert offered(system.root) == AGENT
        assert offered(system.root.aio) == AGENT - {"aio"} | {"sync"}
        assert offered(AsyncActorSystem(system)) == SYSTEM - {
            "attached",
            "iter_agents",
            "kinds",
            "skills",
            "state_of",
        } | HOST | {"sync"}


def test_help_shows_what_each_face_of_a_command_gives() -> None:
    annotations = [
        inspect.signature(fork).return_annotation for fork in (AgentRef.fork, AgentRef.kill, AgentRef.compact)
    ]
    either = "AgentRef | list[AgentRef]" if sys.version_info >= (3, 14) else "Union[AgentRef, list[AgentRef]]"
    assert annotations == [either, "list[AgentRef]", "Compacted"]
    assert inspect.signature(AsyncAgentRef.children).return_annotation == "Future[list[AsyncAgentRef]]"
    shown = " ".join(plain(render_doc(AgentRef.fork)).split())  # Python 3.13 breaks the line, and 3.14 quotes nothing
    shown = shown.replace(" )", ")").replace("'", "")
    assert "prompt: str | None = None, *, name: str | None = None, count: int | None = None," in shown
    assert f"timeout: float | None = None) -> {either}" in shown
    assert "Make a child that inherits this agents history" in shown


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ikigai_actors, "Manager")


@pytest.mark.thorough("a fresh interpreter; every run has one in test_layers.py")
def test_importing_the_system_imports_neither_the_model_client_nor_a_database_server_client() -> None:
    code = (
        "import sys; from ikigai_actors import ActorSystem, McpServer; McpServer('uvx mcp-server-time'); "
        "print([m for m in sys.modules if '.' not in m])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"anthropic", "psycopg", "aiohttp", "hypothesis", "mcp"} & set(ast.literal_eval(loaded))
