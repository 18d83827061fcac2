"""How the results of built-in calls name agents."""

from ikigai_actors.records.agents import registry
from ikigai_actors.store.base import Transaction

OUTSIDE = "a person outside"
"""The name, for models, of a sender or author who is no agent."""


class CalledAs(dict[str | None, str]):
    """The names of agents for models, by uuid. Each is looked up when first asked for. Valid within one transaction."""

    def __init__(self, tx: Transaction) -> None:
        super().__init__({None: OUTSIDE})
        self._tx = tx

    def __missing__(self, uuid: str | None) -> str:
        label = self[uuid] = registry.shown_name_of(self._tx, str(uuid))
        return label
