"""The help of both groups of commands: each command stands under one heading, and lines fill the terminal."""

import click
import pytest
from click.testing import CliRunner

from ikigai_actors.shell.cli.main import cli
from ikigai_actors.shell.headings import MOST_COLUMNS, HeadedGroup
from ikigai_actors.shell.slash import commands

GROUPS = pytest.mark.parametrize("group", [cli, commands], ids=["ikigai", "the shell"])


def output_of(*words: str) -> str:
    """What the command line prints."""
    return CliRunner().invoke(cli, [*words], prog_name="ikigai").output


@GROUPS
def test_each_command_stands_under_one_of_five_headings(group: HeadedGroup) -> None:
    known = {name: group.get_command(click.Context(group), name) for name in group.list_commands(click.Context(group))}
    visible = [name for name, command in known.items() if command is not None and not command.hidden]
    assert sorted(group.contents.names()) == sorted(visible)
    assert len(group.contents.headings) == 5


@GROUPS
def test_ten_commands_that_are_there_come_first(group: HeadedGroup) -> None:
    first = group.contents.first_day.split()
    assert len(first) == 10
    assert {*first} <= {*group.contents.names()}


def test_help_names_every_command_and_help_all_explains_it() -> None:
    short, everything = output_of("--help"), output_of("help", "all")
    assert short == output_of("help")
    assert short.index("First commands:") < short.index("More commands") < short.index("Options:")
    for name in cli.contents.names():
        assert f" {name}" in short
        assert f"\n  {name} " in f"\n{everything}"
    assert [line for line in everything.splitlines() if line.endswith(":")] == [
        f"{heading}:" for heading in cli.contents.headings
    ]


@pytest.mark.parametrize("words", [("fork",), ("doc", "show"), ("cluster", "up")], ids=" ".join)
def test_help_explains_a_command_as_its_option_does(words: tuple[str, ...]) -> None:
    assert output_of("help", *words) == output_of(*words, "--help")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("help", "frok"), "There is no command 'frok'. Did you mean fork?"),
        (("frok", "x"), "There is no command 'frok'. Did you mean fork?"),
        (("pag",), "There is no command 'pag'. ikigai help lists the commands."),
        (("help", "doc", "shwo"), "No such command 'shwo'"),
        (("help", "agents", "x"), "ikigai agents has no commands of its own, so no 'x' either."),
    ],
)
def test_a_mistyped_command_is_answered_with_one_that_help_shows(words: tuple[str, ...], says: str) -> None:
    assert says in output_of(*words)


@pytest.mark.parametrize("columns", [60, 100, MOST_COLUMNS])
def test_help_fills_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with cli.make_context("ikigai", [], resilient_parsing=True) as context:
        longest = max(map(len, context.get_help().splitlines()))
    assert columns - 15 <= longest < columns
