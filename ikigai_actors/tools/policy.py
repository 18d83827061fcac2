"""The traits of a tool that the runtime must know before it runs it: whether it may run, and how."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

SHELL = "bash"
"""The name of the tool that gives each agent a shell; see `Workspace`."""


class Policy(StrEnum):
    """Whether a tool may be used."""

    ALLOW = "allow"
    ASK = "ask"
    """A person, or a callback of the program, approves each call or denies it."""
    DENY = "deny"


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
    """Whether its calls may run."""
    denial: str = ""
    """The result of its calls when the policy denies them."""
