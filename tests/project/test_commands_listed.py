"""The lists of subcommands that are kept by hand name every one."""

import re

import click
import pytest

from ikigai_actors.shell.cli import main
from tests.kit.verbs import ELSEWHERE, PAGE, is_named

COMMANDS = [name for name, command in main.cli.commands.items() if not command.hidden]
"""Those that are no verbs."""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_docstring_of_the_command_line_names_each_subcommand_that_is_no_verb(name: str) -> None:
    assert re.search(rf"^    ikigai {name}\b", main.__doc__ or "", re.MULTILINE)


@pytest.mark.parametrize("name", sorted({*main.cli.list_commands(click.Context(main.cli))} - {*ELSEWHERE}))
def test_the_page_of_commands_names_each_subcommand(name: str) -> None:
    assert is_named(name, PAGE.read_text(encoding="utf-8")), "run python -m tests.kit.verbs"
