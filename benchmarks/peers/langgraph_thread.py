"""LangGraph: ``update_state`` on an earlier checkpoint forks a thread, on the latest one appends to it.

With ``MessagesState``, what most programs use, a checkpoint holds every message. With a ``DeltaChannel`` (beta) the
first fork of a checkpoint writes what is new; each further one writes the whole history, and is what is measured. With
``durability="exit"`` a run writes one checkpoint at its end, and loses what it did when the process is killed before.
An update of the state, and so a fork, writes one checkpoint in any case.
"""

import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer

from benchmarks.population import PROMPT, REPLY

THREAD = {"configurable": {"thread_id": "benchmark"}}


class DeltaState(TypedDict):
    """Messages of which a checkpoint holds what is new."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


class Thread:
    """A thread of a graph with one node, with any saver."""

    durability = "async"
    """When a run writes its checkpoints: by default, beside the next step."""

    def __init__(self, saver: Any, state: Any, count: int) -> None:
        builder: Any = StateGraph(state)
        builder.add_node("model", _answer)
        builder.add_edge(START, "model")
        builder.add_edge("model", END)
        self._graph: Any = builder.compile(checkpointer=saver)
        messages = [
            HumanMessage(PROMPT.format(place), id=str(place))
            if place % 2
            else AIMessage(REPLY.format(place), id=str(place))
            for place in range(1, count + 1)
        ]
        self._origin = self._graph.update_state(THREAD, {"messages": messages}, as_node="model")
        self._said = 0

    def fork(self) -> None:
        """See `Session.fork`."""
        self._say(self._origin)

    def rest(self) -> None:
        """Nothing: the next fork begins at the same checkpoint."""

    def append(self, count: int) -> None:
        """See `Session.append`."""
        for _ in range(count):
            self._say(THREAD)

    def read(self) -> int:
        """See `Session.read`."""
        return len(self._graph.get_state(THREAD).values.get("messages", ()))

    def turn(self) -> None:
        """See `Session.turn`."""
        self._graph.invoke({"messages": [HumanMessage("And now?")]}, THREAD, durability=self.durability)

    def _say(self, where: Any) -> None:
        self._said += 1
        said = HumanMessage("Look at it from the other side.", id=f"said {self._said}")
        self._graph.update_state(where, {"messages": [said]}, as_node="model")


def _answer(state: Any) -> dict[str, Any]:
    """What stands for a model; an update of the state does not call it."""
    return {"messages": [AIMessage(f"Heard: {state['messages'][-1].content}")]}


class SqliteThread(Thread):
    """In an SQLite file."""

    state: Any = MessagesState

    def __init__(self, directory: Path, _: str, count: int) -> None:
        self._connection = sqlite3.connect(directory / "langgraph.db", check_same_thread=False)
        super().__init__(SqliteSaver(self._connection), self.state, count)

    def close(self) -> None:
        """See `Session.close`."""
        self._connection.close()


class DeltaThread(SqliteThread):
    """The same with a `DeltaChannel`."""

    state = DeltaState


class ExitThread(SqliteThread):
    """The same with one checkpoint a run."""

    durability = "exit"


class PostgresThread(Thread):
    """In PostgreSQL."""

    def __init__(self, _: Path, url: str, count: int) -> None:
        from langgraph.checkpoint.postgres import PostgresSaver

        self._stack = ExitStack()
        saver = self._stack.enter_context(PostgresSaver.from_conn_string(url))
        saver.setup()
        super().__init__(saver, MessagesState, count)

    def close(self) -> None:
        """See `Session.close`."""
        self._stack.close()


def long_turn(directory: Path, prompt: str, result: str, calls: int, channel: str, durability: str) -> None:
    """One turn of this many model calls. Each but the last calls a tool, which returns this result."""

    def model(state: Any) -> dict[str, Any]:
        step = sum(isinstance(message, AIMessage) for message in state["messages"]) + 1
        asked = [] if step == calls else [{"name": "look", "args": {"step": step}, "id": f"call_{step}"}]
        return {"messages": [AIMessage("" if asked else "Done.", tool_calls=asked)]}

    def tools(state: Any) -> dict[str, Any]:
        [call] = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(result, tool_call_id=call["id"])]}

    builder: Any = StateGraph(DeltaState if channel == "delta" else MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    builder.add_edge("tools", "model")
    connection = sqlite3.connect(directory / "langgraph.db", check_same_thread=False)
    try:
        graph = builder.compile(checkpointer=SqliteSaver(connection))
        options = {**THREAD, "recursion_limit": 3 * calls}
        ended = graph.invoke({"messages": [HumanMessage(prompt)]}, options, durability=durability)
        assert ended["messages"][-1].content == "Done."
    finally:
        connection.close()
