"""The Tab key: what each argument of each command may become."""

from collections.abc import Iterator
from typing import NamedTuple

import click
import pytest
from click.types import FloatRange, IntRange

from ikigai_actors.records.messages.settings import SETTINGS
from ikigai_actors.shell.completion import completions
from ikigai_actors.shell.slash import commands
from ikigai_actors.verbs import arguments
from tests.kit.sessions import Session

SAMPLES = {IntRange: "1", FloatRange: "1", click.Choice: "", click.File: "a.md"}
"""The other types of an argument than texts, and a word that suits each."""


class Parameter(NamedTuple):
    """A parameter that takes a value, and the line up to it."""

    line: str
    type: click.ParamType[object]


def parameters(group: click.Group, above: str = "") -> Iterator[Parameter]:
    """Every parameter of every command that takes a value."""
    for name, command in group.commands.items():
        line = f"{above}{name} "
        if isinstance(command, click.Group):
            yield from parameters(command, line)
        for param in command.params:
            if isinstance(param, click.Option) and not param.is_flag:
                yield Parameter(f"{line}{param.opts[0]} ", param.type)
        for param in command.params:
            if isinstance(param, click.Argument):
                yield Parameter(line, param.type)
                word = (
                    param.type.choices[0]
                    if isinstance(param.type, click.Choice)
                    else SAMPLES.get(type(param.type), "x")
                )
                line += f"{word} "


ALL = [*parameters(commands)]


def test_every_argument_of_every_command_declares_what_is_offered_for_it() -> None:
    declared = (arguments.Offering, arguments.CommandName, *SAMPLES)
    others = [parameter.line for parameter in ALL if not isinstance(parameter.type, declared)]
    assert others == [], "declare their types: one of verbs/arguments.py, TEXT if none fits"


@pytest.mark.slow("takes a tenth of a second")
def test_what_an_argument_declares_is_offered_wherever_it_stands(session: Session) -> None:
    root = session.system.root
    kid = root.fork(name="kid")
    kid.mark("here")
    session.system.documents.write("plan.md", "text")
    one_of = {
        id(arguments.AGENT): "kid", id(arguments.SENDER): "person", id(arguments.MARK_LABEL): "here",
        id(arguments.TOOL): "fork", id(arguments.DOCUMENT): "plan.md", id(arguments.SETTING): "temperature",
        id(arguments.COMMAND): "/adopt", id(arguments.MODEL): "offline:",
    }  # fmt: skip
    for line, kind in ALL:
        word = kind.choices[-1] if isinstance(kind, click.Choice) else one_of.get(id(kind))
        expected = [] if word is None else [f"{line}{word}"]
        assert [text for text in completions(kid, line) if text in expected] == expected, line
        if word is not None:
            assert f"{line}{word}" in completions(kid, line + word[:1]), line
        else:
            assert completions(kid, line) == [], line


COMPLETED: list[tuple[str, list[str]]] = [
    ("/swi", ["/switch "]),
    ("/doc sh", ["/doc show "]),
    ("/doc b", []),
    ("/doc nonsense ", []),
    ("/nonsense ", []),
    ("hello ", []),
    ("hello /sw", []),
    ("/kill --c", ["/kill --cascade"]),
    ("/orphans s", ["/orphans stop"]),
    ("/notify o", ["/notify on", "/notify off"]),
    ("/supervise --strategy rest", ["/supervise --strategy rest_for_one"]),
    ("/signal K", ["/signal KILL"]),
    ("/signal ki", ["/signal kill"]),
    ("/signal kill ki", ["/signal kill kid"]),
    ("/signal KILL ki", ["/signal KILL kid"]),
    ("/kill --cascade ki", ["/kill --cascade kid"]),
    ("/kill --reason 'it is done' ki", ["/kill --reason 'it is done' kid"]),
    ("/wait 5 kid ki", ["/wait 5 kid kid"]),
    ("/send kid ki", []),
    ("/set notify o", ["/set notify on", "/set notify off"]),
    ("/set compact ", ["/set compact auto", "/set compact off"]),
    ("/set max_steps ", ["/set max_steps 7"]),
    ("/set compact_model off", ["/set compact_model offline", "/set compact_model offline:"]),
    ("/rules --of ki", ["/rules --of kid"]),
    ("/settings theme d", ["/settings theme dark"]),
    ("/rewind before the", ["/rewind before the storm"]),
    ("/rewind bef", ["/rewind before the storm"]),
    ("/doc show 'my", ["/doc show 'my plan.md'"]),
    ("/doc write --file ", []),
    ("/tools for", ["/tools fork"]),
]


def test_a_line_is_completed(session: Session) -> None:
    root = session.system.root
    root.fork(name="kid")
    root.rename("zoe")  # its two words might begin with what is completed
    root.mark("before the storm")
    root.configure(max_steps=7)
    session.system.documents.write("my plan.md", "text")
    assert [(line, completions(root, line)) for line, _ in COMPLETED] == COMPLETED


def test_the_settings_and_all_commands_are_offered(session: Session) -> None:
    root = session.system.root
    assert completions(root, "/set ") == [f"/set {name}" for name in SETTINGS]
    assert completions(root, "") == completions(root, "/") == [f"{name} " for name in sorted(commands.commands)]
