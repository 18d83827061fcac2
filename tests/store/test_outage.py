"""The runtime when its store or its rows fail: nothing is lost, nobody is buried who need not be."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    IkigaiError,
    Message,
    Request,
    ScriptedProvider,
    Signal,
    StoreError,
    StoreTrouble,
    SystemClosed,
)
from ikigai_actors.errors import HistoryError
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.kit.logs import write_log

pytestmark = pytest.mark.slow("waits for a database")


def echo(request: Request) -> str:
    text: str = request.messages[-1]["content"][-1]["text"]
    return text


class Troubles:
    """Waits for what the system says of its store."""

    def __init__(self, system: ActorSystem) -> None:
        self.began, self.ended, self.ended_for_good = threading.Event(), threading.Event(), threading.Event()
        system.subscribe(self._hear)

    def _hear(self, event: Any) -> None:
        if isinstance(event, StoreTrouble):
            if event.reason is None:
                self.ended.set()
            elif event.final:
                self.ended_for_good.set()
            else:
                self.began.set()


def test_agents_wait_while_the_store_is_down_and_go_on_when_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with ActorSystem.open(path, provider=ScriptedProvider(echo)) as system:
        troubles = Troubles(system)
        children = [system.root.fork() for _ in range(3)]
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        futures = [child.prompt(f"task {place}") for place, child in enumerate(children)]
        assert troubles.began.wait(DEADLINE)
        assert system.statistics().journal.trouble is not None
        assert not any(future.done() for future in futures)
        blocker.execute("ROLLBACK")
        blocker.close()
        assert [future.get(timeout=DEADLINE).text for future in futures] == ["task 0", "task 1", "task 2"]
        assert troubles.ended.wait(DEADLINE)
        assert all(agent.living for agent in system.agents())


def test_a_database_that_vanishes_stops_the_system_with_one_error_and_buries_nobody(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    system = ActorSystem.open(path, provider=ScriptedProvider(echo))
    troubles = Troubles(system)
    root, child = system.root, system.root.fork()
    assert child.prompt("before").get(timeout=DEADLINE).text == "before"
    path.rename(tmp_path / "moved.db")
    with pytest.raises(SystemClosed, match="deleted or replaced"):
        child.prompt("x").get(timeout=DEADLINE)
    assert troubles.ended_for_good.wait(DEADLINE)
    with pytest.raises(SystemClosed, match="deleted or replaced"):
        root.prompt("y").get(timeout=DEADLINE)
    system.close()
    (tmp_path / "moved.db").rename(path)
    with ActorSystem.open(path, provider=ScriptedProvider(echo)) as again:
        assert all(agent.living for agent in again.agents())
        assert again.agent(child.uuid).prompt("x").get(timeout=DEADLINE).text == "x"


def damage(system: ActorSystem, uuid: str) -> None:
    """A message beyond the head: the log has a hole."""
    head = system.agent(uuid).history(all=True)[-1].id
    row = Message(uuid, head + 2, "user", "stray", {}, 1)
    system._store.write(lambda tx: write_log(tx, [row]))


def test_an_agent_whose_log_has_a_hole_is_buried_when_it_is_first_read_and_the_rest_go_on(durable: str) -> None:
    with ActorSystem.open(durable, provider=ScriptedProvider(echo)) as system:
        sick = system.root.fork(name="sick")
        system.root.fork(name="well")
        grandchild = sick.fork(name="grandchild")
        damage(system, sick.uuid)
    with ActorSystem.open(durable, provider=ScriptedProvider(echo)) as system:
        with pytest.raises(HistoryError, match="hole"):
            system.agent("sick").prompt("x").get(timeout=DEADLINE)
        assert system.agent("well").prompt("x").get(timeout=DEADLINE).text == "x"
        assert system.agent("grandchild").prompt("x").get(timeout=DEADLINE).text == "x"
        system.close()
    with ActorSystem.open(durable, provider=ScriptedProvider(echo)) as system:
        record = system.agent(sick.uuid).record
        assert (record.status, "hole" in (record.exit_reason or "")) == ("dead", True)
        assert system.agent(grandchild.uuid).supervisor == system.root
        assert system.agent(grandchild.uuid).record.parent_uuid == sick.uuid
        with pytest.raises(AgentDead):
            system.agent(sick.uuid).prompt("x")


@pytest.mark.thorough("a second log with a hole")
def test_agent_0_with_a_hole_is_an_error_and_lives(durable: str) -> None:
    with ActorSystem.open(durable, provider=ScriptedProvider(echo)) as system:
        system.root.prompt("x").get(timeout=DEADLINE)
        damage(system, system.root.uuid)
    with ActorSystem.open(durable, provider=ScriptedProvider(echo)) as system:
        for _ in range(2):
            with pytest.raises(HistoryError, match="hole"):
                system.root.prompt("y").get(timeout=DEADLINE)
        assert system.root.record.status == "running"


def test_a_store_error_at_boot_stops_the_boot_and_buries_nobody(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with ActorSystem.open(path, provider=ScriptedProvider(echo)) as system:
        system.root.fork()
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE messages RENAME TO hidden")
    connection.close()
    with pytest.raises(StoreError):
        ActorSystem.open(path)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE hidden RENAME TO messages")
    connection.close()
    with ActorSystem.open(path, provider=ScriptedProvider(echo)) as system:
        assert all(agent.living for agent in system.agents())


def test_a_host_that_lost_its_lease_to_another_stops_and_changes_nothing_more(new_postgres: Any) -> None:
    url = new_postgres()
    first = ActorSystem.open(url, provider=ScriptedProvider(echo), lease=0.4)
    [(host, *_)] = first._store.read(lambda tx: tx.run("open_hosts"))
    first._store.write(lambda tx: tx.run("end_host", id=host))
    with ActorSystem.open(url, provider=ScriptedProvider(echo)) as second:
        with pytest.raises(IkigaiError):
            first.root.prompt("from the first").get(timeout=DEADLINE)
        assert second.root.prompt("from the second").get(timeout=DEADLINE).text == "from the second"
        assert [m.content for m in second.root.history() if m.kind == "user"] == ["from the second"]
    first.close()


def test_a_host_waits_for_a_server_that_is_read_only_for_a_moment(new_postgres: Any) -> None:
    with ActorSystem.open(new_postgres(), ScriptedProvider(echo)) as system:
        troubles = Troubles(system)
        system._store.write(lambda tx: tx.schema.execute("SET SESSION default_transaction_read_only = on"))
        assert system.root.prompt("tea").get(timeout=DEADLINE).text == "tea"
        assert troubles.began.wait(DEADLINE)


def test_an_interrupt_that_cannot_be_written_is_answered(tmp_path: Path) -> None:
    path, model = tmp_path / "agents.db", Hanging("so far")
    system = ActorSystem.open(path, provider=model)
    child = system.root.fork()
    child.prompt("x")
    model.wait_until_asked()
    path.rename(tmp_path / "moved.db")
    with pytest.raises(SystemClosed, match="deleted or replaced"):
        child.signal(Signal.INT, timeout=DEADLINE)
    system.close()
