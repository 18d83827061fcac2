"""Principals: the persons and programs that make requests, and their rights.

    anna = Principal("anna", "Anna", frozenset({"approve", "lead"}), under=uuid)
    check_right(anna, Right.PROMPT, "fork")     # a right has those before it; raises `NotAllowed` without it

The roles with the names of `Right` are rights. Other roles give no rights, but questions can be addressed to them.
``under`` is the uuid of the topmost agent in reach; None is all agents. The command line is `local`.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ikigai_actors.errors import NotAllowed
from ikigai_actors.verbs.rights import Right

if TYPE_CHECKING:
    from ikigai_actors.agent.turn.calls import PendingCall
    from ikigai_actors.reach.access import Access
    from ikigai_actors.records.once import KeyedCall
    from ikigai_actors.system.handles.ref import System

_LONGEST = 200
"""The most characters of a text that can be a token."""

RIGHTS = {right.name.lower(): right for right in Right}
"""The roles that are rights, by name."""


class Principal(NamedTuple):
    """A person or program that makes requests."""

    id: str
    """The id, which is recorded with everything that the principal does."""
    name: str
    """The name that people read."""
    roles: frozenset[str]
    under: str | None = None
    """The uuid of the topmost agent in reach; None for all agents."""

    @property
    def right(self) -> Right | None:
        """Return the highest right among the roles; None if no role is a right."""
        return max((right for word, right in RIGHTS.items() if word in self.roles), default=None)

    @property
    def only_looks(self) -> bool:
        """Return whether the principal may only read."""
        return self.right in (None, Right.LOOK)


def local(who: str) -> Principal:
    """Return the principal of this machine's user, who has all rights."""
    return Principal(who, who, frozenset({"operate"}))


def has_right(principal: Principal, needs: Right) -> bool:
    """Return whether a principal has a right, or a higher right."""
    return principal.right is not None and principal.right >= needs


def words_of_roles(principal: Principal) -> frozenset[str]:
    """Return the roles of a principal, and all rights that they include."""
    return principal.roles | {word for word, right in RIGHTS.items() if has_right(principal, right)}


def check_right(principal: Principal, needs: Right, what: str) -> None:
    """Raise `NotAllowed`, which names the request ``what``, unless the principal has the right."""
    if not has_right(principal, needs):
        roles = ", ".join(sorted(principal.roles)) or "none"
        raise NotAllowed(f"{what} needs the role {needs.name.lower()}; {principal.id} has {roles}.")


def check_may_decide(system: "System", call: "PendingCall", by: str, roles: Collection[str] | None) -> None:
    """Raise `NotAllowed` unless the question about a call asks the person or program that decides.

    ``roles``: the roles of the deciding principal, as `words_of_roles` returns them; None for this machine's operator.
    """
    from ikigai_actors.records.questions.asked import question_id
    from ikigai_actors.system.questions import check_addressed

    if roles is not None:
        check_addressed(system.questions.get(question_id(call.agent, call.asked_at)), by, roles)


@contextmanager
def acting_as(
    principal: Principal | None, access: "Access", *, reads: bool = False, call: "KeyedCall | None" = None
) -> Iterator[None]:
    """Let this thread commit for a principal within the block; None is the user of this machine.

    A principal that may only look, and an act that only reads, can commit nothing.
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
    """Return the principal of a valid token; None for other text. Reads the database each time.

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
