"""Checkpoints of LangGraph: its own suite on both databases, and what that does not ask."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, OfflineProvider
from tests.kit.databases import sql

pytest.importorskip("langgraph.checkpoint.base", reason="needs the extra langgraph")

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.types import INTERRUPT

from ikigai_actors.guests.langgraph_saver import IkigaiSaver

pytestmark = pytest.mark.thorough("needs langgraph-checkpoint, of 30 MB with what it needs")

GROUPS = {"put", "put_writes", "get_tuple", "list", "delete_thread", "delete_for_runs", "copy_thread", "prune"}


@pytest.fixture
def system(durable: str) -> Iterator[ActorSystem]:
    with ActorSystem.open(durable, OfflineProvider()) as opened:
        yield opened


def config(thread: str, checkpoint: str | None = None) -> Any:
    named = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": named if checkpoint is None else {**named, "checkpoint_id": checkpoint}}


def put(saver: IkigaiSaver, thread: str, step: int, parent: Any = None, **metadata: Any) -> Any:
    details: Any = {"source": "loop", "step": step, "parents": {}, **metadata}
    channels: Any = {"n": step} if metadata.get("snapshot", True) else {}
    return saver.put(parent or config(thread), {**empty_checkpoint(), "channel_values": channels}, details, {})


def steps(saver: IkigaiSaver, thread: str) -> list[int]:
    return [checkpoint.metadata["step"] for checkpoint in saver.list(config(thread))]


def rows(system: ActorSystem) -> int:
    [(count,)] = system._store.read(lambda tx: sql(tx, "SELECT COUNT(*) FROM guest_entries"))
    return int(count)


def grown(saver: IkigaiSaver, thread: str, count: int) -> list[Any]:
    configs: list[Any] = []
    for step in range(count):
        configs.append(put(saver, thread, step, configs[-1] if configs else None))
    return configs


def test_the_suite_of_langgraph_passes(system: ActorSystem) -> None:
    conformance = pytest.importorskip("langgraph.checkpoint.conformance")

    async def run() -> Any:
        async def made() -> AsyncIterator[IkigaiSaver]:
            yield IkigaiSaver(system)

        return await conformance.validate(conformance.checkpointer_test(name="IkigaiSaver")(made))

    report = asyncio.run(run())
    assert {name: result.failures for name, result in report.results.items() if not result.passed} == {}
    assert report.results.keys() == GROUPS


def test_a_copy_is_one_row_and_each_goes_on_by_itself(system: ActorSystem) -> None:
    saver = IkigaiSaver(system)
    configs = grown(saver, "a", 4)
    saver.put_writes(configs[-1], [("n", "x")], "task")
    before = rows(system)
    saver.copy_thread("a", "b")
    assert rows(system) == before
    put(saver, "b", 9, config("b", configs[-1]["configurable"]["checkpoint_id"]))
    saver.delete_thread("a")
    assert (steps(saver, "a"), steps(saver, "b")) == ([], [9, 3, 2, 1, 0])
    copied = saver.get_tuple(config("b", configs[-1]["configurable"]["checkpoint_id"]))
    assert copied is not None
    assert copied.pending_writes == [("task", "n", "x")]
    with pytest.raises(BadInput, match="There is no 'x' to branch from"):
        saver.copy_thread("x", "y")
    saver.delete_thread("b")
    assert rows(system) == 0


def test_what_a_thread_prunes_its_copy_keeps(system: ActorSystem) -> None:
    saver = IkigaiSaver(system)
    grown(saver, "a", 3)
    saver.copy_thread("a", "b")
    saver.copy_thread("a", "c")
    saver.prune(["a", "c"])
    assert [steps(saver, thread) for thread in "abc"] == [[2], [2, 1, 0], [2]]
    grown(saver, "d", 3)
    before = rows(system)
    saver.prune(["d"])
    assert rows(system) == before - 2


def test_a_run_is_deleted_from_every_copy(system: ActorSystem) -> None:
    saver = IkigaiSaver(system)
    first = put(saver, "a", 0, run_id="r1")
    saver.copy_thread("a", "b")
    saver.put_writes(config("b", first["configurable"]["checkpoint_id"]), [("n", 1)], "task")
    put(saver, "b", 1, run_id="r2")
    saver.delete_for_runs(["r1"])
    assert (steps(saver, "a"), steps(saver, "b")) == ([], [1])
    assert rows(system) == 1


def test_pruning_keeps_what_the_latest_checkpoint_needs_of_a_delta_channel(system: ActorSystem) -> None:
    saver = IkigaiSaver(system)
    last = put(saver, "a", 0)
    last = put(saver, "a", 1, last)
    for step in (2, 3):
        saver.put_writes(last, [("n", step)], f"task {step}")
        counted = {"n": [step - 1, step - 1]}
        last = put(saver, "a", step, last, snapshot=False, counters_since_delta_snapshot=counted)
    before = saver.get_delta_channel_history(config=last, channels=["n"])
    saver.prune(["a"])
    assert steps(saver, "a") == [3, 2, 1]
    assert (
        saver.get_delta_channel_history(config=last, channels=["n"])
        == before
        == {"n": {"seed": 1, "writes": [("task 2", "n", 2), ("task 3", "n", 3)]}}
    )


def test_writes_stay_but_interrupts_are_replaced(system: ActorSystem) -> None:
    saver = IkigaiSaver(system)
    there = put(saver, "a", 0)
    for value in ("first", "second"):
        saver.put_writes(there, [("n", value)], "task")
        saver.put_writes(there, [(INTERRUPT, value)], "task")
    checkpoint = saver.get_tuple(there)
    assert checkpoint is not None
    assert checkpoint.pending_writes == [("task", INTERRUPT, "second"), ("task", "n", "first")]
    assert rows(system) == 3


def test_bad_input_is_refused_and_nothing_is_stored(system: ActorSystem) -> None:
    saver = IkigaiSaver(system)
    refused: list[tuple[str, Callable[[], object]]] = [
        ("Metadata of a checkpoint must be JSON", lambda: put(saver, "a", 0, at=object())),
        ("it names none", lambda: saver.get_tuple({"configurable": {}})),
        ("it names none", lambda: list(saver.list({}))),
        ("it names none", lambda: saver.get_tuple({})),
        ("it has no checkpoint_id", lambda: saver.put_writes(config("a"), [("n", 1)], "task")),
        ("Expected thread_id to be 1 to 1,000", lambda: saver.delete_thread("")),
        ("Expected strategy to be one of keep_latest, delete", lambda: saver.prune(["a"], strategy="all")),
    ]
    for message, call in refused:
        with pytest.raises(BadInput, match=message):
            call()
    assert rows(system) == 0


def test_another_process_goes_on_with_a_thread(durable: str, system: ActorSystem) -> None:
    configs = grown(IkigaiSaver(system), "a", 2)
    with closing(ActorSystem.attach(durable)) as other:
        saver = IkigaiSaver(other)
        assert steps(saver, "a") == [1, 0]
        put(saver, "a", 2, configs[-1])
    assert steps(IkigaiSaver(system), "a") == [2, 1, 0]
    assert [checkpoint.metadata["step"] for checkpoint in IkigaiSaver(system).list(None, limit=2)] == [2, 1]
