"""Builds: versions of an app's code, as hosts run it.

    ActorSystem.open(..., build="2026-11-28a")        # or: ikigai host --build 2026-11-28a

A build has the name that the app passes, or else a digest of the files that define its tools and programs, of the
definitions of these tools, and of the version of ikigai-actors. Hosts with the same code have the same digest, in
whatever directory the code lies. Modules that these files import are not part of the digest, and neither is data that a
function reads when it runs. If these matter, name your builds.

The tools of toolsets, such as those of an MCP server, are no part of a build: they change with another program. Their
definitions are compared one by one (`differing`).
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.tools.definitions import Definition, ToolDifference, definition_of

if TYPE_CHECKING:
    from ikigai_actors.tools.base import Toolset
    from ikigai_actors.tools.function import Tool

DIGITS = 16
"""The number of hexadecimal digits of a build's digest."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,63}")
_OURS = "ikigai_actors"


class Build(NamedTuple):
    """A version of an app's code: its name or digest, and the definitions of its tools."""

    id: str
    """The name of the build, or its digest."""
    tools: tuple[Definition, ...]
    """The definitions of the app's tools, without those of toolsets."""
    runtime: str
    """The version of ikigai-actors."""


def build_of(
    tools: "Iterable[Tool | Toolset]", code: Iterable[Callable[..., Any]] = (), name: str | None = None
) -> Build:
    """Return the build of this process.

    Args:
        tools: the tools of the app.
        code: further functions of the app, such as programs. The files that define them are part of the build.
        name: the name of the build; None for a digest.

    Raises:
        BadInput: the name cannot be used.
    """
    from ikigai_actors.tools.base import Toolset  # which loads what commands that only look do without

    every = [*tools]
    functions = [tool for tool in every if not isinstance(tool, Toolset)]
    definitions = tuple(sorted(definition_of(function.describe(), function.traits) for function in functions))
    runtime = _version()
    if name is not None:
        return Build(_checked(name), definitions, runtime)
    contents = sorted({digest for source in (*every, *code) if (digest := _digest_of_file(source))})
    whole = json.dumps([runtime, [definition.digest for definition in definitions], contents])
    return Build(sha256(whole.encode()).hexdigest()[:DIGITS], definitions, runtime)


def digests_by_name(definitions: Iterable[Definition]) -> str:
    """Return the digests of definitions, by the names of their tools, as JSON."""
    return json.dumps(
        {definition.name: definition.digest for definition in definitions}, sort_keys=True, separators=(",", ":")
    )


def differing(hosts: Mapping[str, Mapping[str, str]], bodies: Mapping[str, str]) -> tuple[ToolDifference, ...]:
    """Return the tools in which hosts differ, sorted by name.

    Args:
        hosts: the digests of the definitions of each host's tools, by the names of the hosts and of the tools.
        bodies: the bodies of definitions, by digest. If a body is missing, the difference is named ``definition``.
    """
    differences = []
    for tool in sorted({name for tools in hosts.values() for name in tools}):
        digests = {tools[tool] for tools in hosts.values() if tool in tools}
        without = tuple(sorted(host for host, tools in hosts.items() if tool not in tools))
        if len(digests) > 1 or without:
            differences.append(ToolDifference(tool, _differing_traits(digests, bodies), without))
    return tuple(differences)


def _differing_traits(digests: Iterable[str], bodies: Mapping[str, str]) -> tuple[str, ...]:
    known = [bodies.get(digest) for digest in digests]
    if len(known) < 2:
        return ()
    wholes = [json.loads(body) for body in known if body is not None]
    traits = {trait for whole in wholes for trait in whole}
    differ = {trait for trait in traits if any(whole.get(trait) != wholes[0].get(trait) for whole in wholes)}
    return tuple(sorted(differ | ({"definition"} if None in known else set())))


def _checked(name: object) -> str:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise BadInput(
            "Expected build to be 1 to 64 letters of English, digits or . _ + @ - that begin with a letter or digit; "
            f"got {shown(name)}."
        )
    return name


@cache  # which parses a whole file of metadata
def _version() -> str:
    try:
        return version("ikigai-actors")
    except PackageNotFoundError:  # run from its sources alone
        return ""


def _digest_of_file(code: object) -> str:
    """Return the digest of the file that defines a tool, a toolset or a function; empty for our own or no file."""
    code = getattr(code, "function", code)
    while isinstance(code, partial):
        code = code.func
    defined: Any = inspect.unwrap(code) if callable(code) and hasattr(code, "__module__") else code
    if not (inspect.isroutine(defined) or inspect.isclass(defined)):
        defined = type(defined)
    if str(getattr(defined, "__module__", "")).partition(".")[0] == _OURS:
        return ""
    with suppress(OSError, TypeError):  # made at run time, or it lies in an archive
        return sha256(Path(inspect.getfile(defined)).read_bytes()).hexdigest()
    return ""
