"""The table of verbs, and their rows in the page of commands: `python -m tests.kit.verbs` writes both after a change.

A new verb is one file. This reads its declaration, and everything else follows from the table: slash command,
subcommand, help, tools and resources of protocols.
"""

import re
from importlib import import_module
from pathlib import Path

import click

from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.verb import Verb, VerbGroup

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ikigai_actors"
FILE = PACKAGE / "verbs" / "declared.py"
PAGE = ROOT / "docs" / "use" / "commands.md"
HEAD = (
    '"""The declarations of all verbs, written by ``python -m tests.kit.verbs``: see `ikigai_actors.verbs.table`."""\n'
)
ELSEWHERE = {"demo": "a tour, not a command for scripts", "copy": "docs/operate/data.md", "page": "hidden"}
"""The subcommands that the page of commands leaves to others, and why."""

Row = tuple[str, str, str, int, int, bool]


def modules() -> list[str]:
    """The modules that declare verbs, below the package."""
    files = sorted(file for file in PACKAGE.rglob("*.py") if file.parent.name != "text")
    has_verbs = re.compile(r"^@verb\(|\bVerbGroup\($|= verb\(", re.MULTILINE)
    return [
        ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        for file in files
        if has_verbs.search(file.read_text(encoding="utf-8"))
    ]


def verbs_of(module: str) -> list[Verb | VerbGroup]:
    """The verbs of a module that have a word of their own."""
    own = vars(import_module(f"ikigai_actors.{module}")).values()
    groups = {verb.name: verb for verb in own if isinstance(verb, VerbGroup)}
    inner = [verb for group in groups.values() for verb in group.verbs]
    return [
        *{verb.name: verb for verb in own if isinstance(verb, Verb) and verb not in inner}.values(),
        *groups.values(),
    ]


def row_of(module: str, verb: Verb | VerbGroup) -> Row:
    """The row of a verb in the table."""
    from ikigai_actors.shell.cli.one_command import subcommand

    command, usage = subcommand(verb), ""
    if verb.callers & Callers.SCRIPTS:
        pieces = command.collect_usage_pieces(click.Context(command))
        usage = " ".join(piece for piece in pieces if piece != "[OPTIONS]")
    line, offered = command.get_short_help_str(1_000), isinstance(verb, Verb) and verb.gives is not None
    return module, usage, line, verb.callers.value, verb.needs.value, offered


def rows() -> dict[str, Row]:
    """The rows of all verbs, by their words."""
    every = {verb.name: row_of(module, verb) for module in modules() for verb in verbs_of(module)}
    return dict(sorted(every.items()))


def script(every: dict[str, Row]) -> str:
    """The text of the module `declared`."""
    lines = [
        f"    {_quoted(word)}: (\n" + "".join(f"        {_quoted(cell)},\n" for cell in row) + "    ),\n"
        for word, row in every.items()
    ]
    return f"{HEAD}\nDECLARED = {{\n{''.join(lines)}}}\n"


def _quoted(value: object) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def page(text: str, every: dict[str, Row]) -> str:
    """The page of commands, with a row for each verb of scripts that it does not name."""
    for word, (_, usage, line, callers, needs, _) in every.items():
        if not Callers(callers) & Callers.SCRIPTS or word in ELSEWHERE or is_named(word, text):
            continue
        heading = "Look" if needs == Right.LOOK else "Talk and act"
        before, title, after = text.partition(f"\n## {heading}\n")
        rows, blank, rest = after.partition("\n\n## ")
        table_end = rows.rindex("|\n") + 2 if "|\n" in rows else len(rows)
        row = f"| `ikigai {word} {usage}`".rstrip() + f" | {line[0].lower()}{line[1:].rstrip('.')} |\n"
        text = f"{before}{title}{rows[:table_end]}{row}{rows[table_end:]}{blank}{rest}"
    return text


def is_named(word: str, text: str) -> bool:
    """Whether the page names a subcommand."""
    return re.search(rf"`[^`\n]*\b{word}\b[^`\n]*`", text) is not None


if __name__ == "__main__":
    every = rows()
    FILE.write_text(script(every), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), every), encoding="utf-8")
    print(f"{FILE}\n{PAGE}")
