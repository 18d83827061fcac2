"""Verification of databases and files, checkpoints, and a verifier that shares no code with ours."""

import json
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from examples import verify_log
from ikigai_actors import ActorSystem, ScriptedProvider
from ikigai_actors.errors import BadInput, HistoryError, HistoryPruned
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.proof.chain_check import Problem
from ikigai_actors.records.proof.checkpoint import write_checkpoint
from ikigai_actors.records.transfer.verify import verify_named
from ikigai_actors.store import open_store
from tests.conftest import NewDatabase
from tests.kit import pictures
from tests.kit.blocking_provider import DEADLINE
from tests.kit.damage import damage
from tests.kit.exported_files import Records, of, rehash, signed
from tests.kit.program import run

PICTURE = pictures.GIF


def session(database: str) -> ActorSystem:
    """Agent 0 has said two things; "kid" was forked from its head, "early" before that, "leaf" below "kid"."""
    system = ActorSystem.open(database, ScriptedProvider(lambda request: "well"))
    for text in ("one", "two"):
        system.root.prompt(text).get(timeout=DEADLINE)
    kid = system.root.fork("three", name="kid")
    kid.reply(timeout=DEADLINE)
    system.root.fork("four", name="early", at=2).reply(timeout=DEADLINE)
    kid.fork("five", name="leaf").reply(timeout=DEADLINE)
    kid.prompt("look", attach=[PICTURE]).get(timeout=DEADLINE)
    return system


@pytest.fixture
def database(durable: str) -> str:
    """The database of a session that is over."""
    session(durable).close()
    return durable


def problems(database: str, what: str | None = None, since: Path | None = None) -> list[str]:
    """What a verification finds."""
    with ActorSystem.attach(database) as system:
        return [problem.what for problem in system.verify(what, since=since).problems]


@pytest.mark.slow("takes a tenth of a second")
def test_a_session_that_is_sound_is_verified_whole_and_by_agent_and_as_a_file(database: str, tmp_path: Path) -> None:
    with ActorSystem.attach(database) as system:
        whole = system.verify()
        assert (whole.agents, whole.pruned, whole.problems, whole.omitted) == (4, 0, (), 0)
        assert whole.messages == sum(
            len(agent.history(all=True)) - agent.record.fork_message_id
            for agent in (system.agent(record.uuid) for record in system.agents())
        )
        leaf = system.verify(system.agent("leaf"))
        assert (leaf.agents, leaf.messages, leaf.problems) == (1, len(system.agent("leaf").history(all=True)), ())
        system.export(system.root, tmp_path / "all")
        system.export("kid", tmp_path / "kid")
        assert system.verify(tmp_path / "all").messages == whole.messages
        assert system.verify(str(tmp_path / "kid")).problems == ()


def test_a_checkpoint_names_each_log_and_a_later_one_what_has_gone_on(durable: str, tmp_path: Path) -> None:
    with session(durable) as system:
        first = system.checkpoint(tmp_path / "1")
        lines = (tmp_path / "1").read_bytes().splitlines(keepends=True)
        header, *heads, end = map(json.loads, lines)
        assert (header["checkpoint"], header["root"], header["agents"], header["previous"]) == (
            1, system.root.uuid, 4, None,
        )  # fmt: skip
        assert [head["agent"] for head in heads] == sorted(record.uuid for record in system.agents())
        assert {head["agent"]: head["head"] for head in heads} == {
            record.uuid: system.agent(record.uuid).history(all=True)[-1].id for record in system.agents()
        }
        assert end == {"end": 5, "sha256": sha256(b"".join(lines[:-1])).hexdigest()}
        assert first == (4, sha256(b"".join(lines)).hexdigest())
        system.agent("kid").prompt("more").get(timeout=DEADLINE)
        young = system.root.fork("six", name="young")
        young.reply(timeout=DEADLINE)
        assert system.verify(since=tmp_path / "1").problems == ()
        assert system.verify("kid", since=tmp_path / "1").problems == ()
        assert system.checkpoint(tmp_path / "2", previous=tmp_path / "1").agents == 3  # agent 0, "kid" and "young"
        assert json.loads((tmp_path / "2").read_bytes().splitlines()[0])["previous"] == first.sha256
        assert system.verify(since=tmp_path / "2").problems == ()
        with pytest.raises(BadInput, match="overwrites nothing"):
            system.checkpoint(tmp_path / "2")


def test_who_makes_all_hashes_again_is_seen_against_a_checkpoint_alone(database: str, tmp_path: Path) -> None:
    with ActorSystem.attach(database) as system:
        system.checkpoint(tmp_path / "1")
        early, root = system.agent("early").uuid, system.root.uuid
    damage(database, f"DELETE FROM messages WHERE agent_uuid = '{early}'", hashes=False)
    assert problems(database) == ["missing"]
    damage(database, f"UPDATE messages SET content = 'other' WHERE agent_uuid = '{root}' AND id = 3")  # hashes again
    assert problems(database) == ["missing"]
    assert set(problems(database, since=tmp_path / "1")) == {
        "missing", "another history than the checkpoint", "shorter than the checkpoint",
    }  # fmt: skip
    with ActorSystem.attach(database) as system:
        with pytest.raises(HistoryError, match=r"The histories are not those of .*, and nothing was written: "):
            system.checkpoint(tmp_path / "2", previous=tmp_path / "1")
        assert not (tmp_path / "2").exists()


def test_a_log_that_was_cut_at_its_end_is_shorter_than_the_checkpoint(database: str, tmp_path: Path) -> None:
    with ActorSystem.attach(database) as system:
        system.checkpoint(tmp_path / "1")
        leaf, head = system.agent("leaf").uuid, system.agent("leaf").history(all=True)[-1].id
    damage(database, f"DELETE FROM messages WHERE agent_uuid = '{leaf}' AND id = {head}", hashes=False)
    assert problems(database) == []
    with ActorSystem.attach(database) as system:
        for what in (None, "leaf"):
            assert system.verify(what, since=tmp_path / "1").problems == (
                Problem("shorter than the checkpoint", leaf, head),
            )


def test_a_message_of_a_database_is_not_hidden_as_one_that_was_left_out(database: str) -> None:
    with ActorSystem.attach(database) as system:
        root = system.root.uuid
    hidden = f"UPDATE messages SET kind = 'omitted', content = '' WHERE agent_uuid = '{root}' AND id = 3"
    damage(database, hidden, hashes=False)
    with ActorSystem.attach(database) as system:
        assert system.verify().problems == system.verify(system.root).problems == (Problem("altered", root, 3),)


def test_a_pruned_agent_has_its_last_hash_and_another_one_is_a_problem(durable: str, tmp_path: Path) -> None:
    with session(durable) as system:
        early = system.agent("early")
        system.checkpoint(tmp_path / "before")
        early.prompt("more").get(timeout=DEADLINE)
        early.kill()
        system.checkpoint(tmp_path / "after")
        now = system._clock.now_ms()
        assert prune_logs(system._store, now + 1_000_000, now).agents == 1
        verified = system.verify(since=tmp_path / "after")
        assert (verified.agents, verified.pruned, verified.problems) == (3, 1, ())
        [problem] = system.verify(since=tmp_path / "before").problems
        assert (problem.what, problem.agent) == (
            "pruned, and the checkpoint has another last message", early.uuid,
        )  # fmt: skip
        with pytest.raises(HistoryPruned):
            system.verify(early)
        system.export(system.root, tmp_path / "file")
        assert system.verify(tmp_path / "file", since=tmp_path / "after").problems == ()
        assert verify_log.main(str(tmp_path / "file"), str(tmp_path / "after")) == 0
        assert verify_log.main(str(tmp_path / "file"), str(tmp_path / "before")) == 1


@pytest.mark.sample(3, "changes")
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace('"head":', '"head": '), "was changed, or was cut off"),
        (lambda text: "\n".join(text.splitlines()[:-1]), "was changed, or was cut off"),
        (lambda text: text.replace('"checkpoint":1', '"checkpoint":2'), "has format 2: upgrade"),
        (lambda text: "tea", "is no checkpoint: expected an object of JSON in line 1"),
        (lambda text: "", "is no checkpoint: `ikigai checkpoint` writes them"),
        (lambda text: '{"record":"header"}\n', "is no checkpoint: `ikigai checkpoint` writes them"),
    ],
)
def test_a_checkpoint_that_was_changed_or_is_none_is_named(
    tmp_path: Path, spoil: Callable[[str], str], message: str
) -> None:
    with session("sqlite:///:memory:") as system:
        system.checkpoint(tmp_path / "1")
        (tmp_path / "1").write_text(spoil((tmp_path / "1").read_text()))
        with pytest.raises(BadInput, match=message):
            system.verify(since=tmp_path / "1")


def test_a_checkpoint_of_another_database_verifies_nothing(tmp_path: Path) -> None:
    with session("sqlite:///:memory:") as system:
        system.checkpoint(tmp_path / "1")
    with session("sqlite:///:memory:") as system, pytest.raises(BadInput, match="is of the database of agent 0"):
        system.verify(since=tmp_path / "1")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file of a branch, and a checkpoint of its database."""
    path = tmp_path_factory.mktemp("exported")
    with session("sqlite:///:memory:") as system:
        system.root.fork("six", name="beside").reply(timeout=DEADLINE)
        system.export("kid", path / "file")
        system.checkpoint(path / "checkpoint")
    return path / "file", path / "checkpoint"


def messages(records: Records, origin: bool = False) -> Records:
    """The messages of a file: those of the first agent, or what it inherits."""
    first = next(record for record in records if record["record"] == "agent")["uuid"]
    return [
        record
        for record in records
        if record.get("agent") == (f"origin:{first}" if origin else first) and "content" in record
    ]


def put(number: int, origin: bool = False, **fields: Any) -> Callable[[Records], None]:
    """Change a message."""
    return lambda records: messages(records, origin)[number].update(fields)


def drop(number: int) -> Callable[[Records], None]:
    """Take a message out."""
    return lambda records: records.remove(messages(records)[number])


def exchange(records: Records) -> None:
    """Let two messages change places, and take each other's number."""
    earlier, other = messages(records)[1:3]
    earlier["content"], other["content"] = other["content"], earlier["content"]


def repeat(records: Records) -> None:
    """Say the last message once more."""
    last = messages(records)[-1]
    records.insert(records.index(last) + 1, {**last, "id": last["id"] + 1})


def forge(records: Records) -> None:
    """Change a message, and make all hashes again."""
    put(2, content="forged")(records)
    rehash(records)


def shorten(records: Records) -> None:
    """Take the last message out."""
    drop(-1)(records)


LEFT_OUT: dict[str, Any] = {"kind": Kind.OMITTED, "content": "", "data": None}

CHANGES: dict[str, tuple[Callable[[Records], object], bool]] = {
    "a content": (put(2, content="gum"), False),
    "a time": (put(1, created_at=5), False),
    "a kind": (put(2, kind="note"), False),
    "data": (put(0, data={"parent": "nobody"}), False),
    "a hash": (put(1, hash="00" * 32), False),
    "no hash": (put(1, hash=None), False),
    "a message left out": (put(2, **LEFT_OUT), False),
    "an inherited message left out": (put(1, origin=True, **LEFT_OUT), False),
    "the fork point left out": (put(-1, origin=True, **LEFT_OUT), False),
    "what was inherited": (put(1, origin=True, content="gum"), False),
    "a message less": (drop(1), False),
    "two that changed places": (exchange, False),
    "a message twice": (repeat, False),
    "a picture": (lambda records: of(records, "blob").update(bytes="Z3Vt"), False),
    "no picture": (lambda records: records.remove(of(records, "blob")), False),
    "the end cut off": (shorten, True),
    "all hashes made again": (forge, True),
}
"""What is done to a file, and whether a checkpoint alone shows it."""


@pytest.mark.sample(8, "changes")
@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_a_file_is_found_by_ours_and_by_a_verifier_without_our_code(
    exported: tuple[Path, Path], tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, needs_checkpoint = CHANGES[change]
    sound, checkpoint = exported
    file = tmp_path / "file"
    records = [json.loads(line) for line in sound.read_bytes().splitlines()]
    spoil(records)
    file.write_bytes(signed(records, hashes=False))
    with ActorSystem.open("sqlite:///:memory:", "offline") as system:
        for path, is_wrong in ((sound, False), (file, True)):
            alone = system.verify(path)
            against = system.verify(path, since=checkpoint)
            assert bool(alone.problems) is (is_wrong and not needs_checkpoint), alone
            assert bool(against.problems) is is_wrong
            assert verify_log.main(str(path)) == bool(alone.problems)
            assert capsys.readouterr().out.splitlines() == ([*map(str, alone.problems)] or ["every hash fits"])
            assert verify_log.main(str(path), str(checkpoint)) == is_wrong
            assert capsys.readouterr().out.splitlines() == ([*map(str, against.problems)] or ["every hash fits"])


@pytest.mark.sample(3, "values")
@pytest.mark.parametrize("change", ["hash = 'tea'", "hash = X'00'", "hash = 5", "id = 'tea'", "data = X'00'"])
def test_a_value_of_another_type_is_found_where_it_is(new_sqlite: NewDatabase, tmp_path: Path, change: str) -> None:
    database = new_sqlite()
    with session(database) as system:
        head, root = system.root.history()[-1].id, system.root.uuid
    damage(database, f"UPDATE messages SET {change} WHERE agent_uuid = '{root}' AND id = {head}", hashes=False)
    with closing(open_store(database)) as store:
        assert verify_named(store, None, None).problems[0].what == "altered"
        if change.startswith("hash"):
            assert verify_named(store, root, None).problems[0].what == "altered"
            with pytest.raises(HistoryError, match=r"has no hash\. Nothing was written: run ikigai verify"):
                write_checkpoint(store, tmp_path / "1", now=1)
            assert not (tmp_path / "1").exists()


@pytest.mark.parametrize("digest", ["", "00" * 16, "zz" * 32])
def test_what_is_no_hash_is_found_by_ours_and_by_a_verifier_without_our_code(
    exported: tuple[Path, Path], tmp_path: Path, digest: str
) -> None:
    records = [json.loads(line) for line in exported[0].read_bytes().splitlines()]
    put(1, hash=digest)(records)
    (tmp_path / "file").write_bytes(signed(records, hashes=False))
    with ActorSystem.open("sqlite:///:memory:", "offline") as system:
        assert system.verify(tmp_path / "file").problems
    assert verify_log.main(str(tmp_path / "file")) == 1


@pytest.mark.parametrize("change", ["UPDATE blobs SET bytes = CAST('gum' AS BYTEA)", "DELETE FROM blobs"])
def test_a_picture_that_was_exchanged_or_is_gone_is_found_where_it_was_sent(database: str, change: str) -> None:
    damage(database, change, hashes=False)
    with ActorSystem.attach(database) as system:
        kid = system.agent("kid")
        [position] = [message.id for message in kid.history(all=True) if message.content == "look"]
        for what in (None, kid):
            assert system.verify(what).problems == (Problem("attachment", kid.uuid, position),)
        assert system.verify("early").problems == ()


def test_a_byte_that_was_changed_in_a_file_is_a_problem_of_the_file(
    exported: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(exported[0].read_bytes().replace(b'"name":"leaf"', b'"name":"loaf"', 1))
    with ActorSystem.open("sqlite:///:memory:", "offline") as system:
        [problem] = system.verify(file).problems
        assert str(problem).startswith("altered: the file, in or after line ")
        file.write_text("tea")
        with pytest.raises(BadInput, match="cannot be verified"):
            system.verify(file)
        with pytest.raises(BadInput, match="has format 1, which has no hashes"):
            system.verify(Path(__file__).with_name("format_1.jsonl"))
    assert verify_log.main(str(file)) == 1


def test_the_commands_verify_and_checkpoint(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    session(path).close()
    with ActorSystem.attach(path) as system:
        root, total = system.root.uuid, system.verify().messages
    written = run("--database", path, "checkpoint", str(tmp_path / "1"))
    assert (written.returncode, written.stdout.startswith("Wrote the heads of 4 logs to ")) == (0, True)
    sound = run("--database", path, "verify", "--since", str(tmp_path / "1"))
    assert (sound.returncode, sound.stdout) == (0, f"4 agents, {total} messages: every hash fits\n")
    damage(
        f"sqlite:///{path}", f"UPDATE messages SET content = 'x' WHERE agent_uuid = '{root}' AND id = 2", hashes=False
    )
    altered = run("--database", path, "verify")
    assert (altered.returncode, altered.stdout) == (
        1, f"altered: {root[:6]} 2\n4 agents, {total} messages: 1 problem\n",
    )  # fmt: skip
    as_json = json.loads(run("--database", path, "verify", "kid", "--json").stdout)
    assert as_json["problems"] == [{"what": "altered", "agent": root, "position": 2}]
    for wrong in (["nobody"], ["--since", str(tmp_path / "none")]):
        done = run("--database", path, "verify", *wrong)
        assert (done.returncode, done.stdout) == (2, "")
