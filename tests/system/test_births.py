"""Children of any histories, and notes."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentNotFound,
    BadInput,
    Child,
    HistoryPruned,
    Kind,
    Reply,
    Request,
    ScriptedProvider,
    ToolCall,
    tool,
)
from ikigai_actors.errors import NotABoundary
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.system.births import births_of
from tests.kit.blocking_provider import DEADLINE


@tool
def price(tea: str) -> str:
    """The price of a tea."""
    return f"{tea} costs 12"


def clerk(request: Request) -> Reply:
    """Asks for the price of a tea, then tells it, with how many messages it has seen."""
    said = request.messages[-1]["content"][-1]
    if said["type"] == "text" and "price" in said["text"]:
        return Reply("", (ToolCall("price", {"tea": "Assam"}),))
    seen = f"{len(request.messages)} messages"
    return Reply(", ".join(filter(None, (said.get("text", said.get("content")), seen, request.system))))


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem.open(":memory:", ScriptedProvider(clerk), tools=[price]) as opened:
        yield opened
        assert check(opened._store) == []


def own(system: ActorSystem, uuid: str) -> list[Message]:
    return [message for message in system.handle(uuid).history(all=True) if message.agent_uuid == uuid]


def test_an_agent_makes_children_of_histories_that_are_not_written(system: ActorSystem) -> None:
    worker = system.root.fork("the price, please", name="worker")
    worker.reply(timeout=DEADLINE)
    overseer = system.root.fork(name="overseer")
    before = worker.history(all=True)
    opened = next(message.id for message in before if message.kind == Kind.USER)

    early, late = overseer.fork_many(
        [Child(worker, at=opened - 1, prompt="Stop."), Child("worker", prompt="Thanks.")], note={"why": "B edits it"}
    )

    assert early.reply(timeout=DEADLINE).text == "Stop., 1 messages"
    assert late.reply(timeout=DEADLINE).text == "Thanks., 5 messages"
    assert worker.history(all=True) == before
    assert [child.supervisor for child in (early, late)] == [overseer, overseer]
    assert [child.parent for child in (early, late)] == [worker, worker]
    note, *births = own(system, overseer.uuid)[1:]
    assert (note.kind, note.data) == (Kind.NOTE, {"why": "B edits it"})
    assert [birth.data["child"] for birth in births] == [early.uuid, late.uuid]


def test_a_child_goes_on_with_what_the_history_of_a_dead_agent_ends_with(system: ActorSystem) -> None:
    worker = system.root.fork("the price, please")
    worker.reply(timeout=DEADLINE)
    result = next(message.id for message in worker.history() if message.kind == Kind.TOOL_RESULT)
    worker.kill()

    [again] = system.root.fork_many([Child(worker, at=result, go=True)])

    assert again.reply(timeout=DEADLINE).text == "Assam costs 12, 3 messages"


@pytest.mark.thorough("settings of now, as those of a child in test_fork_at")
def test_a_child_has_the_settings_of_now_of_the_agent_whose_history_it_inherits(system: ActorSystem) -> None:
    worker = system.root.fork("hello", system="old", name="worker")
    worker.reply(timeout=DEADLINE)
    then = worker.history()[-1].id
    worker.configure(system="new")

    now, own_choice = system.root.fork_many(
        [Child(worker, at=then, prompt="a"), Child(worker, at=then, prompt="b", settings={"system": "mine"})]
    )

    assert now.reply(timeout=DEADLINE).text.endswith("new")
    assert own_choice.reply(timeout=DEADLINE).text.endswith("mine")


class Reads:
    """A store that counts its reads."""

    def __init__(self, store: Any) -> None:
        self.count, self._store = 0, store

    def read(self, work: Any) -> Any:
        self.count += 1
        return self._store.read(work)


def test_the_end_of_a_history_is_looked_for_once_for_all_children_of_it(system: ActorSystem) -> None:
    worker = system.root.fork("the price, please")
    worker.reply(timeout=DEADLINE)
    counts = []
    for many in (2, 20):
        reads = Reads(system._store)
        directory: Any = SimpleNamespace(_store=reads, _log_cache=system._log_cache, _random_bytes=system._random_bytes)
        assert len({birth.uuid for birth in births_of(directory, [Child(worker)] * many)}) == many
        counts.append(reads.count)
    assert counts[0] == counts[1]


IMPOSSIBLE: list[tuple[Any, type[Exception], str]] = [
    ([], BadInput, "number of children"),
    ("worker", BadInput, "list of Child"),
    (["worker"], BadInput, "each of children"),
    ([Child("nobody")], AgentNotFound, "nobody"),
    ([Child(7)], BadInput, "an agent"),  # type: ignore[arg-type]
    ([Child("worker", at=3)], NotABoundary, "nearest"),
    ([Child("worker", at=99)], NotABoundary, "none of its positions"),
    ([Child("worker", at=True)], BadInput, "at"),
    ([Child("worker", prompt="a", go=True)], BadInput, "got both"),
    ([Child("worker", go=True)], BadInput, "nothing waits"),
    ([Child("worker", prompt=7)], BadInput, "prompt"),  # type: ignore[arg-type]
    ([Child("worker", settings={"sytem": "x"})], BadInput, "no setting"),
]


@pytest.mark.slow("takes a tenth of a second")
def test_children_that_cannot_be_are_refused_all_together(system: ActorSystem) -> None:
    worker = system.root.fork("the price, please", name="worker")
    worker.reply(timeout=DEADLINE)
    before = system.root.history(all=True)
    for children, error, message in IMPOSSIBLE:
        good = [Child(worker, prompt="x")] if isinstance(children, list) and children else []
        with pytest.raises(error, match=message):
            system.root.fork_many([*good, *children] if good else children)
        assert system.root.history(all=True) == before, message
        assert len(system.agents("running")) == 2, message


def test_a_history_that_was_pruned_has_no_children(system: ActorSystem) -> None:
    worker = system.root.fork("hello")
    worker.reply(timeout=DEADLINE)
    worker.kill()
    prune_logs(system._store, 2**50, 1)
    with pytest.raises(HistoryPruned):
        system.root.fork_many([Child(worker, prompt="x")])


def test_a_note_is_in_the_log_and_no_model_sees_it(system: ActorSystem) -> None:
    worker = system.root.fork("hello")
    before = worker.reply(timeout=DEADLINE).text
    position = worker.note({"rating": 4, "by": "Ada"})
    [note] = [message for message in worker.history() if message.id == position]
    assert (note.kind, note.data) == (Kind.NOTE, {"rating": 4, "by": "Ada"})
    assert before == "hello, 1 messages"
    assert worker.prompt("again").get(timeout=DEADLINE).text == "again, 3 messages"


def test_a_note_is_what_json_can_hold_and_is_no_book(system: ActorSystem) -> None:
    wrong: list[Any] = [{}, "text", {"x": float("nan")}, {"x": object()}, {"verdicts": []}, {"terms": 1}]
    for data in wrong:
        with pytest.raises(BadInput):
            system.root.note(data)
    assert not [message for message in system.root.history(all=True) if message.kind == Kind.NOTE]


@pytest.mark.slow("takes a tenth of a second")
def test_who_made_children_of_other_histories_can_be_exported_with_them(system: ActorSystem, tmp_path: Path) -> None:
    worker = system.root.fork("hello")
    worker.reply(timeout=DEADLINE)
    [child] = system.root.fork_many([Child(worker, prompt="and?")])
    answer = child.reply(timeout=DEADLINE)
    system.export(system.root, tmp_path / "all.jsonl")
    with ActorSystem.open(":memory:", ScriptedProvider(clerk), tools=[price]) as elsewhere:
        elsewhere.import_(tmp_path / "all.jsonl")
        assert elsewhere.handle(child.uuid).reply(timeout=DEADLINE) == answer
        assert check(elsewhere._store) == []
