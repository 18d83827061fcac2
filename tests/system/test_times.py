"""Times of records: milliseconds as they are stored, and aware datetimes beside them."""

from datetime import UTC, datetime

from ikigai_actors import ActorSystem, OfflineProvider
from tests.kit.tool_scripts import calling, scripted


def test_every_record_has_its_times_as_aware_datetimes() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        kid = system.root.fork(name="kid")
        system.root.send(kid, "tea")
        kid.remind("look", after=60)
        system.documents.write("plan.md", "text")
        [mail], [timer], [version] = kid.mails(), kid.timers(), system.documents.log("plan.md")
        assert (mail.read_time, kid.record.ended_time) == (None, None)
        [mail] = kid.read_mail()
        kid.kill()
        record, message = kid.record, kid.history()[0]
        assert record.ended_at is not None
        assert mail.read_at is not None
        pairs = [
            (record.created_time, record.created_at),
            (record.ended_time, record.ended_at),
            (message.created_time, message.created_at),
            (mail.created_time, mail.created_at),
            (mail.read_time, mail.read_at),
            (timer.due_time, timer.due_at),
            (version.created_time, version.created_at),
        ]
        assert pairs == [(datetime.fromtimestamp(at / 1000, UTC), at) for _, at in pairs]


def test_what_one_unit_writes_has_one_time() -> None:
    calls = [
        ("send", {"to": "0", "body": "tea"}),
        ("document_write", {"path": "plan.md", "body": "text"}),
        ("fork", {}),
    ]
    with ActorSystem.open(":memory:", scripted(boss=[calling(*calls), "done"])) as system:
        boss = system.root.fork(name="boss")
        boss.prompt("go").get(timeout=60)
        [mail], [version], [kid] = system.root.mails(), system.documents.log("plan.md"), boss.children()
        at = {
            message.data.get("name", message.kind): message.created_at
            for message in boss.history()
            if message.agent_uuid == boss.uuid
        }
        [born] = [message.created_at for message in boss.history() if message.data.get("child") == kid.uuid]
        begun = kid.history()[kid.record.fork_message_id].created_at
        assert (mail.created_at, version.created_at) == (at["send"], at["document_write"])
        assert (kid.record.created_at, begun) == (born, born)
