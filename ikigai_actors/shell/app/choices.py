"""Completions for the text of the prompt: commands, their arguments, and mentioned files."""

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import click

from ikigai_actors.reach.views import named_agents
from ikigai_actors.shell.app.widgets.command_menu import MOST_ITEMS, MenuItem
from ikigai_actors.shell.completion import completions
from ikigai_actors.shell.slash import commands
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.verbs.text.mentions import is_command
from ikigai_actors.verbs.text.words import activity

MOST_FILES = 2_000
"""The most directory entries that are searched."""

_USUAL = (
    "/fork",
    "/switch",
    "/model",
    "/undo",
    "/find",
    "/compact",
    "/tools",
    "/budget",
    "/approvals",
    "/rules",
    "/help",
)
"""The most used commands, which a menu lists first."""

_PASSED_OVER = {"node_modules", "__pycache__", "site-packages", "target"}
"""The directories that are skipped, because they contain no files of the person's own."""

_UNQUOTABLE = re.compile(r"[\s\"]")

_MENTION = re.compile(r"(?:^|\s)@([^\s\"]*)$")


def mentions(text: str) -> bool:
    """Return whether a text ends with the mention of a file."""
    return _MENTION.search(text) is not None


def choices_of(agent: AgentRef, text: str) -> list[MenuItem]:
    """Return the completions of a text up to the cursor. Reads the database, or the directory of a mention."""
    if is_command(text):
        return command_choices(text) if " " not in text else argument_choices(agent, text)
    return [*file_choices(text, Path.cwd())]


def command_choices(text: str) -> list[MenuItem]:
    """Return the matching commands: by the beginning of the name, then any part, then the description.

    Within each of these groups the usual commands come first, then the others by name.
    """
    word = text[1:].casefold()
    ranked: list[tuple[tuple[int, int], MenuItem]] = []
    context = click.Context(commands)
    for name in sorted(commands.commands):
        usage, about = commands.entry(context, name)
        choice = MenuItem(f"{name} " if usage else name, f"{name} {usage}".rstrip(), about)
        rank = 0 if name[1:].startswith(word) else 1 if word in name else 2
        if rank < 2 or (len(word) > 2 and word in about.casefold()):
            use = _USUAL.index(name) if name in _USUAL else len(_USUAL)
            ranked.append(((rank, use), choice))
    return [choice for _, choice in sorted(ranked, key=lambda pair: pair[0])]


def argument_choices(agent: AgentRef, text: str) -> list[MenuItem]:
    """Return completions of the last word of a command, as agents with their states. Reads the database."""
    offered = completions(agent, text)
    if not offered or [line.rstrip() for line in offered] == [text.rstrip()]:
        return []
    before = len(text) - len(text.rpartition(" ")[2])
    known = named_agents(agent.system, text[before:].strip("'\" "))
    states = {label: agent.system.state_of(record) for label, record in known.items()}
    return [
        MenuItem(line, word, activity(states[word]).word if word in states else "")
        for line in offered
        for word in (line[before:].strip("'\" "),)
    ]


def file_choices(text: str, directory: Path) -> Iterator[MenuItem]:
    """Yield the files that a mention at the end of the text may mean, below a directory, without hidden ones.

    Files whose names begin with the text come first. A name without a directory also finds files in subdirectories.
    """
    if (mention := _MENTION.search(text)) is None:
        return
    before, start = text[: mention.start(1)], mention[1]
    folder, _, name = start.rpartition("/")
    if ".." in folder.split("/") or folder.startswith("/") or start.startswith("/"):
        return
    for entry, is_folder in _entries(directory / folder):
        if entry.casefold().startswith(name.casefold()) and (not entry.startswith(".") or name.startswith(".")):
            path = f"{folder}/{entry}" if folder else entry
            if not _UNQUOTABLE.search(path):
                yield MenuItem(f"{before}{path}{'/' if is_folder else ' '}", f"@{path}{'/' if is_folder else ''}")
    if start and not folder:
        for path in islice(_below(directory, start), MOST_ITEMS):
            if not _UNQUOTABLE.search(path):
                yield MenuItem(f"{before}{path} ", f"@{path}")


def _below(directory: Path, name: str) -> Iterator[str]:
    """Yield the files below a directory whose paths contain a text, from the nearest directories first."""
    folders, looked_at = deque([""]), 0
    while folders:
        folder = folders.popleft()
        for entry, is_folder in _entries(directory / folder):
            if (looked_at := looked_at + 1) > MOST_FILES:
                return
            path = f"{folder}/{entry}" if folder else entry
            if entry.startswith(".") or entry in _PASSED_OVER:
                continue
            if is_folder:
                folders.append(path)
            elif folder and name.casefold() in path.casefold():
                yield path


def _entries(folder: Path) -> Sequence[tuple[str, bool]]:
    """Return the names in a folder, folders first, each with whether it is a folder; empty if it is unreadable."""
    listing = []
    try:
        with os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(MOST_FILES), strict=False):
                listing.append((entry.name, entry.is_dir()))
    except OSError:
        return ()
    return sorted(listing, key=lambda entry: (not entry[1], entry[0].casefold()))
