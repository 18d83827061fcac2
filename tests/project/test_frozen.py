"""What a program is given is frozen dataclasses with slots, however it was made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from ikigai_actors import ActorSystem, OfflineProvider, PendingCall, ScriptedProvider, ToolCall, tool
from ikigai_actors.frozen import as_dict, maker
from ikigai_actors.frozen import replace as replace_fast
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.messages.messages import Message


@dataclass(frozen=True, slots=True)
class Stone:
    name: str
    weight: int = 1
    marks: list[str] = field(default_factory=list)


new_stone = maker(Stone)


def test_a_record_of_a_maker_is_one_of_its_class() -> None:
    made = new_stone("flint", 3, ["a"])
    assert type(made) is Stone
    assert made == Stone("flint", 3, ["a"])
    assert repr(made) == repr(Stone("flint", 3, ["a"]))
    assert not hasattr(made, "__dict__")


def test_a_maker_has_the_defaults_of_the_class_and_shares_none_of_them() -> None:
    first, other = new_stone("flint"), new_stone(name="chalk")
    assert first == Stone("flint")
    assert first.marks is not other.marks


def test_the_fields_by_name_are_the_record_s_own_values() -> None:
    stone = Stone("flint", marks=["a"])
    assert as_dict(stone) == asdict(stone)
    assert as_dict(stone)["marks"] is stone.marks


@dataclass(frozen=True, slots=True)
class Boulder(Stone):
    height: int = field(default=2, kw_only=True)


@dataclass(frozen=True)
class Checked:
    weight: int

    def __post_init__(self) -> None:
        assert self.weight > 0


@pytest.mark.parametrize("stone", [Stone("flint", 3, ["a"]), Boulder("flint", height=5), Checked(3)])
def test_a_changed_record_is_as_the_standard_library_makes_it(stone: Any) -> None:
    for changes in ({}, {"weight": 7}):
        made = replace_fast(stone, **changes)
        assert (type(made), made, made is stone) == (type(stone), replace(stone, **changes), False)
        assert repr(made) == repr(replace(stone, **changes))
    with pytest.raises(TypeError, match="height_"):
        replace_fast(stone, height_=1)


def test_a_check_of_a_record_is_made_of_the_changed_one() -> None:
    with pytest.raises(AssertionError):
        replace_fast(Checked(3), weight=0)


@tool(policy="ask")
def knock() -> str:
    """Knock."""
    return "who is there"


@contextmanager
def lived_in() -> Iterator[ActorSystem]:
    """A system with an agent that has done a little of everything."""
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        kid = system.root.fork("look", name="kid")
        kid.reply(timeout=30)
        system.root.send(kid, "tea")
        system.documents.write("plan.md", "text", author=kid)
        yield system


GIVEN: dict[str, Callable[[ActorSystem], Any]] = {
    "a row of the registry": lambda system: system.agents()[1],
    "the row of a handle": lambda system: system.agent("kid").record,
    "a message that was just written": lambda system: system.agent("kid").history()[-1],
    "a mail that is unread": lambda system: system.agent("kid").mails()[0],
    "a mail that is read": lambda system: system.agent("kid").read_mail()[0],
    "a preview of a mail": lambda system: system.agent("kid").check_mail().previews[0],
    "a mailbox": lambda system: system.agent("kid").check_mail(),
    "a document": lambda system: system.documents.read("plan.md"),
    "a version of a document": lambda system: system.documents.log("plan.md")[0],
    "a range": lambda system: system.agent("kid").ranges()[0],
    "what the history means": lambda system: system.agent("kid").context(),
    "the statistics of an agent": lambda system: system.agent("kid").statistics(),
    "the statistics of the system": lambda system: system.statistics(),
}


@pytest.mark.parametrize("make", GIVEN.values(), ids=list(GIVEN))
def test_what_a_program_is_given_is_a_frozen_dataclass_with_slots(make: Callable[[ActorSystem], Any]) -> None:
    with lived_in() as system:
        record = make(system)
    assert is_dataclass(record)
    assert not isinstance(record, type | tuple)
    assert not hasattr(record, "__dict__")
    assert list(asdict(record)) == [field.name for field in fields(record)]
    assert len(astuple(record)) == len(fields(record))
    assert replace(record) == record
    with pytest.raises(FrozenInstanceError):
        setattr(record, fields(record)[0].name, None)


def test_a_call_that_waits_and_the_messages_of_a_subscriber_are_such_records_too() -> None:
    heard: list[object] = []
    asked: list[PendingCall] = []

    def allow(call: PendingCall) -> bool:
        asked.append(call)
        return True

    asks = ScriptedProvider([Reply(tool_calls=(ToolCall("knock", {}),)), "done"])
    with ActorSystem.open(":memory:", asks, tools=[knock], approvals=allow) as system:
        system.subscribe(heard.append)
        assert system.root.prompt("knock").get(timeout=30).text == "done"
        root = system.root.uuid
    [call] = asked
    about = {"agent": root, "reply": 2, "id": call.id, "tool": "knock", "input": {}, "unfenced": False}
    now, before = {"definition": call.definition, "build": call.build}, {"former": "", "former_build": "", "change": ""}
    assert asdict(call) == about | now | before | {"asked_at": call.asked_at, "connect": None}
    messages = [event for event in heard if isinstance(event, Message)]
    assert [message.kind for message in messages][:2] == ["user", "assistant"]
    assert all(is_dataclass(message) and not isinstance(message, tuple) for message in messages)
