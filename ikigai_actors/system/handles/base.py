"""The base of the sync and async handles: an agent of a system."""

from typing import Any, Generic, TypeVar

from ikigai_actors.errors import IkigaiError
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.system.directory import Directory

H = TypeVar("H")
"""The type of the handles that methods return: `AgentRef` or `AsyncAgentRef`."""


class BaseRef(Generic[H]):
    """A handle of one agent of a system. It also makes handles of other agents."""

    __slots__ = ("_output", "system", "uuid")

    def __init__(self, system: Directory, uuid: str, output: Any = None) -> None:
        """Make the handle of an agent.

        Args:
            system: the system.
            uuid: the uuid of the agent.
            output: the type of the value that was requested from the agent's first turn; None for any answer.
        """
        self.system = system
        self.uuid = uuid
        self._output = output

    def _ref(self, uuid: str, output: Any = None) -> H:
        """Return the handle of an agent, sync or async as this handle is."""
        raise NotImplementedError  # no ABC: handles are made all the time

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._told()}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        from ikigai_actors.system.notebook import mime_bundle

        return mime_bundle(self.system, repr(self), self.uuid)

    def _told(self) -> str:
        """Return the agent's name and state as text for `repr`, as far as they can be read now."""
        try:
            if (actor := self.system._here(self.uuid)) is not None:
                return f"{actor.called} {actor.state.shown.value}"
            record = self.system._store.read(lambda tx: registry.get(tx, self.uuid))
            return f"{record.short} {self.system.state_of(record)}"
        except IkigaiError:  # the system is closed, or there is no such agent
            return words_of(self.uuid)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BaseRef) and (other.uuid, other.system) == (self.uuid, self.system)

    def __hash__(self) -> int:
        return hash(self.uuid)
