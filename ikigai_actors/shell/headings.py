"""The help of a group of commands: the commands for the first day, then all commands under five headings.

A verb that no heading names is put at the end of the heading for its right, so a new verb needs no change here. No verb
is imported: ``ikigai --help`` answers at once.
"""

import difflib
from dataclasses import dataclass
from typing import ClassVar

import click

from ikigai_actors.verbs import table
from ikigai_actors.verbs.rights import Callers, Right

EVERYTHING = "all"
"""The word after ``help`` that lists every command."""

MOST_COLUMNS = 120
"""The most columns of a line of help."""

_UNBROKEN = "\N{NON-BREAKING HYPHEN}"
"""The replacement for the hyphen in a name while lines are wrapped, so that no line ends within a name."""

_WHOLE = 1_000
"""A number of characters that exceeds the first sentence of any command's help."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The headings under which the help of a group shows each command; names are separated by blanks."""

    first_day: str
    """The commands that a newcomer needs, in the order of need. They are under their headings, too."""
    headings: dict[str, str]

    def names(self) -> list[str]:
        """Return the names of all commands that are under a heading."""
        return [name for names in self.headings.values() for name in names.split()]


def with_every_verb(
    headings: dict[str, str], callers: Callers, looks: str, changes: str, sign: str = ""
) -> dict[str, str]:
    """Return the headings, with every verb that these callers may call added under one of them.

    Args:
        headings: the order that readers expect.
        callers: people or scripts.
        looks: the heading for others that change nothing.
        changes: the heading for all others.
        sign: put before the word.
    """
    known = {name for line in headings.values() for name in line.split()}
    made = dict(headings)
    for word in table.names(callers):
        if f"{sign}{word}" not in known:
            made[looks if table.TABLE[word].needs is Right.LOOK else changes] += f" {sign}{word}"
    return made


COMMAND_LINE = Contents(
    "demo agents log tail prompt fork send kill stats help",
    with_every_verb(
        {
            "Look": (
                "demo help completion agents log history find context settings tools approvals tail diff stats "
                "prices doctor"
            ),
            "Talk and act": (
                "prompt queue fork resume undo mark rewind clear compact uncompact merge model system set questions "
                "approve deny rules skills kinds send read-mail check-mail filter-mail delete-mail notify wait timers "
                "doc endpoint subscription group monitor budget rename signal finish kill adopt orphans supervise"
            ),
            "Experiments": "search bisect good bad skip replay regress evaluate experiments",
            "Hosts": "serve observe host hosts drain move cluster api token mcp acp",
            "Data": "backup copy export import prune fsck programs verify checkpoint trace",
        },
        Callers.SCRIPTS,
        looks="Look",
        changes="Talk and act",
    ),
)

SLASH_COMMANDS = Contents(
    "/fork /agents /switch /parent /history /send /undo /model /help /exit",
    with_every_verb(
        {
            "Look and go": (
                "/agents /switch /parent /child /next /prev /history /find /diff /context /settings /tools "
                "/help /exit /quit"
            ),
            "Talk": (
                "/fork /queue /editor /resume /undo /mark /rewind /clear /compact /uncompact /merge /model /system "
                "/set /copy /questions /approvals /approve /deny /rules /skills /kinds"
            ),
            "Agents together": (
                "/send /read-mail /check-mail /filter-mail /delete-mail /notify /wait /timer /group /monitor /budget "
                "/rename /signal /finish /kill /adopt /orphans /supervise"
            ),
            "Experiments": "/bisect /good /bad /skip /replay /experiments",
            "Data and hosts": "/doc /endpoint /subscription /export /import /hosts /move",
        },
        Callers.PEOPLE,
        looks="Look and go",
        changes="Agents together",
        sign="/",
    ),
)


class HeadedGroup(click.Group):
    """A group whose help shows its commands under headings; a subclass names its contents."""

    contents: ClassVar[Contents]
    help_command: ClassVar[str]
    """The command that explains the others, as a person types it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. For an unknown name, the error names the most similar command of the help."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            near = difflib.get_close_matches(name, self.contents.names(), n=1)
            meant = f"Did you mean {near[0]}?" if near else f"{self.help_command} lists the commands."
            raise click.UsageError(f"There is no command {name!r}. {meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options: a newcomer needs the commands first."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first commands with their summaries, and the names of all others under headings."""
        first = self.contents.first_day.split()
        self._section(ctx, formatter, "First commands", first)
        others = [
            (title, " ".join(name.replace("-", _UNBROKEN) for name in names.split() if name not in first))
            for title, names in self.contents.headings.items()
        ]
        with formatter.section(f"More commands ({self.help_command} {EVERYTHING} explains each)"):
            formatter.write_dl(others)
        formatter.buffer[:] = [piece.replace(_UNBROKEN, "-") for piece in formatter.buffer]

    def all_commands(self, ctx: click.Context) -> str:
        """Return the help text with every command under its heading, each with its summary."""
        formatter = ctx.make_formatter()
        for title, names in self.contents.headings.items():
            self._section(ctx, formatter, title, names.split())
        return formatter.getvalue().strip("\n")

    def help_of(self, ctx: click.Context, words: list[str]) -> str:
        """Return the help of a command; of several words, that of the subcommand.

        Raises ``click.UsageError`` if none has the name.
        """
        command: click.Command = self
        for word in words:
            if not isinstance(command, click.Group):
                raise click.UsageError(f"{ctx.command_path} has no commands of its own, so no {word!r} either.", ctx)
            name, subcommand, _ = command.resolve_command(ctx, [word])
            assert subcommand is not None  # resolve_command raises otherwise
            command, ctx = subcommand, click.Context(subcommand, info_name=name, parent=ctx)
        return command.get_help(ctx)

    def _section(self, ctx: click.Context, formatter: click.HelpFormatter, title: str, names: list[str]) -> None:
        rows = [self.entry(ctx, name) for name in names]
        with formatter.section(title):
            formatter.write_dl(
                [(f"{name} {usage}".rstrip(), line) for name, (usage, line) in zip(names, rows, strict=True)]
            )

    def entry(self, ctx: click.Context, name: str) -> tuple[str, str]:
        """Return the arguments of a command, and its summary on one line."""
        command = self.get_command(ctx, name)
        assert command is not None  # the contents name commands that are there (held by a test)
        pieces = [piece for piece in command.collect_usage_pieces(ctx) if piece != "[OPTIONS]"]
        return " ".join(pieces), command.get_short_help_str(_WHOLE)
