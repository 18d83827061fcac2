"""LangGraph: workers are sub-graphs that `Send` starts, approval is an `interrupt`, and each step has its own node."""

import operator
import sqlite3
import threading
import time
from itertools import count
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from psycopg import OperationalError

from benchmarks.durability import kit


class State(TypedDict, total=False):
    run: str
    agent: str
    messages: Annotated[list[kit.Message], operator.add]


class Team(State, total=False):
    results: Annotated[list[kit.Message], operator.add]


def model(state: State) -> Any:
    return {"messages": [kit.ask(state["messages"])]}


def ahead(state: State) -> Any:
    calls = kit.calls(state["messages"][-1])
    return {"pause": "pause", "charge": "act", "charge_big": "approval"}[calls[0][1]] if calls else END


def pause(state: State) -> Any:
    [(call_id, _, arguments)] = kit.calls(state["messages"][-1])
    time.sleep(arguments["seconds"])
    return {"messages": [kit.result(call_id, "over")]}


def approval(state: State) -> Any:
    interrupt(f"May {state['agent']} charge?")


def act(state: State) -> Any:
    [(call_id, _, _)] = kit.calls(state["messages"][-1])
    return {"messages": [kit.result(call_id, kit.charge(state["run"], state["agent"], f"{state['run']}-{call_id}"))]}


inner: Any = StateGraph(State)
for node in (model, pause, approval, act):
    inner.add_node(node.__name__, node)
inner.add_edge(START, "model")
inner.add_conditional_edges("model", ahead, ["pause", "act", "approval", END])
inner.add_edge("pause", "model")
inner.add_edge("approval", "act")
inner.add_edge("act", "model")
worker = inner.compile()


def work(state: Any) -> Any:
    end = worker.invoke({"run": state["run"], "agent": state["agent"], "messages": state["messages"]})
    return {"results": [kit.result(state["call"], end["messages"][-1]["content"])]}


def plan(state: Team) -> Any:
    return {"messages": [kit.ask(state["messages"])]}


def delegate(state: Team) -> Any:
    return [
        Send("work", {
            "run": state["run"], "agent": arguments["worker"], "call": call_id,
            "messages": [{"role": "user", "content": arguments["prompt"]}],
        })
        for call_id, _, arguments in kit.calls(state["messages"][-1])
    ]  # fmt: skip


def total(state: Team) -> Any:
    results = sorted(state["results"], key=lambda result: str(result["tool_call_id"]))
    return {"messages": [*results, kit.ask([*state["messages"], *results])]}


outer: Any = StateGraph(Team)
for team_node in (plan, work, total):
    outer.add_node(team_node.__name__, team_node)
outer.add_edge(START, "plan")
outer.add_conditional_edges("plan", delegate, ["work"])
outer.add_edge("work", "total")
outer.add_edge("total", END)
if kit.STORE.startswith("postgresql"):
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    check = ConnectionPool.check_connection
    saver: Any = PostgresSaver(ConnectionPool(kit.STORE, kwargs=options, open=True, check=check))
else:
    from langgraph.checkpoint.sqlite import SqliteSaver

    saver = SqliteSaver(sqlite3.connect(f"{kit.STORE}/langgraph.db", check_same_thread=False))
saver.setup()
graph = outer.compile(checkpointer=saver)
running: dict[str, threading.Lock] = {}


def thread(run: str) -> Any:
    return {"configurable": {"thread_id": run}}


def go(run: str, command: Any) -> None:
    with running.setdefault(run, threading.Lock()):
        for tries in count():
            try:
                if tries and not graph.get_state(thread(run)).interrupts:  # resume:
                    command = None  # resume: what was going on goes on; an answer to an open question goes out again
                graph.invoke(command, thread(run), durability="sync")
                break
            except OperationalError:  # resume:
                time.sleep(1)  # resume:


def start(run: str) -> None:
    graph.update_state(thread(run), {"run": run, "messages": [kit.prompt(run, "lead")]}, as_node=START)  # kept
    threading.Thread(target=go, args=(run, None), daemon=True).start()


def result(run: str) -> str | None:
    state = graph.get_state(thread(run))
    return None if state.tasks or not state.values else str(state.values["messages"][-1]["content"])


def waiting(run: str) -> bool:
    free = running.setdefault(run, threading.Lock())
    return not free.locked() and bool(graph.get_state(thread(run)).interrupts)


def approve(run: str) -> bool:
    go(run, Command(resume=True))  # there is no earlier moment at which an approval is known to be kept
    return True


for run in {checkpoint.config["configurable"]["thread_id"] for checkpoint in saver.list(None)}:  # resume:
    state = graph.get_state(thread(run))  # resume:
    if state.tasks and not state.interrupts:  # resume: `next` is empty between the writes of a step and its checkpoint
        threading.Thread(target=go, args=(run, None), daemon=True).start()  # resume:
kit.serve(start=start, result=result, waiting=waiting, approve=approve)
