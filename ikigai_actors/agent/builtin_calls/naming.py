"""The names of agents in the results of built-in calls."""

from ikigai_actors.records.agents import registry
from ikigai_actors.store.base import Transaction

OUTSIDE = "a person outside"
"""The name, for models, of a sender or author who is no agent."""


class CalledAs(dict[str | None, str]):
    """A mapping from the uuids of agents to the names by which models are shown them.

    A name is looked up in the database when it is first needed. Use it within one transaction.
    """

    def __init__(self, tx: Transaction) -> None:
        super().__init__({None: OUTSIDE})
        self._tx = tx

    def __missing__(self, uuid: str | None) -> str:
        label = self[uuid] = registry.shown_name_of(self._tx, str(uuid))
        return label
