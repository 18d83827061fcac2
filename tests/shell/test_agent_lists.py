"""The lists of agents for people and scripts: some of very many, and all of them as JSON."""

import json

import pytest

from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.shell.agent_lists import list_lines, read_list
from ikigai_actors.shell.cli import registry as reader
from ikigai_actors.store import Store, Transaction
from ikigai_actors.system.remote.client import Client
from tests.kit.databases import sql
from tests.kit.trees import add, add_host, plant

MANY = 1_005
"""More than are read at once."""


def uuid(number: int) -> str:
    return f"k{number:04}" + "x" * 17


@pytest.fixture
def crowd(store: Store) -> Store:
    """Agent 0 with "first" and "last" and many others between them below it; one of these is dead."""
    plant(store)

    def work(tx: Transaction) -> None:
        add_host(tx, "another")
        for number in range(MANY):
            name = {0: "first", MANY - 1: "last"}.get(number)
            add(tx, uuid(number), "root", name=name, now=10 + number)
        tx.run("bury", uuids=[uuid(7)], cause="killed", sender=None, reason="test", now=9)

    store.write(work)
    return store


def lines(store: Store, text: str = "", most: int = 200, dead_too: bool = False) -> list[str]:
    listed = read_list(Client(store), text, most, dead_too)
    return [line.text for line in list_lines(listed, listed.state, "ikigai agents")]


@pytest.mark.slow("takes a tenth of a second")
def test_of_many_agents_a_list_shows_some_and_says_how_many_more_there_are(crowd: Store) -> None:
    shown = lines(crowd)
    assert (len(shown), "last" in shown[-3], words_of("root") in shown[0]) == (203, True, True)
    assert shown[-2:] == [
        "1005 running, 1 dead",
        "and 805 more: ikigai agents WORD searches, --limit N lists more",
    ]
    assert len(lines(crowd, most=5)) == 8
    everybody = lines(crowd, most=MANY + 1, dead_too=True)
    assert (len(everybody), everybody[-1]) == (MANY + 2, "1005 running, 1 dead")


@pytest.mark.slow("takes a tenth of a second")
def test_a_word_finds_who_is_not_in_the_list_and_says_so_when_it_finds_nobody(crowd: Store) -> None:
    shown = lines(crowd, "FIRST")
    assert [line.split()[0] for line in shown[:-1]] == [words_of("root"), "└─"]
    assert " first " in shown[1]
    words = words_of(uuid(500))
    assert any(words in line for line in lines(crowd, words))
    assert lines(crowd, "\N{ESCAPE}x") == [
        "No name, and no two words, have '\\\\x1bx' in them. ikigai agents WORD searches."
    ]
    adjective = words.partition("-")[0][:3]
    assert lines(crowd, adjective, most=1)[-1] == f"and more with '{adjective}': give more letters, or --limit N"


@pytest.mark.thorough("many agents; every run has the list that is cut")
def test_as_json_all_come_oldest_first_some_at_a_time_and_with_a_limit_no_more(crowd: Store) -> None:
    client, everybody = Client(crowd), crowd.read(registry.every)
    rows = json.loads("".join(reader.json_pieces(client)))
    assert [row["uuid"] for row in rows] == [record.uuid for record in everybody]
    assert {row["uuid"]: row["label"] for row in rows} == registry.shown_names(everybody)
    in_tree = json.loads("".join(reader.json_pieces(client, tree=True)))
    assert [(row["uuid"], row["depth"]) for row in in_tree[:2]] == [("root", 0), (uuid(0), 1)]
    assert {row["uuid"]: row["messages"] for row in in_tree} == {row["uuid"]: row["messages"] for row in rows}
    assert [row["name"] for row in json.loads("".join(reader.json_pieces(client, most=1)))] == ["last"]
    entries = json.loads("".join(reader.json_pieces(client, "first", tree=True)))
    assert [(row["label"], row["depth"]) for row in entries] == [(everybody[0].short, 0), ("first", 1)]
    assert "".join(reader.json_pieces(client, "\N{ESCAPE}x")) == "[]\n"


def test_a_list_without_agents_is_empty(store: Store) -> None:
    assert "".join(reader.json_pieces(Client(store))) == "[]\n"
    assert lines(store) == ["0 running, 0 dead"]
    assert store.read(lambda tx: sql(tx, "SELECT COUNT(*) FROM agents")) == [(0,)]
