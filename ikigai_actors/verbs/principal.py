"""A principal: the person or program that asks for something, and what it may do.

    anna = Principal("anna", "Anna", frozenset({"approve", "lead"}), under=uuid)
    check_right(anna, Right.PROMPT, "fork")     # a right has those before it; raises `NotAllowed` without it

The rights are those of `Right`. Any other word among the roles gives no right: questions are addressed by it.
``under`` is the uuid of the topmost agent in reach; None is everything. The command line is `local`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ikigai_actors.errors import NotAllowed
from ikigai_actors.verbs.rights import Right

if TYPE_CHECKING:
    from ikigai_actors.reach.access import Access
    from ikigai_actors.records.once import KeyedCall
    from ikigai_actors.system.handles.ref import System

_LONGEST = 200
"""Characters of a text that may be a token."""

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


def words_of_roles(principal: Principal) -> frozenset[str]:
    """The roles of a principal, each right with those before it."""
    return principal.roles | {word for word, right in RIGHTS.items() if has_right(principal, right)}


def check_right(principal: Principal, needs: Right, what: str) -> None:
    """Raise `NotAllowed` unless a principal has the right to do what is named."""
    if not has_right(principal, needs):
        roles = ", ".join(sorted(principal.roles)) or "none"
        raise NotAllowed(f"{what} needs the role {needs.name.lower()}; {principal.id} has {roles}.")


@contextmanager
def acting_as(
    principal: Principal | None, access: "Access", *, reads: bool = False, call: "KeyedCall | None" = None
) -> Iterator[None]:
    """Within the block this thread commits for a principal; None is the user of this machine.

    Nothing is committed for one that may only look, and nothing by an act that reads. ``call``: the first unit claims
    its key.
    """
    from ikigai_actors.reach.asked import AskedRequest
    from ikigai_actors.store.asker import LOOKER, acting_for

    if principal is None:
        yield
        return
    looks = reads or principal.only_looks
    with acting_for(LOOKER if looks else AskedRequest(call, access.client.now_ms, principal.id)):
        yield


def principal_of_token(system: "System", secret: str, under: str | None = None) -> Principal | None:
    """The principal of a token that is in force; None for another text. Reads the database each time.

    ``under`` is the topmost agent, by uuid, for tokens that reach all agents.
    """
    from ikigai_actors.records.tokens import token_of

    if not secret or len(secret) > _LONGEST:
        return None
    now = system._clock.now_ms()
    token = system._store.read(lambda tx: token_of(tx, secret, now))
    if token is None:
        return None
    return Principal(token.principal, token.name, frozenset(token.roles.split()), token.under or under)
