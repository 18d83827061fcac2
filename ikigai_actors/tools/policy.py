"""What the runtime must know of a tool before it runs it: whether it may, and how; and the names that are reserved."""

from dataclasses import dataclass
from enum import StrEnum

FORK, EXIT, KILL = "fork", "exit", "kill"
SEND, CHECK_MAIL, READ_MAIL, WAIT = "send", "check_mail", "read_mail", "wait"
DOCUMENT_WRITE, DOCUMENT_READ = "document_write", "document_read"
DOCUMENT_LIST, DOCUMENT_DELETE = "document_list", "document_delete"
PROCESS = (
    *(FORK, EXIT, KILL, SEND, CHECK_MAIL, READ_MAIL, WAIT),
    *(DOCUMENT_WRITE, DOCUMENT_READ, DOCUMENT_LIST, DOCUMENT_DELETE),
)
"""The calls that the agent performs itself."""

SHELL = "bash"
"""The tool that is a shell of each agent's own; see `Workspace`."""


class Policy(StrEnum):
    """Whether a tool may be used."""

    ALLOW = "allow"
    ASK = "ask"
    """A person, or a callback of the program, approves each call or denies it."""
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """What the machine must know of a tool."""

    idempotent: bool = False
    """Running it twice does what running it once does."""
    alone: bool = False
    """It runs when no other call of the reply does."""
    policy: Policy = Policy.ALLOW
    """Whether its calls may run."""
    denial: str = ""
    """What the model is told when the policy is to deny them."""
