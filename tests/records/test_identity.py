"""Names: of every script, in one spelling."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import (
    ActorSystem,
    AgentNotFound,
    BadInput,
    NameTaken,
    OfflineProvider,
    Reply,
    ScriptedProvider,
    ToolCall,
)
from ikigai_actors.records.agents.identity import NAME_LENGTH, check_name, same_name
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import open_store

NAMES = (
    "हिन्दी",
    "தமிழ்",
    "עִברִית",
    "Zoë",
    "Zoe\u0308",
    "日本語",
    "ภาษาไทย",
    "zażółć",
    "dba-2",
    "1st",
    "ở-đây",
    "a\u0301\u0323b",
)


@pytest.mark.parametrize("name", NAMES)
def test_letters_of_every_script_make_a_name_with_their_marks(name: str) -> None:
    assert check_name(name) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    "name", ["\u0308", "\u0308a", "1\u0308", "-a", "", "a b", "a\u200db", "😀", "x" * (NAME_LENGTH + 1)]
)
def test_a_mark_without_its_letter_and_what_cannot_be_seen_make_no_name(name: str) -> None:
    with pytest.raises(BadInput, match="A name is 1 to 64 letters"):
        check_name(name)


@given(st.text(st.characters(categories=["L", "M", "N", "Pd"]), min_size=1, max_size=8))
def test_a_name_that_is_taken_is_taken_as_it_was_kept(name: str) -> None:
    try:
        kept = check_name(name)
    except BadInput:
        return
    assert check_name(kept) == kept == same_name(name)


@pytest.mark.slow("takes a tenth of a second")
def test_two_spellings_of_a_name_are_one_name_and_find_one_agent(durable: str) -> None:
    composed, decomposed = "Zo\u00eb", "Zoe\u0308"
    calls = ScriptedProvider([Reply(tool_calls=(ToolCall("fork", {"name": "Ame\u0301lie"}),)), "done", "done"])
    with ActorSystem.open(durable, OfflineProvider(), {"calls": calls}) as system:
        zoe = system.root.fork(name=decomposed)
        assert zoe.name == composed
        assert system.agent(composed) == system.agent(decomposed) == zoe
        with pytest.raises(NameTaken):
            system.root.fork(name=composed)
        assert system.send(decomposed, "tea") == 1
        with pytest.raises(AgentNotFound):
            system.agent("Zoe")
        system.root.configure(model="calls")
        system.root.prompt("fork").get(timeout=60)
        assert system.agent("Am\u00e9lie").name == system.agent("Ame\u0301lie").name == "Am\u00e9lie"
    store = open_store(durable)
    try:
        assert check(store) == []
    finally:
        store.close()
