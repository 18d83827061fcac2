"""The traits of a tool that the runtime needs before it runs the tool: whether it may run, and how."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

SHELL = "bash"
"""The name of the tool that gives each agent a shell; see `Workspace`."""

READ = "read"
"""The name of the tool that reads files; see `Workspace`."""


class Policy(StrEnum):
    """The decision on calls of a tool: they may run, a person is asked, or they are denied."""

    ALLOW = "allow"
    ASK = "ask"
    """A person, or a callback of the program, approves or denies each call."""
    DENY = "deny"


class Compared(StrEnum):
    """The kinds of texts to which the patterns of rules apply."""

    COMMAND = "command"
    """The words of a command."""
    PATH = "path"
    """A path. In a pattern ``*`` matches any text within a name, and ``**`` any names."""


class Subject(NamedTuple):
    """The argument of a tool to which the patterns of rules apply, and the kind of its text."""

    compared: Compared
    of: Callable[[str, Mapping[str, Any]], str]
    """Returns the text to which patterns apply, from the agent's uuid and the arguments of the call. It may read
    files.
    """


class Asked(NamedTuple):
    """The text of one call to which the patterns of rules apply, and its kind."""

    compared: Compared
    text: str


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """The traits of a tool, which decide whether and how its calls may run."""

    builtin: ClassVar[bool] = False
    """Whether the agent itself carries out the calls; see `BuiltinTraits`."""

    idempotent: bool = False
    """Whether two runs of the tool have the same effect as one."""
    read_only: bool = False
    """Whether the tool changes nothing outside."""
    alone: bool = False
    """Whether the tool runs only when no other call of the reply runs."""
    policy: Policy = Policy.ALLOW
    """Whether calls may run if no rule decides."""
    asks: Policy = Policy.ASK
    """The effect of `Policy.ASK` in this process: somebody is asked, or all such calls are allowed, or all denied."""
    denial: str = ""
    """The result of calls that are denied without a rule."""
    unfenced: bool = False
    """Whether the tool runs commands with all rights of the user, because its intended fence is missing or has gaps.
    Then no rule can allow all of it.
    """
    subject: Subject | None = None
    """The part of the calls to which the patterns of rules apply; None if the tool has no patterns."""
    confined: bool = False
    """Whether the tool changes only files that fork with its agent."""
    deferred: bool = False
    """Whether a model must find the tool before its requests have the description."""
    about: str = ""
    """The words by which the tool is found; empty for a tool that every request has."""
    definition: str = ""
    """The digest of the tool's definition in this process; empty for a built-in call."""
    definition_body: str = ""
    """The body of the tool's definition (see `ikigai_actors.tools.definitions`); empty if there is none."""
    build: str = ""
    """The build of this process (see `ikigai_actors.tools.builds`)."""
