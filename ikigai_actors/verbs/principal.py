"""A principal: the person or program that asks for something, and what it may do.

    anna = Principal("anna", "Anna", frozenset({"approve", "lead"}), under=uuid)
    check_right(anna, Right.PROMPT, "fork")     # a right has those before it; raises `NotAllowed` without it

The rights are those of `Right`. Any other word among the roles gives no right: questions are addressed by it.
``under`` is the uuid of the topmost agent in reach; None is everything. The command line is `local`.
"""

from typing import NamedTuple

from ikigai_actors.errors import NotAllowed
from ikigai_actors.verbs.table import Right

RIGHTS = {right.name.lower(): right for right in Right}
"""The roles that are rights, by their words."""


class Principal(NamedTuple):
    """A person or program that asks."""

    id: str
    """Written beside all that the principal does."""
    name: str
    """The name that people read."""
    roles: frozenset[str]
    under: str | None = None
    """The topmost agent in reach, by uuid; None for all agents."""

    @property
    def right(self) -> Right | None:
        """The widest right among the roles; None for none."""
        return max((right for word, right in RIGHTS.items() if word in self.roles), default=None)

    @property
    def only_looks(self) -> bool:
        """Whether nothing that this principal asks for may change something."""
        return self.right in (None, Right.LOOK)


def local(who: str) -> Principal:
    """The principal of this machine's own user: everything is allowed."""
    return Principal(who, who, frozenset({"operate"}))


def has_right(principal: Principal, needs: Right) -> bool:
    """Whether a principal has a right, or one that includes it."""
    return principal.right is not None and principal.right >= needs


def check_right(principal: Principal, needs: Right, what: str) -> None:
    """Raise `NotAllowed` unless a principal has the right to do what is named."""
    if not has_right(principal, needs):
        roles = ", ".join(sorted(principal.roles)) or "none"
        raise NotAllowed(f"{what} needs the role {needs.name.lower()}; {principal.id} has {roles}.")
