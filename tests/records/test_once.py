"""Keyed calls: done once, with their row or not at all, whoever asks and whatever is lost."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors.errors import AgentDead, BadInput, CommitUnknown, KeyTaken, Repeated
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.mail.mail import PROMPT, Mail, Send
from ikigai_actors.records.mail.prompts import WithdrawPrompt, take_prompt
from ikigai_actors.records.once import KEPT_MS, KeyedCall, Once, left_as
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.unit import LockedRows, RunAlone, Unit, write_alone
from tests.kit.databases import bury, sql
from tests.kit.faults import FaultyStore
from tests.kit.trees import plant


def keyed(agent: str, text: str, key: str, now: int = 5, scope: str = "") -> Once:
    call = KeyedCall(key, "prompt", {"agent": agent, "text": text}, scope, agent, text)
    return Once(Send(agent, None, text, now, PROMPT), call, now, lambda mail: left_as(mail.id))


def gave(store: Store, unit: Once) -> dict[str, Any]:
    """What a call gives, now or before."""
    try:
        return left_as(write_alone(store, unit).id)
    except Repeated as repeated:
        return repeated.gave


def prompts(store: Store) -> list[str]:
    return [str(body) for (body,) in store.read(lambda tx: sql(tx, "SELECT body FROM mail ORDER BY recipient, id"))]


def keys(store: Store) -> list[str]:
    return sorted(key for _, key, *_ in store.read(lambda tx: tx.run("calls")))


def test_a_call_is_done_once_and_has_one_answer_however_often_it_comes(store: Store) -> None:
    plant(store, a="root")
    answers = [gave(store, keyed("a", "tea", key)) for key in ("k1", "k2", "k1", "k2", "k1")]
    assert answers == [{"mail": mail} for mail in (1, 2, 1, 2, 1)]
    assert prompts(store) == ["tea", "tea"]


def test_a_key_of_another_call_is_refused_and_nothing_is_done(store: Store) -> None:
    plant(store, a="root", b="root")
    write_alone(store, keyed("a", "tea", "k1"))
    for agent, text in (("a", "coffee"), ("b", "tea")):
        with pytest.raises(KeyTaken, match="Key 'k1' names another call: prompt 'tea', of 1970-01-01 00:00:00 UTC"):
            write_alone(store, keyed(agent, text, "k1"))
    assert prompts(store) == ["tea"]


def test_a_key_is_one_within_its_scope(store: Store) -> None:
    plant(store, a="root", b="root")
    answers = [gave(store, keyed(agent, agent, "k1", scope=agent)) for agent in ("a", "b", "a")]
    assert answers == [{"mail": 1}, {"mail": 1}, {"mail": 1}]
    assert prompts(store) == ["a", "b"]


def test_a_prompt_that_is_withdrawn_leaves_its_key_free_and_no_other_one(store: Store) -> None:
    plant(store, a="root", b="root")
    for agent, key in (("a", "k1"), ("a", "k2"), ("b", "k1")):
        write_alone(store, keyed(agent, key, key, scope=agent))
    assert write_alone(store, WithdrawPrompt("a", 1))
    assert not write_alone(store, WithdrawPrompt("a", 1))
    assert keys(store) == ["k1", "k2"]
    assert gave(store, keyed("a", "coffee", "k1", scope="a")) == {"mail": 3}


def test_what_is_refused_leaves_its_key_free(store: Store) -> None:
    plant(store, a="root", b="root")
    bury(store, "a")
    with pytest.raises(AgentDead):
        write_alone(store, keyed("a", "tea", "k1"))
    assert keys(store) == []
    assert gave(store, keyed("b", "tea", "k1")) == {"mail": 1}


@pytest.mark.parametrize("key", ["", "k" * 201, "a\nb", "\0"])
def test_a_text_that_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(BadInput, match="a key of 1 to 200 printable characters"):
        KeyedCall(key, "prompt", {})


def test_of_several_who_ask_at_once_one_does_it_and_all_have_its_answer(store: Store) -> None:
    plant(store, a="root", b="root")
    with ThreadPoolExecutor(4) as pool:
        for number in range(5):
            key = f"k{number}"
            asked = [pool.submit(gave, store, keyed("a", key, key)) for _ in range(4)]
            mails = {future.result()["mail"] for future in asked}
            assert mails == {number + 1}
        rivals = [pool.submit(gave, store, keyed(agent, "x", "rival")) for agent in ("a", "b") * 2]
        refused = [rival.exception() for rival in rivals if rival.exception() is not None]
    assert (prompts(store).count("x"), [type(error) for error in refused]) == (1, [KeyTaken] * 2)


class Alone(Unit):
    """Asks to be run again, alone."""

    alone = True

    def write(self, tx: Transaction, locked: LockedRows) -> Any:
        raise RunAlone(Send("a", None, "tea", 5, PROMPT))


def test_an_act_that_must_be_run_alone_is_so_with_its_key(store: Store) -> None:
    plant(store, a="root")

    def fields(mail: Mail) -> Mapping[str, Any]:
        return left_as(mail.id)

    unit = Once(Alone(), KeyedCall("k1", "odd", {}), 5, fields)
    assert [gave(store, unit) for _ in range(2)] == [{"mail": 1}] * 2
    assert (prompts(store), keys(store)) == (["tea"], ["k1"])


def test_a_prune_deletes_the_rows_that_are_older_than_thirty_days_and_name_nothing_open(store: Store) -> None:
    plant(store, a="root")
    for key, now in (("old", 1), ("waits", 1), ("young", 3)):
        write_alone(store, keyed("a", key, key, now))
    store.write(lambda tx: take_prompt(tx, "a", 1, 2, ends=False))
    prune_logs(store, 0, KEPT_MS + 2)
    assert keys(store) == ["waits", "young"]


STEPS = st.lists(
    st.tuples(st.sampled_from(["k1", "k2", "k3"]), st.sampled_from(["", "before", "after"])), min_size=1, max_size=12
)


@settings(max_examples=60)
@given(STEPS)
def test_whatever_commits_and_answers_are_lost_each_key_is_that_of_one_prompt(steps: list[tuple[str, str]]) -> None:
    """A client repeats a call until it has heard its answer; the server loses commits, and the answers to others."""
    inner = open_store(":memory:")
    ensure_schema(inner)
    plant(inner, a="root")
    store, heard = FaultyStore(inner), dict[str, Any]()
    for key, lost in steps:
        if lost:
            store.breaks_during_commit(committed=lost == "after")
        try:
            answer = gave(store, keyed("a", key, key))
        except CommitUnknown:
            continue
        assert heard.setdefault(key, answer) == answer
    done = prompts(inner)
    assert len(done) == len(set(done))
    assert set(heard) <= set(done)
    rows = {key: json.loads(gave)["mail"] for _, key, *_, gave in inner.read(lambda tx: tx.run("calls"))}
    assert {key: done[mail - 1] for key, mail in rows.items()} == {key: key for key in done}
    inner.close()
