"""The traits of a tool that the runtime must know before it runs it: whether it may run, and how."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

SHELL = "bash"
"""The name of the tool that gives each agent a shell; see `Workspace`."""

READ = "read"
"""The name of the tool that reads files; see `Workspace`."""


class Policy(StrEnum):
    """Whether a tool may be used."""

    ALLOW = "allow"
    ASK = "ask"
    """A person, or a callback of the program, approves each call or denies it."""
    DENY = "deny"


class Compared(StrEnum):
    """The kinds of patterns of a tool."""

    COMMAND = "command"
    """The words of a command."""
    PATH = "path"
    """A path, in which ``*`` is any text within a name, and ``**`` any names."""


class Subject(NamedTuple):
    """The subjects with which the patterns of rules are compared, for a tool."""

    compared: Compared
    of: Callable[[str, Mapping[str, Any]], str]
    """The text, given the agent, by uuid, and the arguments of its call. It may look at files."""


class Asked(NamedTuple):
    """The request of a call, as a `Subject` says it."""

    compared: Compared
    text: str


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """The traits of a tool that decide whether and how it may run."""

    builtin: ClassVar[bool] = False
    """Whether the agent itself carries its calls out; see `BuiltinTraits`."""

    idempotent: bool = False
    """Whether running it twice does what running it once does."""
    read_only: bool = False
    """Whether it changes nothing outside."""
    alone: bool = False
    """Whether it runs only when no other call of the reply does."""
    policy: Policy = Policy.ALLOW
    """Whether its calls may run, where no rule decides."""
    asks: Policy = Policy.ASK
    """The rule for calls that ask, in this process: they do, or all of them are allowed, or denied."""
    denial: str = ""
    """The result of its calls when they are denied, and no rule decides."""
    unfenced: bool = False
    """Whether it runs whatever a model asks for as the user does, since the fence that it was to have is not there or
    not whole: then no rule allows all of it.
    """
    subject: Subject | None = None
    """The subjects with which the patterns of rules are compared; None where it has no patterns."""
    confined: bool = False
    """Whether it changes nothing outside but files that fork with its agent."""
    deferred: bool = False
    """Whether a model has to find it before requests have its description."""
    about: str = ""
    """The words by which it is found; empty for a tool that every request has."""
    definition: str = ""
    """The digest of its definition in this process; empty where it has none, as a built-in call."""
    definition_body: str = ""
    """The body of that definition (`ikigai_actors.tools.definitions`)."""
    build: str = ""
    """The build of this process (`ikigai_actors.tools.builds`)."""
