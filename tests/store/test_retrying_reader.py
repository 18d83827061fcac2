"""A reader that waits for a store that does not answer."""

import threading

import pytest

from ikigai_actors.actors.threads import SYSTEM_THREADS
from ikigai_actors.errors import StoreError, StoreUnavailable, SystemClosed
from ikigai_actors.records.agents import registry
from ikigai_actors.store import Store
from ikigai_actors.store.retrying_reader import RetryingReader
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.faults import FaultyStore
from tests.kit.trees import plant


@pytest.fixture
def family(store: Store) -> FaultyStore:
    """An agent "a" below agent 0."""
    plant(store, a="root")
    return FaultyStore(store)


class Reading(threading.Thread):
    """Reads the number of agents on a thread of its own."""

    def __init__(self, reader: RetryingReader) -> None:
        super().__init__(daemon=True)
        self._reader = reader
        self.result: int | Exception = 0
        self.start()

    def run(self) -> None:
        try:
            self.result = len(self._reader.read(registry.every))
        except Exception as error:
            self.result = error

    @property
    def ended(self) -> int | Exception:
        """The number, or the error; waited for."""
        self.join(DEADLINE)
        return self.result


def test_a_read_waits_until_the_store_answers(family: FaultyStore) -> None:
    family.unreadable = StoreUnavailable("down, as planned")
    reading = Reading(RetryingReader(family, SYSTEM_THREADS))
    eventually(lambda: family.refused, "the first attempt")
    family.unreadable = None
    assert reading.ended == 2


def test_a_read_that_waits_ends_with_the_system(family: FaultyStore) -> None:
    family.unreadable = StoreUnavailable("down, as planned")
    reader = RetryingReader(family, SYSTEM_THREADS)
    reading = Reading(reader)
    eventually(lambda: family.refused, "the first attempt")
    reader.close()
    assert isinstance(reading.ended, SystemClosed)


def test_any_other_error_is_raised_at_once(family: FaultyStore) -> None:
    family.unreadable = StoreError("damaged, as planned")
    with pytest.raises(StoreError, match="damaged, as planned"):
        RetryingReader(family, SYSTEM_THREADS).read(registry.every)
