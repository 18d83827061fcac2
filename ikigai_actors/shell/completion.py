"""The completions of a line at the Tab key: commands, options, and what an argument's own declaration offers for it.

/sw            → /switch
/kill --c      → /kill --cascade
/switch bu     → /switch buyer           names of the living, and two words for the others
/rewind be     → /rewind before          marks of the current agent
/doc show pl   → /doc show plan/mast.md  paths
/orphans s     → /orphans stop

The types of `ikigai_actors.verbs.arguments` say what is offered for which argument.
"""

import re
import shlex

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from ikigai_actors.shell.slash import commands
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.verbs.arguments import UNQUOTED

_WORD = re.compile(r"""(?:[^\s'"\\]|\\.?|'[^']*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$))+""", re.DOTALL)
"""The pattern of a word of a line; the last word may end within quotes."""

_OF_THE_DISK = ("file", "dir")
"""The completion types of click for files and directories."""


def completions(current: AgentRef, line: str) -> list[str]:
    """Return the completions of a line, as whole lines. Reads the database.

    Args:
        current: the agent that the person is at.
        line: the line up to the cursor.
    """
    last = max((word.start() for word in _WORD.finditer(line) if word.end() == len(line)), default=len(line))
    before = line[:last]
    args = split_arg_string(before)
    group, known = _group(args)
    if not known:
        return []
    incomplete = "".join(split_arg_string(line[last:]))
    items = ShellComplete(commands, {"obj": current}, "", "").get_completions(args, incomplete)
    texts = (before + _as_typed(item, group) for item in items if item.type not in _OF_THE_DISK)
    return [text for text in texts if text.startswith(line)]


def common(texts: list[str]) -> str:
    """Return the longest beginning that all texts share."""
    first, last = min(texts), max(texts)
    same = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:same]


def _group(args: list[str]) -> tuple[click.Group | None, bool]:
    """Return the group of commands to which the next word belongs, and whether all words are known.

    The group is None for an argument.
    """
    command: click.Command | None = commands
    for word in args:
        if not isinstance(command, click.Group):
            return None, True
        command = command.commands.get(word)
    return command if isinstance(command, click.Group) else None, command is not None


def _as_typed(item: CompletionItem, group: click.Group | None) -> str:
    """Return a completion as a person would type it: with a blank after a command, and quoted if needed."""
    if group is not None and item.value in group.commands:
        return f"{item.value} "
    return item.value if item.type == UNQUOTED else shlex.quote(item.value)
