"""The team of the tour, in a process of its own that is killed in the middle of an answer.

    python -m ikigai_actors.shell.cli.demo_team DATABASE

The process writes each `Word` as a line of JSON on its standard output.
"""

import json
import sys
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

from ikigai_actors.agent.subscriptions import Event, Streamed
from ikigai_actors.providers.offline import OfflineProvider
from ikigai_actors.reach.agent_lists import all_agents
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.verbs.text.tree import tree_lines

TOLD, SAYS, PIECE, TREE, HISTORIES = "told", "says", "piece", "tree", "histories"
"""The kinds of lines: a prompt, an answer, a piece of an answer, the tree, and the committed histories."""

FIRST, SLOW_ONE = "shop", "seller"
"""The names of agent 0, and of the agent whose answer is cut off by the kill."""

_PACE = 0.25
"""Seconds between the words of the slow answer."""

_PATIENCE = 30.0

_LAST_PROMPT = "You sell to cafés in Lyon and Paris. What should we know?"


class Word(NamedTuple):
    """A line that the process of the team writes: its kind, the agent, and a text."""

    kind: str
    agent: str
    text: str


def work(database: str) -> None:
    """Prompt three agents until the process is killed, and write their answers as lines of `Word`."""
    pieces = SimpleQueue[str]()
    with open_team(database, _PACE) as system:
        root = system.root
        root.rename(FIRST)
        _ask(root, FIRST, "Our shop sells tea.")
        buyer = root.fork(name="buyer")
        seller = root.fork(name=SLOW_ONE, model="slow:")
        _ask(buyer, "buyer", "You buy from farms in Assam.")
        _tell(Word(TOLD, SLOW_ONE, _LAST_PROMPT))
        system.subscribe(lambda event: _hear(seller, event, pieces.put), only=(Streamed,))
        seller.prompt(_LAST_PROMPT)
        first = pieces.get(timeout=_PATIENCE)  # now the prompt is committed
        _tell(Word(TREE, "", drawn_tree(system)))
        _tell(Word(HISTORIES, "", json.dumps(histories(system))))
        _tell(Word(PIECE, SLOW_ONE, first))
        while True:
            _tell(Word(PIECE, SLOW_ONE, pieces.get(timeout=_PATIENCE)))


def open_team(database: str, pace: float) -> ActorSystem:
    """Open the team's system; the slow agent waits ``pace`` seconds after each word."""
    return ActorSystem.open(database, OfflineProvider(), providers={"slow": OfflineProvider(pace=pace)}, resume=False)


def drawn_tree(system: ActorSystem) -> str:
    """Return the tree of the system's agents as text."""
    records, own = all_agents(system)
    return "\n".join(line.text for line in tree_lines(records, own, system.state_of))


def histories(system: ActorSystem) -> dict[str, list[str]]:
    """Return the kinds and texts of each agent's messages, by uuid."""
    return {
        record.uuid: [f"{message.kind}: {message.content}" for message in system.handle(record.uuid).history()]
        for record in system.agents()
    }


def _ask(agent: AgentRef, name: str, text: str) -> None:
    _tell(Word(TOLD, name, text))
    _tell(Word(SAYS, name, agent.prompt(text).get(timeout=_PATIENCE).text))


def _hear(agent: AgentRef, event: Event, take: Callable[[str], object]) -> None:
    if isinstance(event, Streamed) and event.agent_uuid == agent.uuid:
        take(event.text)


def _tell(word: Word) -> None:
    print(json.dumps(word), flush=True)


if __name__ == "__main__":
    work(sys.argv[1])
