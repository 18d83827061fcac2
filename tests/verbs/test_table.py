"""The table of verbs: what it says of each is what the verb says of itself."""

import json

import pytest

from ikigai_actors.shell.slash import commands
from ikigai_actors.verbs.declared import DECLARED
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.table import TABLE, load, names
from ikigai_actors.verbs.tools import tool_of
from ikigai_actors.verbs.verb import Verb, VerbGroup
from tests.kit.verbs import PAGE, page, rows


@pytest.mark.slow("takes a tenth of a second")
def test_the_table_is_what_the_declarations_say() -> None:
    assert rows() == DECLARED, "run python -m tests.kit.verbs"


@pytest.mark.slow("takes a tenth of a second")
def test_a_new_verb_gets_a_row_in_the_page_of_commands_and_no_other_is_touched() -> None:
    text, known = PAGE.read_text(encoding="utf-8"), DECLARED
    assert page(text, known) == text
    new = {**known, "brew": ("verbs.brewing", "AGENT [TEA]...", "Brew a tea.", Callers.ALL.value, 1, False)}
    [line] = {*page(text, new).splitlines()} - {*text.splitlines()}
    assert line == "| `ikigai brew AGENT [TEA]...` | brew a tea |"


@pytest.mark.parametrize("name", names(Callers.PEOPLE))
def test_a_slash_command_says_first_what_the_table_says(name: str) -> None:
    assert commands.commands[f"/{name}"].get_short_help_str(1_000) == TABLE[name].line


def test_a_command_that_is_no_verb_is_not_in_the_table_of_its_callers() -> None:
    slash = {name.removeprefix("/") for name in commands.commands}
    assert {*names(Callers.PEOPLE)} <= slash


@pytest.mark.parametrize("name", names(Callers.PROTOCOLS))
def test_the_schema_of_a_tool_is_json_and_names_each_argument_once(name: str) -> None:
    verb = load(name)
    for entry in verb.verbs if isinstance(verb, VerbGroup) else (verb,):
        tool = json.loads(json.dumps(tool_of(entry)))
        assert set(tool["input_schema"]["required"]) <= set(tool["input_schema"]["properties"])
        assert tool["description"]


def test_each_verb_stands_in_its_module_under_its_word() -> None:
    assert [load(name).name for name in TABLE] == [*TABLE]
    assert all(isinstance(load(name), Verb | VerbGroup) for name in TABLE)
