"""Models that use mail and documents: what they read of it, and that a crash neither loses nor repeats."""

import signal
from collections.abc import Callable

import pytest

from ikigai_actors import ActorSystem, Reply, Request, ScriptedProvider
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.agent.builtin_calls.documents import WriteDocument
from ikigai_actors.agent.builtin_calls.mail import ReadMail
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.documents import DOCUMENT_LIMIT as DOCUMENT_LIMIT
from ikigai_actors.records.documents import WriteVersion
from ikigai_actors.records.log.append import AppendCall, FencingToken
from ikigai_actors.records.mail.mail import MAIL_LIMIT, Send
from ikigai_actors.records.messages.messages import Kind, new_message
from ikigai_actors.store import Store
from ikigai_actors.store.journal import Committed, Failed, Journal
from ikigai_actors.store.unit import Unit, write_alone
from ikigai_actors.tools.function import LIMIT
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import python, sql
from tests.kit.faults import FaultyStore
from tests.kit.hosts import plant
from tests.kit.journals import Answers
from tests.kit.tool_scripts import calling, requests_of, results, scripted


def results_of(database_or_url: str, *calls: tuple[str, dict[str, object]]) -> list[tuple[str, bool]]:
    """What an agent named ``boss`` reads of its calls, beside an idle agent named ``kid``."""
    script = scripted(boss=[calling(*calls), "done"])
    with ActorSystem.open(database_or_url, script) as system:
        boss = system.root.fork(name="boss")
        system.root.fork(name="kid")
        assert boss.prompt("go").get(timeout=DEADLINE).text == "done"
        return [(result.content, result.is_error) for result in results(requests_of(script, "boss")[1])]


def test_mail_goes_from_model_to_model_in_the_order_of_the_calls(database: str) -> None:
    script = scripted(
        boss=[
            calling(
                ("check_mail", {}),
                ("send", {"to": "boss", "body": "a note\0 to\nmyself"}),
                ("check_mail", {}),
                ("read_mail", {"sender": "kid"}),
                ("read_mail", {}),
                ("read_mail", {}),
            ),
            "done",
        ]
    )
    with ActorSystem.open(database, script) as system:
        boss, kid = system.root.fork(name="boss"), system.root.fork(name="kid")
        kid.send(boss, "from the kid")
        system.send(boss, "from outside")
        boss.prompt("go").get(timeout=DEADLINE)
        first, sent, then, of_kid, rest, nothing = [
            result.content for result in results(requests_of(script, "boss")[1])
        ]
        assert first.splitlines() == [
            "2 unread: 1 from kid, 1 from a person outside",
            "mail 1 from kid: from the kid",
            "mail 2 from a person outside: from outside",
        ]
        assert sent == "Sent: mail 3 in its mailbox."
        assert then.splitlines()[-1] == "mail 3 from boss: a note\ufffd to myself"
        assert of_kid == "mail 1 from kid:\nfrom the kid\n\n(2 more unread)"
        assert rest.startswith("mail 2 from a person outside:\nfrom outside\n\nmail 3 from ")
        assert nothing == "No unread mail."
        assert boss.record.unread == 0


@pytest.mark.slow("takes a tenth of a second")
def test_a_mistake_in_a_call_is_a_result_that_helps(database: str) -> None:
    wrong: list[tuple[str, dict[str, object]]] = [
        ("send", {"to": "kid"}),
        ("send", {"to": "kid", "body": " "}),
        ("send", {"to": "kid", "body": "é" * MAIL_LIMIT}),
        ("send", {"to": "somebody", "body": "text"}),
        ("send", {"to": ["kid"], "body": "text"}),
        ("read_mail", {"sender": "somebody"}),
        ("check_mail", {"all": True}),
        ("document_read", {"path": "a.md"}),
        ("document_read", {"path": "/etc/passwd"}),
        ("document_write", {"path": "../a.md", "body": "text"}),
        ("document_write", {"path": "a.md", "body": "text", "expect": True}),
        ("document_write", {"path": "a.md", "body": "text", "expect": 3}),
        ("document_write", {"path": "a.md"}),
        ("document_write", {"path": "a.md", "body": "é" * DOCUMENT_LIMIT}),
        ("document_delete", {"path": "a.md"}),
    ]
    read = results_of(database, *wrong)
    assert all(is_error for _, is_error in read)
    expected = [
        "send needs body.",
        "says something",
        "at most 65,536 bytes",
        "No agent is named 'somebody'",
        "wants to to be text",
        "No agent is named 'somebody'",
        "takes no arguments",
        "There is no document 'a.md'",
        "is absolute",
        "has the name '..'",
        "expect to be a whole number",
        "nothing was ever written there",
        "document_write needs body.",
        "at most 1,048,576 bytes, got 2,097,152",
        "There is no document 'a.md'",
    ]
    for (text, _), part in zip(read, expected, strict=True):
        assert part in text


def test_a_read_gives_as_many_whole_mails_as_fit_and_says_how_many_remain(database: str) -> None:
    script = scripted(boss=[calling("read_mail"), calling("read_mail"), calling("read_mail"), "done"])
    size = LIMIT // 3
    with ActorSystem.open(database, script) as system:
        boss = system.root.fork(name="boss")
        for letter in "abc":
            system.send(boss, letter * size)
        system.send(boss, "d" * MAIL_LIMIT)  # longer than a result may be, and whole all the same
        boss.prompt("go").get(timeout=DEADLINE)
        first, second, third = (results(request)[0].content for request in requests_of(script, "boss")[1:])
        assert len(first) <= LIMIT
        assert "b" * size in first
        assert first.endswith("\n\n(2 more unread)")
        assert second == f"mail 3 from a person outside:\n{'c' * size}\n\n(1 more unread)"
        assert third.endswith("d" * MAIL_LIMIT)


def test_documents_are_written_read_listed_and_deleted_in_order(database: str) -> None:
    read = results_of(
        database,
        ("document_list", {}),
        ("document_write", {"path": "plan/a.md", "body": "# A", "expect": 0}),
        ("document_write", {"path": "plan/a.md", "body": "# A\0, better", "expect": 1}),
        ("document_read", {"path": "plan/a.md"}),
        ("document_read", {"path": "plan/a.md", "version": 1}),
        ("document_write", {"path": "plan/a.md", "body": "lost", "expect": 1}),
        ("document_list", {"prefix": "plan/"}),
        ("document_delete", {"path": "plan/a.md", "expect": 2}),
        ("document_list", {"prefix": "plan/"}),
        ("document_write", {"path": "empty.md", "body": ""}),
    )
    texts = [text for text, _ in read]
    assert texts[:3] == ["No documents.", "Version 1.", "Version 2."]
    assert texts[3].startswith("plan/a.md: version 2, written by boss at ")
    assert texts[3].endswith("\n\n# A\ufffd, better")
    assert texts[4].endswith("\n\n# A")
    assert "at version 1; there is version 2" in texts[5]
    assert texts[6].startswith("plan/a.md: version 2, written by boss at ")
    assert texts[7:] == ["Deleted: that is version 3.", "No documents.", "Version 1."]


# What a crash leaves

ACTS: list[Callable[[], Unit]] = [
    lambda: about("root", Send, lambda uuid: Send(uuid, "a", "text", 5)),
    lambda: ReadMail("a", None, LIMIT, 5),
    lambda: WriteDocument("a", "x.md", "text", None, 5),
    lambda: WriteDocument("a", "there.md", None, 1, 5),
]


def looked(store: Store) -> tuple[object, ...]:
    """All that the acts above change, and the results."""
    statements = (
        "SELECT COUNT(*) FROM mail WHERE recipient = 'root'",
        "SELECT COUNT(*) FROM mail WHERE recipient = 'a' AND read_at IS NOT NULL",
        "SELECT COUNT(*) FROM documents",
        "SELECT mailed + unread FROM agents WHERE uuid = 'a'",
        "SELECT COUNT(*) FROM messages WHERE agent_uuid = 'a'",
    )
    return store.read(lambda tx: tuple(sql(tx, statement)[0][0] for statement in statements))


@pytest.mark.sample(4, "where the store fails")
@pytest.mark.parametrize("act", ACTS, ids=["send", "read", "write", "delete"])
@pytest.mark.parametrize("fault", ["down", "broken before", "broken after", "gone"])
def test_effect_and_result_are_one_wherever_the_store_fails(store: Store, act: Callable[[], Unit], fault: str) -> None:
    plant(store, "host")
    store.write(lambda tx: tx.run("register_host", id="host", hostname="h", pid=1, lease=0))
    store.write(lambda tx: tx.run("claim_shards", host="host"))
    write_alone(store, Send("a", None, "hello", 4))
    write_alone(store, WriteVersion("there.md", "text", None, None, 4))
    before = looked(store)
    faulty, answers = FaultyStore(store), Answers()
    match fault:
        case "down":
            faulty.fails(StoreUnavailable("down"))
        case "broken before":
            faulty.breaks_during_commit(committed=False)
        case "broken after":
            faulty.breaks_during_commit(committed=True)
        case "gone":
            faulty.fails(*[StoreUnavailable("down")] * 3)
    journal = Journal(faulty, "host", SystemClock(), patience=0.0 if fault == "gone" else 60.0)
    data = {"tool_use_id": "1", "name": "any"}
    unit = AppendCall(
        "a",
        act(),
        lambda answer: new_message("a", 1, Kind.TOOL_RESULT.value, str(answer), data, 5),
        FencingToken("host", 1),
    )
    journal.submit(unit, answers.to("it"))
    journal.commit_pending()
    after = looked(store)
    if fault == "gone":
        assert isinstance(answers["it"], Failed)
        assert after == before
    else:
        assert isinstance(answers["it"], Committed)
        changed = [now != then for now, then in zip(after, before, strict=True)]
        assert changed[-1]
        assert any(changed[:-1])
        [(kind,)] = store.read(lambda tx: sql(tx, "SELECT kind FROM messages WHERE agent_uuid = 'a'"))
        assert kind == Kind.TOOL_RESULT


def test_what_a_clock_that_is_ahead_has_stamped_is_read_and_reported_no_earlier(store: Store) -> None:
    plant(store, "host")
    store.write(lambda tx: tx.run("register_host", id="host", hostname="h", pid=1, lease=0))
    store.write(lambda tx: tx.run("claim_shards", host="host"))
    write_alone(store, Send("a", None, "hello", 400))
    data = {"tool_use_id": "1", "name": "read_mail"}
    answer = write_alone(
        store,
        AppendCall(
            "a",
            ReadMail("a", None, LIMIT, 100),
            lambda answer: new_message("a", 1, Kind.TOOL_RESULT.value, answer, data, 100),
            FencingToken("host", 1),
        ),
    )
    assert answer.message.created_at == 400
    assert store.read(lambda tx: sql(tx, "SELECT read_at FROM mail")) == [(400,)]
    assert store.read(lambda tx: sql(tx, "SELECT created_at FROM messages WHERE agent_uuid = 'a'")) == [(400,)]


WORKER = """
    import sys, threading
    from ikigai_actors import ActorSystem, Message, ScriptedProvider
    from tests.agent.test_mail_calls import work

    seen = 0
    def count(event):
        global seen
        if isinstance(event, Message):
            seen += 1
            if seen == int(sys.argv[2]):
                print("now", flush=True)

    system = ActorSystem.open(sys.argv[1], ScriptedProvider(work), resume=True)
    system.subscribe(count)
    if not system.root.history(all=True):
        system.root.aio.prompt("go")
    system.root.reply()
    print("done", flush=True)
    threading.Event().wait()
"""

STEPS = 4


def work(request: Request) -> str | Reply:
    """Send oneself a mail, read it, and write a document, in one reply; and that again and again."""
    steps = sum(message["role"] == "assistant" for message in request.messages)
    if steps == STEPS:
        return "done"
    uses = ("send", {"to": request.agent, "body": f"mail {steps}"}), ("document_write", {"path": "a.md", "body": "x"})
    return calling(uses[0], "read_mail", uses[1], uses[0])


@pytest.mark.sample(1, "a process that is killed for each")
@pytest.mark.parametrize("killed_at", [3, 6, 11])
def test_after_kill_9_each_call_was_performed_once(new_sqlite: Callable[[], str], killed_at: int) -> None:
    """On SQLite, where the next host need not wait for a lease."""
    url = new_sqlite()
    process = python(WORKER, url, killed_at)
    assert process.stdout is not None
    assert process.stdout.readline().strip() in ("now", "done")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=DEADLINE)
    with ActorSystem.open(url, ScriptedProvider(work), resume=True) as system:
        assert system.root.reply(timeout=DEADLINE).text == "done"
        mails = system.root.mails()
        assert [mail.id for mail in mails] == list(range(1, 2 * STEPS + 1))
        assert system.documents.read("a.md").version == STEPS
        reads = [message for message in system.root.history() if message.data.get("name") == "read_mail"]
        assert [mail.id for mail in mails if mail.read_at is not None] == list(range(1, 2 * STEPS))
        # a heading and a body for each
        assert sum(message.content.count("mail ") for message in reads) == 2 * (2 * STEPS - 1)
