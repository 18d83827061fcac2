"""The hashes in an exported file: they come along, and a wrong one refuses the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from examples import verify_log
from ikigai_actors import ActorSystem
from ikigai_actors.errors import ImportRefused, StoreUnusable
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.transfer.format import file_lines
from ikigai_actors.records.transfer.graft import Imported, ImportFile
from ikigai_actors.store import Store, open_store
from ikigai_actors.system.host.importing import import_file
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE
from tests.kit.damage import damage
from tests.kit.exported_files import Records, of
from tests.kit.program import run
from tests.records.test_transfer import MEMORY, ask, family, lines, provider


def all_hashes(store: Store) -> dict[tuple[str, int], str]:
    """Every stored hash."""
    rows = store.read(lambda tx: tx.schema.execute("SELECT agent_uuid, id, hash FROM messages"))
    return {(uuid, position): bytes(stored).hex() for uuid, position, stored in rows}


def in_file(file: Path) -> dict[tuple[str, int], str]:
    """The hashes of the agents of a file, without those of origins."""
    messages = [line for line in lines(file) if line["record"] == "message" and not line["agent"].startswith("origin:")]
    return {(message["agent"], message["id"]): message["hash"] for message in messages}


def imported(url: str, file: Path) -> Imported:
    """Import a file into a new database."""
    return import_file(url, ImportFile.of(file))


@pytest.mark.slow("takes a tenth of a second")
def test_agents_keep_their_hashes_where_their_uuids_are_the_same(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        family(system)
        system.export(system.root, tmp_path / "1")
        before = all_hashes(system._store)
    assert in_file(tmp_path / "1") == before
    done = imported(url := new_sqlite(), tmp_path / "1")
    assert (done.renewed, done.rehashed) == ({}, 0)
    store = open_store(url)
    assert before.items() <= all_hashes(store).items()
    assert check(store) == []
    store.close()


@pytest.mark.slow("takes a tenth of a second")
def test_a_branch_keeps_its_hashes_in_another_database(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        system.export(family(system), tmp_path / "1")
        before, parent = all_hashes(system._store), system.root.uuid
    done = imported(url := new_sqlite(), tmp_path / "1")
    assert (done.renewed, done.rehashed) == ({}, 0)
    there = in_file(tmp_path / "1")
    with ActorSystem.open(url, provider()) as system:
        assert check(system._store) == []
        here = all_hashes(system._store)
        assert there.items() <= before.items()
        assert there.items() <= here.items()
        stands_for_it = system.agent(parent)
        assert (stands_for_it.state, stands_for_it.uuid) == ("dead", parent)
        assert system.verify(None).problems == ()


@pytest.mark.slow("takes a tenth of a second")
def test_hashes_are_made_again_from_where_the_uuid_of_another_is_told(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        top = family(system)
        system.export(top, tmp_path / "1")
        fork, head = top.record.fork_message_id, top.history(all=True)[-1].id
    imported(url := new_sqlite(), tmp_path / "1")
    done = imported(url, tmp_path / "1")  # now all uuids are taken
    store = open_store(url)
    assert check(store) == []
    here, there = all_hashes(store), in_file(tmp_path / "1")
    store.close()
    now = {place: here[done.renewed[place[0]], place[1]] for place in there}
    forks = [
        line for line in lines(tmp_path / "1") if line.get("kind") == "fork" and line["agent"].startswith("origin:")
    ]
    births = sum(line["hash"] is not None and line["data"].get("child") in done.renewed for line in forks)
    assert done.rehashed - births == sum(now[place] != stored for place, stored in there.items()) > 0
    assert all(now[top.uuid, position] != there[top.uuid, position] for position in range(fork + 1, head + 1))
    origin = [
        line for line in lines(tmp_path / "1") if line["record"] == "message" and line["agent"].startswith("origin:")
    ]
    inherited = {line["hash"] for line in origin if line["id"] <= fork}
    assert None not in inherited
    assert inherited <= set(here.values())


@pytest.mark.slow("takes a tenth of a second")
def test_the_receipt_names_the_agents_as_they_were_and_as_they_are(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    with ActorSystem.open(url := new_sqlite(), provider()) as system:
        top = family(system)
        system.export(top, tmp_path / "1")
    output = run("--database", url, "import", str(tmp_path / "1")).stdout
    assert f"of them have other uuids than in the file ({top.uuid} is " in output
    receipt = json.loads(run("--database", url, "import", "--json", str(tmp_path / "1")).stdout)
    assert receipt["renewed"][top.uuid] == receipt["top"]
    assert receipt["rehashed"] > 0


@pytest.mark.slow("takes a tenth of a second")
def test_what_was_left_out_keeps_the_hash_of_what_stood_there(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        ask(system.root, "secret")
        system.root.clear()
        ask(system.root, "known")
        kid = system.root.fork("go", name="kid")
        kid.reply(timeout=DEADLINE)
        stored = all_hashes(system._store)
        root = system.root.uuid
        system.export(kid, tmp_path / "1", from_clear=True)
    assert b"secret" not in (tmp_path / "1").read_bytes()
    omitted = [line for line in lines(tmp_path / "1") if line.get("kind") == "omitted"]
    assert [line["hash"] for line in omitted] == [stored[root, line["id"]] for line in omitted] != []
    assert verify_log.main(str(tmp_path / "1")) == 0
    imported(url := new_sqlite(), tmp_path / "1")
    with ActorSystem.open(url, provider()) as system:
        assert check(system._store) == []
        assert {line["hash"] for line in omitted} <= set(all_hashes(system._store).values())
        ask(system.agent("kid"), "And now?")
        system.export("kid", tmp_path / "2")
        system.export(system.root, tmp_path / "3")  # the one that stands for the agent outside is in it
        for what in (None, "kid", tmp_path / "1", tmp_path / "2", tmp_path / "3"):
            assert (system.verify(what).problems, system.verify(what).omitted) == ((), len(omitted))
    for file in (tmp_path / "2", tmp_path / "3"):
        assert verify_log.main(str(file)) == 0
        imported(new_sqlite(), file)


def test_a_file_of_an_older_format_gets_its_hashes_here(new_sqlite: NewDatabase) -> None:
    done = imported(url := new_sqlite(), Path(__file__).with_name("format_1.jsonl"))
    assert done.rehashed == 0
    store = open_store(url)
    assert check(store) == []
    store.close()


def spoiled(records: Records, **fields: Any) -> None:
    """Change the third message of the first agent."""
    of(records, "message", 2, agent=of(records, "agent")["uuid"]).update(fields)


@pytest.mark.sample(3, "hashes")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": "gum"}, "expected the hash of message 3 of .* to be that of its history; it is another one"),
        ({"created_at": 5}, "expected the hash of message 3"),
        ({"kind": "note"}, "expected the hash of message 3"),
        ({"hash": "00" * 32}, "expected the hash of message 3"),
        ({"hash": None}, "expected the hash of message 3"),
        ({"hash": "zz"}, "expected hash to be 64 hexadecimal digits, got 'zz'"),
    ],
)
def test_a_wrong_hash_refuses_a_file_with_its_line(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        ask(system.root, "tea")
        ask(system.root, "coffee")
        system.export(system.root, tmp_path / "1")
        records = lines(tmp_path / "1")
        spoiled(records, **fields)
        kinds = [record.pop("record") for record in records]
        (tmp_path / "1").write_bytes(b"".join(file_lines(zip(kinds[:-1], records[:-1], strict=True))))
        place = next(
            number
            for number, line in enumerate((tmp_path / "1").read_bytes().splitlines(), 1)
            if json.loads(line).get("id") == 3
        )
        with pytest.raises(ImportRefused, match=f"line {place}: {message}"):
            system.import_(tmp_path / "1")
        assert len(system.agents()) == 1


def test_a_value_of_another_type_is_named_and_no_file_is_left(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    with ActorSystem.open(url := new_sqlite(), provider()) as system:
        ask(system.root, "tea")
    damage(url, "UPDATE messages SET content = CAST(content AS BLOB) WHERE id = 2", hashes=False)
    with (
        ActorSystem.attach(url) as system,
        pytest.raises(StoreUnusable, match=r"A message of .* has a value of a wrong type. Run ikigai fsck"),
    ):
        system.export(system.root, tmp_path / "1")
    assert not (tmp_path / "1").exists()
