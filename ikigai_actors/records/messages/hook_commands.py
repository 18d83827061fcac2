"""The setting ``hook_commands``: commands of a workspace that are asked as hooks, each pinned by its digest. Pure.

    [{"name": "PreToolUse-1f3a9c2e", "event": "PreToolUse", "matcher": "Bash", "command": "./check.sh",
      "timeout": 60, "sha256": …, "from": "/src/.claude/settings.json"}]

An entry is complete, and no file is read when the hook runs: a changed file changes no agent. The digest is that of the
entry without ``name``, ``from`` and ``off``, so an entry that was changed by hand is refused. An entry with ``off`` was
refused by a person: its command does not run, and nobody is asked about it again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.skills.digests import digest_of_skill

MOST_HOOK_COMMANDS = 100
"""The most commands of an agent."""
LONGEST_HOOK_COMMAND = 10_000
"""The most characters of a command."""

PinnedCommand = Mapping[str, Any]
"""An entry of the setting."""

_TEXTS = ("name", "event", "matcher", "command", "sha256", "from")
_FURTHER = ("timeout", "onFailure", "off")


def pinned_command(manifest: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the entry of the setting for a command from a file. The manifest has its event, matcher and command."""
    digest = digest_of_skill(manifest)
    return {**manifest, "name": f"{manifest['event']}-{digest[:8]}", "sha256": digest, "from": source}


def with_commands(settings: Mapping[str, Any], new: Sequence[PinnedCommand]) -> list[PinnedCommand]:
    """Return the setting with further commands, in their order; a command of the same name is replaced.

    Raises `BadInput` if they are too many.
    """
    entries = {entry["name"]: entry for entry in settings.get("hook_commands") or ()}
    entries |= {entry["name"]: entry for entry in new}
    if len(entries) > MOST_HOOK_COMMANDS:
        raise BadInput(f"An agent has {MOST_HOOK_COMMANDS} commands as hooks at most; these are {len(entries)}.")
    return list(entries.values())


def commands_in(settings: Mapping[str, Any]) -> list[PinnedCommand]:
    """Return the hook commands that are switched on, in order; empty if the setting is malformed."""
    entries = settings.get("hook_commands")
    known = entries if isinstance(entries, list) else []
    return [entry for entry in known if is_pinned_command(entry) and not entry.get("off")]


def are_pinned_commands(value: Any) -> bool:
    """Return whether a value is a valid setting ``hook_commands``."""
    if not isinstance(value, list) or len(value) > MOST_HOOK_COMMANDS or not all(map(is_pinned_command, value)):
        return False
    return len({entry["name"] for entry in value}) == len(value)


def is_pinned_command(entry: Any) -> bool:
    """Return whether a value is a valid, unchanged entry of the setting."""
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in _TEXTS):
        return False
    if not entry["command"].strip() or len(entry["command"]) > LONGEST_HOOK_COMMAND:
        return False
    said = {key: value for key, value in entry.items() if key != "name"}
    is_named = entry["name"] == f"{entry['event']}-{entry['sha256'][:8]}"
    return entry.keys() <= {*_TEXTS, *_FURTHER} and is_named and digest_of_skill(said) == entry["sha256"]
