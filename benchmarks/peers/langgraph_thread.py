"""LangGraph: ``update_state`` on an earlier checkpoint forks a thread.

With ``MessagesState``, what most programs use, a checkpoint holds every message. With a ``DeltaChannel`` (beta) the
first fork of a checkpoint writes what is new; each further one writes the whole history, and is what is measured.
"""

import sqlite3
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer

from benchmarks.population import PROMPT, REPLY


class DeltaState(TypedDict):
    """Messages of which a checkpoint holds what is new."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


class LangGraphThread:
    """A thread in an SQLite file, of a graph with one node."""

    state: Any = MessagesState

    def __init__(self, directory: Path, count: int) -> None:
        self._connection = sqlite3.connect(directory / "langgraph.db", check_same_thread=False)
        builder: Any = StateGraph(self.state)
        builder.add_node("model", lambda state: {})
        builder.add_edge(START, "model")
        builder.add_edge("model", END)
        self._graph: Any = builder.compile(checkpointer=SqliteSaver(self._connection))
        messages = [
            HumanMessage(PROMPT.format(place), id=str(place))
            if place % 2
            else AIMessage(REPLY.format(place), id=str(place))
            for place in range(1, count + 1)
        ]
        thread = {"configurable": {"thread_id": "benchmark"}}
        self._origin = self._graph.update_state(thread, {"messages": messages}, as_node="model")
        self._forks = 0

    def fork(self) -> None:
        """See `Session.fork`."""
        self._forks += 1
        said = HumanMessage("Look at it from the other side.", id=f"fork {self._forks}")
        self._graph.update_state(self._origin, {"messages": [said]}, as_node="model")

    def rest(self) -> None:
        """Nothing: the next fork begins at the same checkpoint."""

    def close(self) -> None:
        """See `Session.close`."""
        self._connection.close()


class DeltaThread(LangGraphThread):
    """The same with a `DeltaChannel`."""

    state = DeltaState
