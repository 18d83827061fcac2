"""Changes of the registry since a version: statuses, ends, names, interrupted turns.

Every such change locks the row of ``tree``, increments its version, and writes the new version into the row of each
changed agent. The lock orders these transactions, so a reader that has seen version n has seen all changes up to n. So
a host stores only one number, the latest version that it has seen, to find the changes of its agents.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ikigai_actors.records.agents.registry import tree_version
from ikigai_actors.records.lives.exit_mails import End
from ikigai_actors.store.base import Transaction
from supervisors.causes import Cause
from supervisors.signals import Status


class AgentChange(NamedTuple):
    """The new state of an agent whose row has changed."""

    uuid: str
    status: Status
    reason: str
    """The reason for its status."""
    end: End | None
    """How it died; None while it lives."""
    name: str | None
    interrupted: int
    """The open turn, if another process has interrupted it; else 0."""
    prompt: int
    """The number of the latest prompt that another process has interrupted before its turn; else 0."""


class Changes(NamedTuple):
    """The agents that have changed after a version of the tree, and the new version."""

    version: int
    """The version of the tree up to which changes were read."""
    agents: Sequence[AgentChange] = ()


def changes_since(tx: Transaction, version: int) -> Changes:
    """Return the agents that have changed after a version of the tree, in no order."""
    rows = tx.ask("changes", since=version)
    return Changes(tree_version(tx), [_change(*row) for row in rows()])


def _change(
    uuid: str,
    status: str,
    cause: str | None,
    reason: str | None,
    sender: str | None,
    name: str | None,
    turn: int,
    interrupted: int,
    prompt: int,
) -> AgentChange:
    end = End(Cause(cause or Cause.KILLED), reason or "", sender) if status == Status.DEAD else None
    return AgentChange(uuid, Status(status), reason or "", end, name, turn if turn == interrupted else 0, prompt)
