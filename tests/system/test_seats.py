"""The seat of a service: a host that could not take it looks for it again."""

from collections.abc import Callable
from contextlib import closing
from queue import SimpleQueue

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.actors.threads import SYSTEM_THREADS
from ikigai_actors.errors import StoreError
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.batches import JoinBatch, open_batches
from ikigai_actors.store import Store
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.retrying_reader import RetryingReader
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.host.batches import OTHER_HOST_SECONDS, Batches, BatchLink
from ikigai_actors.testing.scripted_batches import ScriptedBatches
from tests.kit.databases import DEADLINE
from tests.kit.faults import FaultyStore
from tests.kit.trees import HOST, plant


def test_a_host_looks_again_for_a_seat_that_it_could_not_take(store: Store) -> None:
    plant(store, ann="root")
    write_alone(store, JoinBatch("ann", 1, "scripted:m", b"{}", 1, 10**15))
    faulty, provider = FaultyStore(store), ScriptedBatches(lambda request: Reply("hello"))
    posted: SimpleQueue[Callable[[], object]] = SimpleQueue()
    alarms: list[tuple[float, Callable[[], object]]] = []

    def after(seconds: float, work: Callable[[], object]) -> None:
        alarms.append((seconds, work))

    with closing(Journal(faulty, HOST, SystemClock())) as journal:
        journal.start()
        link = BatchLink(lambda name: provider, lambda work, done: None, lambda: "batch1", lambda trouble: None)
        reader = RetryingReader(store, SYSTEM_THREADS)
        batches = Batches(reader, journal, HOST, SystemClock(), link, posted.put, after)
        faulty.fails(StoreError("a statement failed"))
        batches.look_soon()
        posted.get(timeout=DEADLINE)()
        [(seconds, look)] = alarms
        assert seconds == OTHER_HOST_SECONDS
        assert store.read(lambda tx: open_batches(tx, "scripted:m")) == []
        look()
        for _ in ("the second look, which takes the seat", "what the commit of the seal calls"):
            posted.get(timeout=DEADLINE)()
    assert [batch.id for batch in store.read(lambda tx: open_batches(tx, "scripted:m"))] == ["batch1"]
