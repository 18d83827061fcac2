"""The commands of a workspace as hooks: finding them on a disk, and pinning them.

    system.root.use_hooks(only=["PreToolUse-1f3a9c2e"])   # of .claude/settings.json of the workspace

A workspace is not trusted: none of its commands runs as a hook before a person has accepted it by its digest. The
commands run in the fence of the workspace.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.hook_commands import LONGEST_HOOK_COMMAND, pinned_command, with_commands
from ikigai_actors.tools.hooks.command_hooks import HookEntry, entries_in

HOOK_FILE = ".claude/settings.json"
"""The path of the file, below a workspace, that has its commands."""


class FoundHooks(NamedTuple):
    """The commands in the file of a workspace that can be pinned as hooks."""

    entries: tuple[Mapping[str, Any], ...] = ()
    """The commands, each as the setting ``hook_commands`` has it, in the order of the file."""
    troubles: tuple[str, ...] = ()
    """The entries and the file that were left out, in sentences for a person."""


class ListedHook(NamedTuple):
    """A command that an agent has as a hook, or that its workspace offers."""

    name: str
    state: str
    """``in use``, ``refused`` or ``new``; for the last one somebody has to say whether it is used."""
    event: str
    matcher: str
    command: str
    source: str


def find_hooks(directory: Path) -> FoundHooks:
    """Return the hook commands of a workspace. Reads a file, and runs nothing."""
    file = directory / HOOK_FILE
    if not file.is_file():
        return FoundHooks()
    try:
        entries, ignored = entries_in(file)
    except BadInput as error:
        return FoundHooks(troubles=(str(error),))
    troubles = [f"Hooks for {', '.join(ignored)} in {file} are ignored."] if ignored else []
    pinned: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if len(entry.command) > LONGEST_HOOK_COMMAND:
            troubles.append(f"A command in {file} is left out: it has more than {LONGEST_HOOK_COMMAND:,} characters.")
            continue
        made = pinned_command(_manifest(entry), str(file))
        pinned[made["name"]] = made
    return FoundHooks(tuple(pinned.values()), tuple(troubles))


def _manifest(entry: HookEntry) -> dict[str, Any]:
    further = {"onFailure": "continue"} if entry.goes_on else {}
    said = {"event": entry.event, "matcher": entry.matcher, "command": entry.command, "timeout": entry.timeout}
    return {**said, **further}


def hooks_listed(settings: Mapping[str, Any], there: FoundHooks) -> list[ListedHook]:
    """Return the pinned commands of an agent, and then the commands in the file, for a list that people read."""
    pinned = {entry["name"]: entry for entry in settings.get("hook_commands") or ()}
    listed = {entry["name"]: entry for entry in (*pinned.values(), *there.entries)}
    return [_listed(entry, pinned.get(name)) for name, entry in listed.items()]


def _listed(entry: Mapping[str, Any], pinned: Mapping[str, Any] | None) -> ListedHook:
    state = "new" if pinned is None else "refused" if pinned.get("off") else "in use"
    return ListedHook(entry["name"], state, entry["event"], entry["matcher"], entry["command"], entry["from"])


def undecided_hooks(settings: Mapping[str, Any], directory: Path) -> list[str]:
    """Return the names of commands of a workspace that are neither pinned nor refused."""
    return [hook.name for hook in hooks_listed(settings, find_hooks(directory)) if hook.state == "new"]


def pin_hooks(
    settings: Mapping[str, Any], there: FoundHooks, only: Sequence[str] | None, place: Path, off: bool
) -> dict[str, Any]:
    """Return the settings that pin commands, or refuse them if ``off``. Raises `BadInput` for a missing command."""
    known = {entry["name"]: entry for entry in (*(settings.get("hook_commands") or ()), *there.entries)}
    if missing := sorted(set(only or ()) - known.keys()):
        raise BadInput(f"There is no hook {', '.join(missing)} in {place}. Hooks: {', '.join(known) or 'none'}.")
    picked = [known[name] for name in only] if only is not None else list(there.entries)
    if not picked:
        raise BadInput(f"There are no hooks in {place}. {' '.join(there.troubles)}".rstrip())
    new = [{key: value for key, value in entry.items() if key != "off"} for entry in picked]
    return {"hook_commands": with_commands(settings, [{**entry, "off": True} if off else entry for entry in new])}
