"""The rules of a machine for kinds of agents, and what must hold for them.

The law, by the name with which its failures begin:

    kind        the model of an agent of a kind, and of whoever is forked from it at any position, reads what the kind
                says
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ikigai_actors import AgentRef
from ikigai_actors.providers.base import Request
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE, Stage
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange

KIND, TEXT = "reviewer", "You review the plans of others."


@cache
def _place() -> TemporaryDirectory[str]:
    place: TemporaryDirectory[str] = TemporaryDirectory()
    file = Path(place.name, f"{KIND}.md")
    file.write_text(f"---\nname: {KIND}\ndescription: Reviews plans.\ntools: work\n---\n{TEXT}\n", encoding="utf-8")
    return place


class KindRules(Stage):
    """The part of a machine that has these rules."""

    def __init__(self) -> None:
        super().__init__()
        self.of_kind: set[str] = set()
        """The agents of the kind, and those that were forked from them and are supervised by them."""

    def watchers(self) -> tuple[Callable[[Sequence[StoredChange]], None], ...]:
        self.world.askers.append(self._asked)
        return (*super().watchers(), self._committed)

    @rule(who=AGENTS, prompt=st.sampled_from(("look", "see")))
    def fork_a_kind(self, who: int, prompt: str) -> None:
        """Fork an agent of a kind, which begins without the history of its parent."""
        if len(self.living()) >= self.LIMIT:
            return
        agent, text = self.agent(who), self.worded("prompt", prompt)
        self.attempt(lambda: agent.use_kinds(_place().name, timeout=PATIENCE))

        def born(child: AgentRef) -> None:
            self.ledger.known.setdefault(child.uuid)

        self.attempt(lambda: self.system.handle(agent.uuid).fork(text, kind=KIND, timeout=PATIENCE), born)

    def _committed(self, changes: Sequence[StoredChange]) -> None:
        for change in changes:
            if isinstance(change, RanStatement):
                of = change.parameters
                if change.query == "register" and of["parent"] == of["supervisor"] and of["parent"] in self.of_kind:
                    self.of_kind.add(of["uuid"])
            elif change.table == "messages" and _begins_kind(message := Message.from_row(change.row)):
                self.of_kind.add(message.agent_uuid)

    def _asked(self, request: Request) -> None:
        if request.agent in self.of_kind and TEXT not in request.system and request.model != "facts":
            self.world.process.broken(f"kind: the model of agent {request.agent} does not read what its kind says")


def _begins_kind(message: Message) -> bool:
    return message.kind == Kind.CLEAR and (message.data.get("kind") or {}).get("name") == KIND
