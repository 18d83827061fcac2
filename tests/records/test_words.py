"""The two words of an agent, and how they find it."""

import random
from hashlib import sha256
from pathlib import Path

import pytest

from ikigai_actors.errors import AgentNotFound, AmbiguousAgent
from ikigai_actors.records.agents import registry, words
from ikigai_actors.records.agents.identity import is_agent_uuid, new_agent_uuid
from ikigai_actors.records.agents.words import beginnings, words_of
from ikigai_actors.store import Store, Transaction
from tests.kit.trees import add, plant

BRAVE = "EpL9x5QoKz7wP1mN9sT2aA"
"""The uuid of brave-otter, for the first three and most of the fourth letter."""

HERE = Path(words.__file__).parent


def grow(store: Store, *agents: tuple[str, str | None]) -> None:
    def work(tx: Transaction) -> None:
        for uuid, name in agents:
            add(tx, uuid, "root", name=name)

    plant(store)
    store.write(work)


def bury(store: Store, *uuids: str) -> None:
    store.write(lambda tx: tx.run("bury", uuids=list(uuids), cause="killed", sender=None, reason="test", now=2))


def called(store: Store, text: str) -> str:
    return store.read(lambda tx: registry.find(tx, text)).uuid


def labels(store: Store) -> dict[str, str]:
    """The labels of all agents; looked up one by one, they are the same."""
    records = store.read(registry.every)
    all_at_once = registry.shown_names(records)
    assert all_at_once == store.read(lambda tx: {record.uuid: registry.shown_name(tx, record) for record in records})
    return all_at_once


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("adjectives.txt", "38643906be0253acd1dfa67a319048f260a76f7a2be1bc9cca3c39b429e5a4c2"),
        ("nouns.txt", "b092058fcd6d537f6b3fcc01e447f306a48a531c975f85ba1b3eaeda4abb7715"),
    ],
)
def test_the_lists_never_change(name: str, digest: str) -> None:
    assert sha256((HERE / name).read_bytes()).hexdigest() == digest


def test_each_list_has_2048_short_words_and_no_word_is_in_both() -> None:
    adjectives, nouns = ((HERE / name).read_text("ascii").split() for name in ("adjectives.txt", "nouns.txt"))
    assert len(adjectives) == len(nouns) == 2048
    assert len({*adjectives, *nouns}) == 4096
    assert all(3 <= len(word) <= 8 and word.isalpha() and word.islower() for word in adjectives + nouns)


def test_the_words_are_the_first_22_bits_and_the_letters_go_on_where_they_end() -> None:
    assert words_of(BRAVE) == "brave-otter"
    assert words_of(BRAVE, 3) == f"brave-otter-{BRAVE[3:6]}"
    assert beginnings("brave-otter") == tuple(BRAVE[:3] + last for last in "89-_")
    assert beginnings(f"brave-otter-{BRAVE[3:6]}") == (BRAVE[:6],)
    assert beginnings(f"brave-otter-a{BRAVE[4:6]}") == ()  # no fourth letter of these words
    for text in ("brave", "brave-brave", "otter-brave", "Brave-Otter", "brave-otter-", "brave otter", ""):
        assert beginnings(text) == ()


def test_any_uuid_begins_as_its_words_say_and_no_words_look_like_a_uuid() -> None:
    source = random.Random(11)
    for uuid in (new_agent_uuid(source.randbytes) for _ in range(200)):
        for letters in range(words.LONGEST + 1):
            text = words_of(uuid, letters)
            assert uuid.startswith(beginnings(text))
            assert not is_agent_uuid(text)
        assert beginnings(words_of(uuid, words.LONGEST)) == (uuid,)


def test_what_a_damaged_row_has_for_a_uuid_is_shown_as_it_is(store: Store) -> None:
    grow(store, ("a", None), ("b b", None), ("ß" * 22, None))
    assert [labels(store)[uuid] for uuid in ("a", "b b", "ß" * 22)] == ["a", "b b", "ß" * 22]


def test_the_words_find_an_agent_dead_or_alive(store: Store) -> None:
    grow(store, (BRAVE, None))
    assert labels(store)[BRAVE] == "brave-otter"
    assert called(store, "brave-otter") == called(store, "brave-otter-9x5") == BRAVE
    bury(store, BRAVE)
    assert labels(store)[BRAVE] == "brave-otter"
    assert called(store, "brave-otter") == BRAVE
    for text in ("brave-otter-8x5", "brave-badger", "brave-otter-9x6"):
        with pytest.raises(AgentNotFound, match="no agent has these two words"):
            called(store, text)


def test_words_that_agents_share_are_ambiguous_and_shown_with_more_letters(store: Store) -> None:
    twins = [BRAVE[:3] + tail + BRAVE[len(tail) + 3 :] for tail in ("8", "9-Q8", "9-Q9")]
    grow(store, *((twin, None) for twin in twins))
    with pytest.raises(AmbiguousAgent) as caught:
        called(store, "brave-otter")
    assert caught.value.candidates == tuple(sorted(twins))
    shown = ["brave-otter-8", "brave-otter-9-Q8", "brave-otter-9-Q9"]
    assert all(label in str(caught.value) for label in shown)
    shown_names = labels(store)
    assert [shown_names[twin] for twin in twins] == shown
    assert [called(store, shown_names[twin]) for twin in twins] == twins
    with pytest.raises(AmbiguousAgent):
        called(store, "brave-otter-9")


def test_a_name_wins_over_the_words_of_another_agent_which_show_more_letters(store: Store) -> None:
    named, cunning, buyer = "M" * 22, "N" * 22, "P" * 22
    grow(store, (BRAVE, None), (named, "brave-otter"), (cunning, "brave-otter-9"), (buyer, "buyer"))
    shown_names = labels(store)
    assert (shown_names[named], shown_names[BRAVE], shown_names[buyer]) == ("brave-otter", "brave-otter-9x", "buyer")
    for uuid, text in shown_names.items():
        assert text == "root" or called(store, text) == uuid


def test_a_dead_agent_whose_name_another_one_has_is_shown_by_its_words(store: Store) -> None:
    first, second, third = "M" * 22, "N" * 22, "P" * 22
    grow(store, (first, "buyer"))
    bury(store, first)
    assert labels(store)[first] == "buyer"
    store.write(lambda tx: add(tx, second, "root", name="buyer"))
    assert (labels(store)[first], labels(store)[second]) == (words_of(first), "buyer")
    bury(store, second)
    store.write(lambda tx: add(tx, third, "root", name="buyer"))
    shown_names = labels(store)
    assert [shown_names[agent] for agent in (first, second, third)] == [words_of(first), words_of(second), "buyer"]
    assert [called(store, shown_names[agent]) for agent in (first, second, third)] == [first, second, third]


def test_every_label_finds_its_agent_however_much_they_share(store: Store) -> None:
    source = random.Random(7)
    uuids = [new_agent_uuid(source.randbytes)[: source.choice([2, 3, 4])] for _ in range(60)]
    uuids = sorted({uuid + source.choice("ABZa_") + source.choice("-_ab") + "A" * (20 - len(uuid)) for uuid in uuids})
    grow(store, *((uuid, None) for uuid in uuids))
    for uuid, text in labels(store).items():
        assert uuid == "root" or called(store, text) == uuid
