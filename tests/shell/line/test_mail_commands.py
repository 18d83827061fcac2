"""The commands about mail and documents, in a session and as the real program, also beside a running shell."""

import os
import re
import signal
import sys
import threading
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.records.agents.words import words_of
from tests.kit.databases import eventually
from tests.kit.program import Program, run
from tests.kit.sessions import Session


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A database with agent 0 and buyer."""
    path = tmp_path / "notes.db"
    with ActorSystem.open(path, OfflineProvider()) as system:
        system.root.fork(name="buyer")
    return str(path)


def test_a_mail_is_sent_checked_and_read(session: Session) -> None:
    buyer = session.system.root.fork(name="buyer")
    root = words_of(session.system.root.uuid)
    printed = session('/send buyer "Assam  rises."', "/send buyer two words", "/switch buyer", "/check-mail")
    assert printed == [
        "mail 1 to buyer",
        "mail 2 to buyer",
        "now with buyer, idle",
        f"2 unread: 2 from {root}",
        f"    1  {root:<10}  Assam rises.",
        f"    2  {root:<10}  two words",
    ]
    assert buyer.record.unread == 2
    assert session("/read-mail", "/read-mail", "/read-mail", "/check-mail") == [
        f"mail 1 from {root}",
        "  Assam  rises.",
        "(1 more unread)",
        f"mail 2 from {root}",
        "  two words",
        "No unread mail.",
        "No unread mail.",
    ]
    assert session("/read-mail 1")[1] == "  Assam  rises."
    assert "unread" not in "".join(session("/agents"))


def test_all_that_is_unread_is_read_at_once(session: Session) -> None:
    root = session.system.root
    for body in ("one\n\nof two lines", "two"):
        session.system.send(root, body)
    assert session("/read-mail --all", "/read-mail --all") == [
        "mail 1 from a person",
        "  one",
        "",
        "  of two lines",
        "mail 2 from a person",
        "  two",
        "No unread mail.",
    ]


def test_mail_is_filtered_by_sender_and_deleted(session: Session) -> None:
    root, buyer = session.system.root, session.system.root.fork(name="buyer")
    buyer.send(root, "of the buyer")
    session.system.send(root, "of a person")
    buyer.send(root, "more")
    root.open_mail(1)
    assert session("/check-mail")[0] == "2 unread: 1 from a person, 1 from buyer"
    assert session("/filter-mail --from buyer") == ["    1  buyer       of the buyer", "*   3  buyer       more"]
    assert session("/filter-mail --from person") == ["*   2  a person    of a person"]
    assert session("/filter-mail --last 1") == ["*   3  buyer       more"]
    assert session("/delete-mail 1", "/filter-mail --from buyer", "/delete-mail 1")[:2] == [
        "mail 1 deleted",
        "*   3  buyer       more",
    ]
    assert session("/switch buyer", "/filter-mail")[-1] == "No mail."
    assert session("/parent", "/filter-mail --from nobody")[1:] == ["*   2  a person    of a person"]
    root.fork(name="person").send(root, "an agent of that name")
    assert session("/filter-mail --from person") == ["*   4  person      an agent of that name"]


@pytest.mark.sample(2, "wrong lines")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/send", "error: Missing argument 'ID'. Try /send --help."),
        ("/send buyer", "error: Missing argument 'TEXT...'. Try /send --help."),
        ("/read-mail x", "error: Invalid value for '[MAIL-ID]'"),
        ("/read-mail 1 --all", "error: Give a MAIL-ID or --all, not both. Try /read-mail --help."),
        ("/read-mail 7", "error: Agent "),
        ("/delete-mail 7", "error: Agent "),
        ("/filter-mail --from no-one", "error: No agent is named 'no-one'"),
        ("/doc show none.md", "error: There is no document 'none.md'."),
        ("/doc write ../x text", "error: Expected a path like"),
        ("/doc write x", "error: Give TEXT or --file; an editor needs a terminal. Try /doc write --help."),
        ("/doc write x y --file /dev/null", "error: Give TEXT or --file, not both."),
        ("/doc write x --file /no/such/file", "error: Invalid value for '--file'"),
        ("/doc nothing", "error: No such command 'nothing'. Try /doc --help."),
        ("/doc delete none.md", "error: There is no document 'none.md'."),
    ],
)
def test_a_wrong_line_is_told_and_nothing_is_stored(session: Session, line: str, message: str) -> None:
    buyer = session.system.root.fork(name="buyer")
    printed = session(line, "/agents")
    assert printed[0].startswith(message)
    assert (buyer.record.mailed, session.system.documents.list()) == (0, [])


def test_a_document_is_written_shown_logged_and_deleted(session: Session) -> None:
    root = session.system.root
    printed = session(
        "/doc", "/doc write plan/tea.md # Tea", "/doc write plan/tea.md '# More  tea' --expect 1",
        "/doc write plan/tea.md lost --expect 1", "/doc show plan/tea.md", "/doc show plan/tea.md --version 1",
    )  # fmt: skip
    assert printed[:3] == ["No documents.", "plan/tea.md: version 1", "plan/tea.md: version 2"]
    assert printed[3].startswith("error: Expected document 'plan/tea.md' at version 1; there is version 2, written by")
    assert printed[4:] == ["# More  tea", "# Tea"]
    assert session.system.documents.read("plan/tea.md").author == root.uuid
    log_line = (
        rf"version \d, (written|deleted) by {re.escape(words_of(root.uuid))} at \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    )
    printed = session("/doc list plan", "/doc list x", "/doc delete plan/tea.md --expect 2", "/doc log plan/tea.md")
    assert re.fullmatch(f"plan/tea.md  {log_line}", printed[0])
    assert printed[1:3] == ["No documents.", "plan/tea.md: deleted in version 3"]
    assert [re.fullmatch(log_line, line) is not None for line in printed[3:]] == [True] * 3


def test_a_document_is_written_from_a_file(session: Session, tmp_path: Path) -> None:
    good, bad, long = tmp_path / "good.md", tmp_path / "bad.md", tmp_path / "long.md"
    good.write_text("# Tée\n\ntext\n", encoding="utf-8")
    bad.write_bytes(b"abc\xff")
    long.write_bytes(b"x" * (1024 * 1024 + 5))
    printed = session(*[f"/doc write a.md --file '{each}'" for each in (good, bad, long)])
    assert printed[0] == "a.md: version 1"
    assert printed[1] == f"error: {bad} is not UTF-8 (byte 0xff at 4). Convert it first."
    assert printed[2] == f"error: {long} has more than 1,048,576 bytes. Cut it into several documents."
    assert session.system.documents.read("a.md").body == "# Tée\n\ntext\n"


SAVE = "path.write_text(text); os.utime(path, (9e9, 9e9))"
"""How an editor saves, later than whatever clock the file system has."""


def editor(tmp_path: Path, script: str) -> str:
    """The command of an editor that does this with the text of a file."""
    program = tmp_path / "editor.py"
    program.write_text(
        f"import os, pathlib, sys\npath = pathlib.Path(sys.argv[1])\ntext = path.read_text()\n{script}\n",
        encoding="utf-8",
    )
    return f"{sys.executable} {program}"


@pytest.mark.thorough("a program with an editor")
def test_at_a_terminal_a_document_is_written_in_an_editor(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, f"text += 'a line more\\n'; {SAVE}"))
    with Program.at_terminal("--database", file) as shell:
        for version in (1, 2):
            shell.say("/doc write plan.md")
            shell.expect(f"plan.md: version {version}")
        shell.say("/exit")
        assert shell.ends() == 0
    with ActorSystem.open(file, OfflineProvider()) as system:
        assert system.documents.read("plan.md").body == "a line more\n" * 2


@pytest.mark.thorough("a program with an editor")
def test_what_an_editor_left_unchanged_is_not_written_and_what_came_too_late_is_kept(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("VISUAL", editor(tmp_path, "pass"))
    with Program.at_terminal("--database", file) as shell:
        shell.say("/doc write plan.md")
        shell.expect("Nothing was changed")
    faster = (
        "from ikigai_actors.store import open_store\n"
        "from ikigai_actors.records.documents import WriteVersion\n"
        "from ikigai_actors.store.unit import write_alone\n"
        f"store = open_store({file!r})\n"
        "write_alone(store, WriteVersion('plan.md', 'faster', None, None, 1))\n"
        f"text = 'an hour of work'; {SAVE}"
    )
    monkeypatch.setenv("VISUAL", editor(tmp_path, faster))
    with Program.at_terminal("--database", file) as shell:
        shell.say("/doc write plan.md")
        kept = shell.expect(r"error: Expected document 'plan.md' at version 0; .* Your text is kept in\s+(\S+\.md)\.")[
            1
        ]
        shell.say("/doc show plan.md")
        shell.expect("faster")
    assert Path(kept).read_text(encoding="utf-8") == "an hour of work"


@pytest.mark.thorough("a second program at a terminal")
def test_the_prompt_counts_the_unread_mail_of_the_current_agent(file: str) -> None:
    with Program.at_terminal("--database", file) as shell:
        shell.expect(r"\n[\w-]+> $")
        shell.say("/switch buyer")
        shell.expect(r"\nbuyer> $")
        assert run("--database", file, "send", "buyer", "Assam rises.").returncode == 0
        shell.say("/check-mail")
        shell.expect(r"Assam rises\.\nbuyer \(1 unread\)> $")
        shell.say("/read-mail")
        shell.expect(r"  Assam rises\.\nbuyer> $")


def test_a_person_waits_for_agents_and_for_mail(session: Session) -> None:
    root = session.system.root
    buyer, seller = root.fork(name="buyer"), root.fork(name="seller")
    seller.send(root, "text")
    assert session("/wait 5 buyer seller nobody") == ["buyer: idle", "seller: mail", "nobody: unknown"]
    assert session("/wait 5") == ["seller: mail"]
    root.read_mail()
    assert session("/wait 0") == ["No mail came in that time."]
    assert session("/wait soon") == [
        "error: Invalid value for 'SECONDS': 'soon' is not a valid float range. Try /wait --help."
    ]
    session.system.send(root, "text")
    buyer.kill()
    assert sorted(session("/wait 5")) == ["a person: mail", "buyer: dead"]


@pytest.mark.usefixtures("uncollected")
def test_ctrl_c_ends_a_wait_and_nothing_else(session: Session) -> None:
    def press() -> None:
        eventually(lambda: session.system.statistics().waits, "the wait")
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    assert session("/wait 600", "/wait 0") == [
        "error: Stopped waiting; the request may still be carried out.",
        "No mail came in that time.",
    ]
    pressing.join()
    assert session.system.statistics().waits == 0
