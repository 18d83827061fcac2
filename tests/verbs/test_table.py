"""The table of verbs: what it says of each is what the verb says of itself."""

import json

import click
import pytest

from ikigai_actors.shell.cli.main import cli
from ikigai_actors.shell.cli.one_command import subcommand
from ikigai_actors.shell.slash import commands
from ikigai_actors.verbs.table import TABLE, Callers, load, names
from ikigai_actors.verbs.tools import tool_of
from ikigai_actors.verbs.verb import Verb, VerbGroup

SCRIPTS = sorted({*names(Callers.SCRIPTS)} - {*cli.commands})
"""The verbs of scripts, but those that the command line does by itself."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_table_says_of_a_subcommand_what_its_declaration_says(name: str) -> None:
    command = subcommand(load(name))
    pieces = command.collect_usage_pieces(click.Context(command))
    assert TABLE[name].usage == " ".join(piece for piece in pieces if piece != "[OPTIONS]")
    assert TABLE[name].line == command.get_short_help_str(1_000)


@pytest.mark.parametrize("name", names(Callers.PEOPLE))
def test_a_slash_command_says_first_what_the_table_says(name: str) -> None:
    assert commands.commands[f"/{name}"].get_short_help_str(1_000) == TABLE[name].line


def test_a_command_that_is_no_verb_is_not_in_the_table_of_its_callers() -> None:
    slash = {name.removeprefix("/") for name in commands.commands}
    assert {*names(Callers.PEOPLE)} <= slash


@pytest.mark.parametrize("name", names(Callers.PROTOCOLS))
def test_the_schema_of_a_tool_is_json_and_names_each_argument_once(name: str) -> None:
    verb = load(name)
    for one in verb.verbs if isinstance(verb, VerbGroup) else (verb,):
        tool = json.loads(json.dumps(tool_of(one)))
        assert set(tool["input_schema"]["required"]) <= set(tool["input_schema"]["properties"])
        assert tool["description"]


def test_each_verb_stands_in_its_module_under_its_word() -> None:
    assert [load(name).name for name in TABLE] == [*TABLE]
    assert all(isinstance(load(name), Verb | VerbGroup) for name in TABLE)
