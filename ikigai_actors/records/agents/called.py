"""Units about agents that are named by a text. The name is looked up in the transaction that writes."""

from collections.abc import Callable

from ikigai_actors.arguments import shown
from ikigai_actors.errors import AgentNotFound, BadInput, IkigaiError, StoreError
from ikigai_actors.records.agents.identity import is_agent_uuid
from ikigai_actors.records.agents.registry import Handle, find
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Addressed, LockedRows, Unit


def about(agent: Handle | str, kind: type[Unit], make: Callable[[str], Unit]) -> Unit:
    """Make a unit about an agent that is named by a handle, or by a text as in `find`.

    Args:
        agent: the agent. A whole uuid is not looked up.
        kind: the class of the unit.
        make: makes the unit of the agent's uuid.

    Raises:
        BadInput: the value names no agent. A name that nobody has is refused when the unit is written.
    """
    text = getattr(agent, "uuid", agent)
    if not isinstance(text, str):
        raise BadInput(f"Expected an agent, or its uuid, name or prefix; got {shown(agent)}.")
    return make(text) if is_agent_uuid(text) else _Called(text, kind, make)


class _Called(Addressed):
    """A unit about an agent that a text names. The agent is looked up when the rows are locked.

    Raises the errors of `find` and of the unit.
    """

    __slots__ = ("_called", "_found", "_make", "_refusal", "alone", "concerns_hosts", "concerns_others", "tree")

    def __init__(self, called: str, kind: type[Unit], make: Callable[[str], Unit]) -> None:
        self.alone, self.tree = kind.alone, kind.tree
        self.concerns_others, self.concerns_hosts = kind.concerns_others, kind.concerns_hosts
        self._called, self._make = called, make
        self._found: Unit | None = None
        self._refusal: IkigaiError = AgentNotFound(f"Nobody is called {called!r}.", called)

    def look_up(self, tx: Transaction) -> None:
        self._found = None
        try:
            self._found = self._make(find(tx, self._called).uuid)
        except StoreError:
            raise
        except IkigaiError as refusal:
            self._refusal = refusal
        if isinstance(self._found, Addressed):
            self._found.look_up(tx)

    @property
    def touches(self) -> tuple[str, ...]:
        return () if self._found is None else self._found.touches

    def write(self, tx: Transaction, locked: LockedRows) -> object:
        if self._found is None:
            raise self._refusal
        return self._found.write(tx, locked)
