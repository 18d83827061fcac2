"""Remote commands: numbered for each agent, answered once, and the answer comes with what was done or not at all."""

import pytest

from ikigai_actors import errors
from ikigai_actors.errors import (
    AgentDead,
    AgentNotFound,
    AmbiguousAgent,
    DocumentChanged,
    Fenced,
    IkigaiError,
    MarkNotFound,
    NameTaken,
    ProviderError,
)
from ikigai_actors.records.hosts.remote_commands import (
    AddRemoteCommand,
    AnswerRemoteCommand,
    CarryOut,
    RemoteCommandAnswered,
    RemoteCommandKey,
    answer_of,
    decode_answer,
    encode_answer,
    new_remote_commands,
)
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.lives.supervision import AdoptChild
from ikigai_actors.store import Store
from ikigai_actors.store.unit import write_alone
from tests.kit.databases import bury
from tests.kit.trees import HOST, append, fork, ids, plant


def ask(store: Store, agent: str, kind: str = "clear") -> RemoteCommandKey:
    """Ask an agent for something."""
    return RemoteCommandKey(agent, write_alone(store, AddRemoteCommand(agent, kind, "{}", 5)))


def answer(store: Store, key: RemoteCommandKey) -> object:
    """What a remote command was answered with; an error is given back."""
    outcome = store.read(lambda tx: answer_of(tx, key))
    return None if outcome is None else outcome.value


def test_requests_are_numbered_for_each_agent_and_given_until_they_are_answered(store: Store) -> None:
    plant(store, a="root", b="root")
    keys = [ask(store, agent) for agent in ("a", "b", "a")]
    assert keys == [("a", 1), ("b", 1), ("a", 2)]
    assert {row.key for row in store.read(new_remote_commands)} == set(keys)
    assert write_alone(store, AnswerRemoteCommand(keys[0], 7, 6)) is True
    assert write_alone(store, AnswerRemoteCommand(keys[0], 8, 6)) is False
    assert [answer(store, key) for key in keys] == [7, None, None]
    assert {row.key for row in store.read(new_remote_commands)} == set(keys[1:])


def test_nobody_asks_the_dead_or_a_stranger_and_the_dead_answer_that_they_are(store: Store) -> None:
    plant(store, a="root")
    waits = ask(store, "a")
    bury(store, "a")
    with pytest.raises(AgentDead):
        ask(store, "a")
    with pytest.raises(AgentNotFound):
        ask(store, "nobody")
    assert store.read(new_remote_commands) == []
    assert isinstance(answer(store, waits), AgentDead)
    assert isinstance(answer(store, RemoteCommandKey("a", 9)), RemoteCommandAnswered)


def test_what_carries_a_request_out_is_written_once_and_with_the_answer(store: Store) -> None:
    plant(store, a="root")
    key = ask(store, "a")
    write_alone(store, CarryOut(key, append("a", 1), 1, 6))
    assert (ids(store, "a"), answer(store, key)) == ([1], 1)
    with pytest.raises(RemoteCommandAnswered):
        write_alone(store, CarryOut(key, append("a", 2), 2, 7))
    assert (ids(store, "a"), answer(store, key)) == ([1], 1)


def test_a_request_that_was_withdrawn_is_not_carried_out(store: Store) -> None:
    plant(store, a="root")
    key = ask(store, "a")
    write_alone(store, AnswerRemoteCommand(key, errors.NoHost("nobody is there"), 6))
    with pytest.raises(RemoteCommandAnswered):
        write_alone(store, CarryOut(key, append("a", 1), 1, 7))
    assert ids(store, "a") == []
    assert isinstance(answer(store, key), errors.NoHost)
    assert ask(store, "a") == ("a", 2)  # a number is not given again


def test_what_the_unit_refuses_leaves_the_request_without_an_answer(store: Store) -> None:
    plant(store, a="root")
    write_alone(store, fork("root", "named", name="tea"))
    key = ask(store, "root")
    with pytest.raises(NameTaken):
        write_alone(store, CarryOut(key, fork("root", "other", at=2, name="tea"), "other", 6))
    assert answer(store, key) is None


def test_a_death_and_an_adoption_carry_requests_out_as_any_unit_does(store: Store) -> None:
    plant(store, a="root", b="root")
    exits, adopts = ask(store, "a", "exit"), ask(store, "b", "adopt")
    write_alone(store, CarryOut(adopts, AdoptChild("a", "b", 9), None, 6))
    assert write_alone(store, CarryOut(exits, WriteDeath("a", HOST, "done", 7), None, 7)).dead.keys() == {"a"}
    assert [answer(store, key) for key in (exits, adopts)] == [None, None]
    assert store.read(new_remote_commands) == []


@pytest.mark.parametrize("value", [None, True, 7, "uuid"])
def test_a_value_comes_back_as_it_was_stored(value: object) -> None:
    assert decode_answer(encode_answer(value)).value == value


@pytest.mark.parametrize(
    "error",
    [
        MarkNotFound("no mark\x00", "a"),
        AmbiguousAgent("several", "a", ("ab", "ac")),
        Fenced("gone", "a", dead=True),
        DocumentChanged("changed", "plan.md", 3),
        ProviderError("no answer", "half", broke_off=True),
        IkigaiError("something"),
    ],
)
def test_an_error_comes_back_as_it_was_stored(error: IkigaiError) -> None:
    back = decode_answer(encode_answer(error)).value
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_every_error_of_ours_can_be_an_answer() -> None:
    kinds = [var for var in vars(errors).values() if isinstance(var, type) and issubclass(var, IkigaiError)]
    for kind in kinds:
        error = kind("why", "plan.md") if issubclass(kind, errors.DocumentError) else kind("why")
        assert type(decode_answer(encode_answer(error)).value) is kind


def test_an_error_that_is_known_here_alone_comes_back_as_the_nearest_that_all_know() -> None:
    class Hungry(ProviderError):
        """Somebody's own."""

    assert type(decode_answer(encode_answer(Hungry("no tea"))).value) is ProviderError
    assert type(decode_answer(encode_answer(RemoteCommandAnswered("before", "a"))).value) is errors.AgentError


@pytest.mark.parametrize("text", ["", "5", "{}", '{"error": "NoSuchError"}', "[" * 100_000])
def test_an_answer_that_cannot_be_read_is_an_error_that_says_so(text: str) -> None:
    back = decode_answer(text).value
    assert type(back) is IkigaiError
    assert "cannot be read" in str(back)
