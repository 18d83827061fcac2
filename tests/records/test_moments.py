"""How far logs had come at a time, against a scan of them."""

from functools import partial

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, ToolCall
from ikigai_actors.records.log import moments
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Store, Transaction
from tests.kit.echo import open_echo


def at_once(store: Store, uuids: list[str], at: int) -> dict[str, int]:
    return store.read(lambda tx: moments.positions_at(tx, uuids, at))


def own_log(system: ActorSystem, uuid: str) -> list[Message]:
    return [message for message in system.handle(uuid).history(all=True) if message.agent_uuid == uuid]


def scanned(system: ActorSystem, uuid: str, at: int) -> int:
    fork = system.handle(uuid).record.fork_message_id
    return max([fork, *(message.id for message in own_log(system, uuid) if message.created_at <= at)])


def spread(store: Store, uuids: list[str]) -> None:
    """Let the messages of each log be 7 ms apart, but for some of equal times."""
    those = ", ".join(f"'{uuid}'" for uuid in uuids)
    changed = f"UPDATE messages SET created_at = 1000 + 7 * (id - id % 3) WHERE agent_uuid IN ({those})"
    store.write(lambda tx: tx.schema.execute(changed))


def test_a_position_at_any_time_is_the_one_that_a_scan_finds(database: str) -> None:
    with open_echo(database) as system:
        root = system.root
        child = root.fork(name="child")
        for text in ("one", "two", "three"):
            child.prompt(text).get(timeout=60)
        grandchild = child.fork(name="grandchild", at=3)
        grandchild.prompt("four").get(timeout=60)
        uuids = [root.uuid, child.uuid, grandchild.uuid]
        spread(system._store, uuids)
        for at in range(990, 1090, 3):
            assert at_once(system._store, uuids, at) == {uuid: scanned(system, uuid, at) for uuid in uuids}
        positions = system._store.read(lambda tx: moments.positions_between(tx, child.uuid, 990, 1090, 10))
        assert positions == [scanned(system, child.uuid, at) for at in range(990, 1091, 10)]
        assert at_once(system._store, [], 5) == {}


def test_a_mark_names_the_tool_the_child_and_that_a_reply_calls(database: str) -> None:
    script = ScriptedProvider(
        {
            "top": [Reply("", (ToolCall("fork", {"prompt": "look", "name": "kid"}, "call_1"),)), Reply("done")],
            "kid": [Reply("looked")],
        }
    )
    with ActorSystem.open(database, script) as system:
        root = system.root.fork(name="top")
        root.prompt("go").get(timeout=60)
        kid = system.agent("kid").uuid
        marks = system._store.read(lambda tx: moments.marks(tx, root.uuid, 0, 1_000))
        labels = {(mark.kind, mark.label) for mark in marks if mark.label is not None}
        assert labels == {("assistant", "calls"), ("fork", kid)}
        assert [mark.id for mark in marks] == [message.id for message in own_log(system, root.uuid)]
        assert system._store.read(lambda tx: moments.latest_marks(tx, [root.uuid]))[root.uuid] == marks[-1]


def mails_between(uuid: str, since: int, until: int, tx: Transaction) -> list[moments.MailTime]:
    return moments.mails_between(tx, [uuid], since, until)


def test_the_mails_of_a_time_are_found_though_some_were_read_and_deleted(database: str) -> None:
    with open_echo(database) as system:
        ann = system.root.fork(name="ann")
        for number in range(1, 21):
            system.send(ann, f"mail {number}")
        system._store.write(lambda tx: tx.schema.execute("UPDATE mail SET created_at = 1000 + 10 * id"))
        system._store.write(lambda tx: tx.schema.execute("DELETE FROM mail WHERE id % 3 = 0"))
        for since in range(995, 1215, 5):
            until = since + 55
            mails = system._store.read(partial(mails_between, ann.uuid, since, until))
            assert [mail.id for mail in mails] == [n for n in range(1, 21) if n % 3 and since < 1000 + 10 * n <= until]


def test_everybody_is_glanced_at_in_order_of_birth_and_what_was_written_is_counted(database: str) -> None:
    with open_echo(database) as system:
        kids = [system.root.fork(name=name) for name in ("a", "b")]
        kids[0].prompt("hello").get(timeout=60)
        kids[1].kill()
        glances = system._store.read(moments.glances)
        assert [(glance.name, glance.status) for glance in glances] == [
            (None, "running"),
            ("a", "running"),
            ("b", "dead"),
        ]
        assert glances[2].ended is not None
        counts = system._store.read(lambda tx: moments.log_activity(tx, 10**15))
        assert [count for _, count in counts] == [sum(len(own_log(system, glance.uuid)) for glance in glances)]
