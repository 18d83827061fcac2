"""The reader of logs: many at a time, and nobody suffers from another's wrong rows."""

import threading
from typing import Any

from ikigai_actors.agent.log_loader import LogLoader
from ikigai_actors.errors import AgentNotFound, HistoryError, StoreError
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Store
from tests.kit.blocking_provider import DEADLINE
from tests.kit.faults import FaultyStore
from tests.kit.logs import write_log
from tests.kit.trees import plant


class Answers:
    """Collects what the reader answers."""

    def __init__(self, expected: int) -> None:
        self.given: dict[str, Any] = {}
        self._missing = expected
        self._all = threading.Event()

    def of(self, uuid: str) -> Any:
        def done(log: Any) -> None:
            self.given[uuid] = log
            self._missing -= 1
            if not self._missing:
                self._all.set()

        return done

    def wait(self) -> dict[str, Any]:
        assert self._all.wait(DEADLINE)
        return self.given


def ask(store: Store, *uuids: str) -> dict[str, Any]:
    reader, answers = LogLoader(LogCache(store)), Answers(len(uuids))
    reader.start()
    for uuid in uuids:
        reader.read(uuid, answers.of(uuid))
    logs = answers.wait()
    reader.close()
    return logs


def test_every_log_that_is_wanted_is_given(store: Store) -> None:
    plant(store, a="root", b="root", c="b")
    logs = ask(store, "a", "b", "c", "root")
    assert all(isinstance(log, Log) and log.agent_uuid == uuid for uuid, log in logs.items())


def test_an_agent_with_wrong_rows_or_none_at_all_does_not_keep_the_others_from_theirs(store: Store) -> None:
    plant(store, good="root", hole="root")
    store.write(lambda tx: write_log(tx, [Message("hole", 5, "user", "", {}, 1)]))
    logs = ask(store, "good", "hole", "nobody")
    assert isinstance(logs["good"], Log)
    assert isinstance(logs["hole"], HistoryError)
    assert isinstance(logs["nobody"], AgentNotFound)


def test_a_closed_reader_answers_nobody(store: Store) -> None:
    plant(store, a="root")
    reader, answers = LogLoader(LogCache(store)), Answers(2)
    reader.start()
    reader.close()
    reader.read("a", answers.of("a"))
    reader.close()
    assert answers.given == {}


def test_a_defect_is_told_to_all_who_wait_for_their_logs(store: Store) -> None:
    plant(store, a="root", b="root")
    broken = FaultyStore(store)
    broken.unreadable = LookupError("planted")
    logs = ask(broken, "a", "b")
    assert [type(logs[uuid]) for uuid in "ab"] == [StoreError, StoreError]
    assert "planted" in str(logs["a"])
