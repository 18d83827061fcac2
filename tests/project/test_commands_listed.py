"""The lists of subcommands that are kept by hand name every one."""

import re
from pathlib import Path

import pytest

from ikigai_actors.shell.cli import main

COMMANDS = [name for name, command in main.cli.commands.items() if not command.hidden]
PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_docstring_of_the_command_line_names_each_subcommand(name: str) -> None:
    assert re.search(rf"^    ikigai {name}\b", main.__doc__ or "", re.MULTILINE)


ELSEWHERE = {"demo": "a tour, not a command for scripts", "copy": "docs/databases.md"}
"""The subcommands that the page of commands leaves to others, and why."""


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {*ELSEWHERE}))
def test_the_page_of_commands_names_each_subcommand(name: str) -> None:
    assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", PAGE)
