"""The command line of a door: the options before it go to the host that it starts, as words."""

import click
import pytest

from ikigai_actors.shell.cli import main
from ikigai_actors.verbs.opening import Options

GIVEN: tuple[list[str], ...] = (
    [],
    ["--provider", "offline", "--model", "offline:slow", "--yes"],
    ["--workspace", "a dir", "--fence", "none", "--read", "/a", "--read", "/b", "--write", "/c", "--network", "none"],
    ["--mcp", "one --x", "--mcp", "two", "--set", "max_tokens=4", "--set", "system=Be brief", "--budget", "usd=5"],
    ["--provider-url", "a=http://127.0.0.1:1", "--config", "x.toml"],
    ["--app", "shop:app"],
)


def options(words: list[str]) -> Options:
    """What a command line is read as."""
    context = main.cli.make_context("ikigai", [*words, "mcp"])
    with context:
        return Options(**context.params)


@pytest.mark.parametrize("words", GIVEN)
def test_options_are_the_same_after_they_were_words_again(words: list[str]) -> None:
    read = options(words)
    assert options(read.words()) == read
    assert isinstance(main.cli.get_command(click.Context(main.cli), "mcp"), click.Command)


def test_a_database_is_no_word_since_its_password_would_be_seen() -> None:
    assert options(["--database", "postgresql://me:secret@host/db", "--plain"]).words() == []
