"""What each kind of command says of itself, from which all who handle commands know how."""

from dataclasses import fields, is_dataclass
from typing import Any, get_args

import pytest

from ikigai_actors.agent.turn import events as on


def names(command: Any) -> set[str]:
    return {field.name for field in fields(command)}


@pytest.mark.parametrize("command", get_args(on.Command))
def test_every_command_says_what_it_needs_and_what_it_travels_as(command: Any) -> None:
    said = vars(command)
    assert isinstance(said["needs"], on.Needs)
    assert isinstance(said["travels_as"], str)


def test_whatever_carries_a_caller_may_have_to_wait_and_says_what_it_needs() -> None:
    carries = {event for event in vars(on).values() if is_dataclass(event) and "caller" in names(event)}
    assert carries == {event for event in get_args(on.Deferrable) if "caller" in names(event)}
    assert all("needs" in vars(event) for event in get_args(on.Deferrable))
