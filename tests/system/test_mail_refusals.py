"""What takes no mail, wherever it is sent: each reason is an error of its own, and nothing is stored."""

from typing import NamedTuple

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, AgentDead, AgentNotFound, AmbiguousAgent, BadInput, IkigaiError, MailboxFull
from ikigai_actors.records.mail.mail import MAIL_LIMIT, MAILBOX_CAPACITY
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.system.handles.ref import System
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import sql
from tests.kit.sessions import Session
from tests.kit.tool_scripts import calling, requests_of, results, scripted
from tests.kit.trees import add, change


class Case(NamedTuple):
    """A mail that is refused."""

    to: str
    body: str
    error: type[IkigaiError]
    words: str


CASES = {
    "unknown": Case("nobody-here", "text", AgentNotFound, "No agent is named 'nobody-here'"),
    "ambiguous": Case("Twin", "text", AmbiguousAgent, "'Twin' begins the uuid of several agents"),
    "dead": Case("Gone", "text", AgentDead, "is dead and takes no mail"),
    "full": Case("full", "text", MailboxFull, "is full: 10,000 unread mails"),
    "empty": Case("kid", " ", BadInput, "Expected a mail that says something"),
    "oversized": Case("kid", "x" * (MAIL_LIMIT + 1), BadInput, "at most 65,536 bytes, got 65,537"),
}


def prepare(system: System) -> None:
    """Add whom the cases name: a mailbox that is full, one who is dead, and two whose uuids begin alike."""
    root = system.root
    kid, full = root.fork(name="kid"), root.fork(name="full")
    assert kid.record.living
    change(system._store, full.uuid, f"unread = {MAILBOX_CAPACITY}")
    for uuid in ("TwinaAAAAAAAAAAAAAAAAA", "TwinbAAAAAAAAAAAAAAAAA", "GoneAAAAAAAAAAAAAAAAAA"):
        system._store.write(lambda tx, uuid=uuid: add(tx, uuid, root.uuid))  # type: ignore[misc]  # binds it
    change(system._store, "GoneAAAAAAAAAAAAAAAAAA", "status = 'dead', ended_at = 1")


def nothing_is_stored(system: System) -> bool:
    rows = system._store.read(lambda tx: sql(tx, "SELECT COUNT(*), (SELECT SUM(mailed) FROM agents) FROM mail"))
    return [tuple(map(int, row)) for row in rows] == [(0, 0)]


def test_each_reason_is_a_distinct_error_to_a_program(database: str) -> None:
    with ActorSystem.open(database, scripted()) as system:
        prepare(system)
        for case in CASES.values():
            for send in (system.root.send, system.send):
                with pytest.raises(case.error, match=case.words) as refused:
                    send(case.to, case.body)
                assert type(refused.value) is case.error
        assert nothing_is_stored(system)


def test_each_reason_is_a_result_to_a_model(database: str) -> None:
    script = scripted([calling(*(("send", {"to": case.to, "body": case.body}) for case in CASES.values())), "done"])
    with ActorSystem.open(database, script) as system:
        prepare(system)
        system.root.prompt("go").get(timeout=DEADLINE)
        all_results = results(requests_of(script, None)[1])
        assert [
            (result.is_error, case.words in result.content)
            for result, case in zip(all_results, CASES.values(), strict=True)
        ] == [(True, True)] * len(CASES)
        assert nothing_is_stored(system)


@pytest.mark.thorough("the reasons of the tests above, as lines")
def test_each_reason_is_a_line_to_a_person(session: Session) -> None:
    prepare(session.system)
    lines = session(*(f"/send {case.to} '{case.body}'" for case in CASES.values()))
    assert [(line[:7], case.words in line) for line, case in zip(lines, CASES.values(), strict=True)] == [
        ("error: ", True)
    ] * len(CASES)
    assert nothing_is_stored(session.system)


def test_each_reason_is_an_error_to_another_process(durable: str) -> None:
    with ActorSystem.open(durable, scripted()) as system:
        prepare(system)
        for case in CASES.values():
            done = CliRunner().invoke(cli, ["--database", durable, "send", case.to, case.body])
            assert (done.stdout, type(done.exception)) == ("", case.error)
            assert case.words in str(done.exception)
        assert nothing_is_stored(system)
