"""Mail through the library: handles, futures, subscribers; on every database."""

import asyncio
import sqlite3
import threading
from contextlib import closing

import psycopg
import pytest

from ikigai_actors import (
    ActorSystem,
    AgentNotFound,
    BadInput,
    FunctionProvider,
    Mailed,
    OfflineProvider,
    Request,
    ScriptedProvider,
    TimedOut,
    WouldDeadlock,
    current_agent,
)
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.errors import MailNotFound
from tests.kit.blocking_provider import DEADLINE
from tests.kit.journals import Gate, Task


def open_system(database: str) -> ActorSystem:
    return ActorSystem.open(database, OfflineProvider())


def rows_of_another_client(url: str) -> int:
    """How many mails somebody sees who has nothing to do with this process's connections."""
    statement = "SELECT COUNT(*) FROM mail"
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return int(connection.execute(statement).fetchone()[0])
    with psycopg.connect(url) as server:
        return int(server.execute(statement).fetchall()[0][0])


def test_a_mail_goes_to_a_handle_a_uuid_a_name_or_a_prefix_and_is_numbered(database: str) -> None:
    with open_system(database) as system:
        root, child = system.root, system.root.fork(name="dba")
        recipients = (child, child.uuid, "dba", child.uuid[:12], child.record)
        assert [root.send(recipient, "text") for recipient in recipients] == [1, 2, 3, 4, 5]
        assert child.check_mail().unread == 5
        assert child.send(child, "to itself") == 6
        assert system.send("dba", "of a person") == 7
        senders = [mail.sender for mail in child.mails()]
        assert senders == [root.uuid] * 5 + [child.uuid, None]


def test_a_send_returns_after_the_commit(durable: str) -> None:
    with open_system(durable) as system:
        for count in range(1, 6):
            system.root.send(system.root, "text")
            assert rows_of_another_client(durable) == count


def test_mail_is_read_all_or_by_sender_and_found_again(database: str) -> None:
    with open_system(database) as system:
        root, child = system.root, system.root.fork(name="dba")
        root.send(child, "one")
        system.send(child, "two")
        child.send(child, "three")
        assert [mail.body for mail in child.read_mail(sender=root)] == ["one"]
        assert [mail.body for mail in child.read_mail(sender="")] == ["two"]
        assert [mail.body for mail in child.read_mail(sender="dba")] == ["three"]
        assert child.read_mail() == []
        assert [mail.body for mail in child.mails()] == ["one", "two", "three"]
        assert [mail.body for mail in child.mails(root)] == ["one"]
        assert [mail.body for mail in child.mails(latest=2)] == ["two", "three"]
        with pytest.raises(AgentNotFound):
            child.read_mail(sender="nobody")


def test_one_mail_is_opened_and_deleted(database: str) -> None:
    with open_system(database) as system:
        root = system.root
        number = root.send(root, "text")
        assert root.open_mail(number).body == "text"
        assert root.record.unread == 0
        root.delete_mail(number)
        for look in (root.open_mail, root.delete_mail):
            with pytest.raises(MailNotFound, match="deleted") as refused:
                look(number)
            assert refused.value.agent == root.uuid
        with pytest.raises(BadInput):
            root.open_mail(0)


def test_subscribers_hear_of_a_mail_when_it_is_committed(database: str) -> None:
    with open_system(database) as system:
        heard: list[Event] = []
        known: list[bool] = []

        def hear(event: Event) -> None:
            heard.append(event)
            if isinstance(event, Mailed):
                known.append(event.mail in system.root.mails())

        subscription = system.subscribe(hear)
        system.root.send(system.root, "one")
        asyncio.run(_send(system))
        with pytest.raises(BadInput):
            system.root.send(system.root, "")
        with pytest.raises(AgentNotFound):
            system.root.send("A" * 22, "text")
        subscription.close()
        assert [event.mail.body for event in heard if isinstance(event, Mailed)] == ["one", "two"]
        assert known == [True, True]


async def _send(system: ActorSystem) -> None:
    await system.root.aio.send(system.root, "two")


def test_a_send_that_is_not_committed_in_time_says_so_and_may_still_happen(database: str) -> None:
    with open_system(database) as system:
        gate, root = Gate(), system.root
        system._runtime.journal.submit(Task(gate), lambda verdict: None)
        assert gate.entered.wait(DEADLINE)
        with pytest.raises(TimedOut):
            root.send(root.uuid, "text", timeout=0.01)
        gate.open()
        assert root.send(root, "and this", timeout=DEADLINE) == 2


def test_a_blocking_send_on_a_thread_of_the_runtime_is_refused_and_awaiting_it_is_not(database: str) -> None:
    refused: list[str] = []

    async def answer(request: Request) -> str:
        me = current_agent()
        for call in (lambda: me.send(me, "text"), me.read_mail, lambda: me.system.documents.write("a.md", "text")):
            with pytest.raises(WouldDeadlock) as error:
                call()
            refused.append(str(error.value))
        return str(await me.aio.send(me, "text"))

    with ActorSystem.open(database, ScriptedProvider(answer)) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "1"
        assert all("await" in text for text in refused)
        assert (len(refused), len(system.root.mails())) == (3, 1)


def test_a_code_driven_agent_sends_and_reads_during_its_turn(database: str) -> None:
    def answer(request: Request) -> str:
        me = current_agent()
        me.send(me, "a note to myself")
        return me.read_mail()[0].body

    with ActorSystem.open(database, FunctionProvider(answer)) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "a note to myself"


def test_many_threads_send_to_one_mailbox_in_order_of_each(database: str) -> None:
    with open_system(database) as system:
        root = system.root
        senders = [root.fork() for _ in range(6)]
        threads = [
            threading.Thread(target=lambda sender=sender: [sender.send(root, str(n)) for n in range(10)])
            for sender in senders
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        mails = root.read_mail()
        assert [mail.id for mail in mails] == list(range(1, 61))
        for sender in senders:
            assert [mail.body for mail in mails if mail.sender == sender.uuid] == [str(n) for n in range(10)]
