"""Times of records: milliseconds as they are stored, and aware datetimes beside them."""

from datetime import UTC, datetime

from ikigai_actors import ActorSystem, OfflineProvider


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
