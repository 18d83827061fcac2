"""The lists of subcommands that are kept by hand name every one."""

import re
from pathlib import Path

import click
import pytest

from ikigai_actors.shell.cli import main

COMMANDS = [name for name, command in main.cli.commands.items() if not command.hidden]
"""Those that are no verbs."""

PAGE = (Path(__file__).parents[2] / "docs" / "use" / "commands.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_docstring_of_the_command_line_names_each_subcommand_that_is_no_verb(name: str) -> None:
    assert re.search(rf"^    ikigai {name}\b", main.__doc__ or "", re.MULTILINE)


ELSEWHERE = {"demo": "a tour, not a command for scripts", "copy": "docs/operate/data.md", "page": "hidden"}
"""The subcommands that the page of commands leaves to others, and why."""


@pytest.mark.parametrize("name", sorted({*main.cli.list_commands(click.Context(main.cli))} - {*ELSEWHERE}))
def test_the_page_of_commands_names_each_subcommand(name: str) -> None:
    assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", PAGE)
