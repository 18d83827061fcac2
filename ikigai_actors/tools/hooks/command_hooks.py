"""Commands as hooks, in the form of Claude Code: a settings file lists commands that are run for calls.

    {"hooks": {"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "./check.sh"}]}]}}

A command gets what it is asked about as JSON by its standard input. Exit code 0 is no objection, unless its output is
JSON that says otherwise; 2 denies, with what it writes to standard error; any other code is a failure, and a failure
denies, unless the entry has ``"onFailure": "continue"``. A command may run for 60 seconds, or for the ``timeout`` of
its entry, and may write 64 KB of output. Its child processes end with it. It runs with the rights of the user, outside
of any fence, and gets only a few environment variables.

    PreToolUse         before_call      deny, ask, change, add
    PostToolUse        after_call       add
    UserPromptSubmit   before_request   deny, add; only if a prompt or steering message is new. Output that is not JSON
                                        is text for the model, too
    Stop               after_reply      a verdict to deny, as Claude Code names it, has the turn go on, with its reason
    SubagentStart      on_fork          deny; a matcher is for the kind of the child
    SubagentStop       on_exit          nothing
"""

import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.arguments import check_seconds, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.tools.commands import run_command
from ikigai_actors.tools.hooks.function import HOOK_TIMEOUT, Hook, hook
from ikigai_actors.tools.hooks.verdict import (
    AFTER_CALL,
    AFTER_REPLY,
    BEFORE_CALL,
    BEFORE_REQUEST,
    ON_EXIT,
    ON_FORK,
    Hooked,
    HookedCall,
    HookedExit,
    HookedReply,
    HookedRequest,
    HookVerdict,
)

logger = logging.getLogger(__name__)

COMMAND_EVENTS = {
    "PreToolUse": BEFORE_CALL, "PostToolUse": AFTER_CALL, "UserPromptSubmit": BEFORE_REQUEST, "Stop": AFTER_REPLY,
    "SubagentStart": ON_FORK, "SubagentStop": ON_EXIT,
}  # fmt: skip
"""The supported events of a settings file of Claude Code, with our names of them."""
FOREIGN_NAMES = {
    "bash": "Bash", "read": "Read", "write": "Write", "edit": "Edit", "glob": "Glob", "grep": "Grep", "fork": "Agent",
}  # fmt: skip
"""The names that settings files of Claude Code use for our tools."""
_DENIES = 2
_MATCHED = (BEFORE_CALL, AFTER_CALL, ON_FORK)
_NAME = re.compile(r"[\w-]*\*?[\w-]*")


class HookEntry(NamedTuple):
    """A command in a settings file, with its event, matcher and options."""

    event: str
    """The event, by the name that the file has for it."""
    matcher: str
    command: str
    timeout: float = HOOK_TIMEOUT
    goes_on: bool = False
    """Whether a failure of the command denies nothing."""
    number: str = ""
    """The place of the entry among those of the file."""


RunCommand = Callable[[str, str], Awaitable[tuple[int, str, str]]]
"""A function that runs a command with a text as input; returns its exit code, output and standard error."""


def command_hooks(
    file: str | os.PathLike[str], *, directory: str | os.PathLike[str] | None = None, prefix: str = ""
) -> list[Hook]:
    """Return the hooks of a settings file, in its order. By naming the file, you approve of its commands.

    Args:
        file: a ``settings.json`` of Claude Code, or a file of that form.
        directory: the working directory of the commands; the current directory when None.
        prefix: the beginning of the names of the hooks, which must differ from those of other files.

    Raises:
        BadInput: the file cannot be read, or has another form. Events that are not supported are left out, with a
            warning in the log.
    """
    place = Path.cwd() if directory is None else Path(directory).absolute()
    entries, ignored = entries_in(file)
    if ignored:
        logger.warning("Hooks for %s in %s are ignored: no such event is asked about here", ", ".join(ignored), file)
    run = partial(_run, place)
    return [hook_of(entry, f"{prefix}{entry.event}-{entry.number}", place, run) for entry in entries]


def entries_in(file: str | os.PathLike[str]) -> tuple[list[HookEntry], list[str]]:
    """Return the commands of a settings file, and the names of events in it that are not supported.

    Raises `BadInput`.
    """
    try:
        settings = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"The hooks in {os.fspath(file)} cannot be read: {error}.") from error
    events = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(events, dict) or not all(isinstance(each, list) for each in events.values()):
        raise BadInput(f"Expected hooks in {os.fspath(file)} to be an object of lists, by event.")
    groups = [(event, group) for event in COMMAND_EVENTS for group in events.get(event, ())]
    entries = [entry for place, (event, group) in enumerate(groups, 1) for entry in _entries(event, group, place)]
    return entries, sorted(events.keys() - COMMAND_EVENTS.keys())


def _entries(event: str, group: object, place: int) -> Iterator[HookEntry]:
    commands = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(group, dict) or not isinstance(commands, list):
        raise BadInput(f"Expected each hook for {event} to have a list of hooks; got {shown(group)}.")
    matcher = group.get("matcher") or ""
    if COMMAND_EVENTS[event] in _MATCHED:
        _tools(matcher)
    for number, entry in enumerate(commands, 1):
        command = entry.get("command") if isinstance(entry, dict) and entry.get("type") == "command" else None
        if not isinstance(command, str) or not command.strip():
            raise BadInput(f"Expected a hook for {event} of type command, with a command; got {shown(entry)}.")
        limit = entry.get("timeout")
        timeout = HOOK_TIMEOUT if limit is None else check_seconds(limit, "timeout", zero=False)
        goes_on = entry.get("onFailure") == "continue"
        yield HookEntry(event, str(matcher), command, timeout, goes_on, f"{place}.{number}")


def hook_of(entry: HookEntry, name: str, directory: Path, run: RunCommand) -> Hook:
    """Make a hook of a command. Raises `BadInput` for a matcher that cannot be used."""
    event = COMMAND_EVENTS[entry.event]
    among = _tools(entry.matcher) if event in _MATCHED else []
    of_calls = event != ON_FORK
    make = hook(
        event,
        tools=among if of_calls else (),
        timeout=entry.timeout,
        on_error="allow" if entry.goes_on else "deny",
        name=name,
    )
    return make(_Command(entry, directory, run, () if of_calls else tuple(among)))


def _tools(matcher: object) -> list[str]:
    """Return the patterns of tools that a matcher names; empty if it matches all tools. Raises `BadInput`."""
    if matcher in ("", "*", ".*"):
        return []
    parts = [part.strip().replace(".*", "*") for part in str(matcher).split("|")]
    if not isinstance(matcher, str) or not all(part and _NAME.fullmatch(part) for part in parts):
        raise BadInput(f"Expected a matcher to be names of tools with | between them, or *; got {shown(matcher)}.")
    return [own_name(part) for part in parts]


def own_name(foreign: str) -> str:
    """Return the name that this runtime gives to a tool of Claude Code, such as ``bash`` for ``Bash``."""
    ours = {foreign: own for own, foreign in FOREIGN_NAMES.items()} | {"Task": "fork"}
    return ours.get(foreign, foreign)


class _Command:
    def __init__(self, entry: HookEntry, directory: Path, run: RunCommand, kinds: tuple[str, ...]) -> None:
        """Make the function; ``kinds`` are the kinds of children for which it runs, empty for all."""
        self._event, self.command, self._directory, self._kinds = entry.event, entry.command, directory, kinds
        self._run = run

    async def __call__(self, asked: Hooked) -> HookVerdict | None:
        if not self._hears(asked):
            return None
        code, output, errors = await self._run(self.command, json.dumps(_as_input(self._event, asked, self._directory)))
        if code == _DENIES:
            said: HookVerdict | None = HookVerdict.deny(errors.strip() or "it gives no reason")
        elif code != 0:
            raise RuntimeError(f"exit code {code}: {errors.strip() or 'it says nothing'}")
        else:
            said = _verdict_in(output, self._event)
        return None if said is None else _for_event(said, self._event)

    def _hears(self, asked: Hooked) -> bool:
        if isinstance(asked, HookedRequest):
            return asked.prompt is not None
        if isinstance(asked, HookedCall) and self._kinds:
            return any(fnmatchcase(str(asked.input.get("kind") or ""), each) for each in self._kinds)
        return True


def _for_event(said: HookVerdict, event: str) -> HookVerdict:
    """Return the verdict reduced to the event: after a call or a reply only a text for the model counts."""
    if event in ("PostToolUse", "Stop"):
        reason = said.reason if said.decision == "deny" else ""
        return HookVerdict(context=f"{reason}\n{said.context}".strip())
    return HookVerdict(said.decision, said.reason) if event == "SubagentStart" else said


def _as_input(event: str, asked: Hooked, directory: Path) -> dict[str, Any]:
    about = {"session_id": asked.agent, "cwd": str(directory), "hook_event_name": event}
    match asked:
        case HookedRequest():
            return {**about, "prompt": asked.prompt}
        case HookedReply():
            return {**about, "stop_hook_active": asked.rounds > 0, "last_assistant_message": asked.text}
        case HookedExit():
            return {**about, "agent_id": asked.agent, "stop_hook_active": False, "last_assistant_message": asked.result}
        case HookedCall() if event == "SubagentStart":
            return {**about, "agent_type": str(asked.input.get("kind") or ""), "tool_input": dict(asked.input)}
    response = {} if asked.result is None else {"tool_response": {"content": asked.result, "is_error": asked.is_error}}
    tool = {"tool_name": FOREIGN_NAMES.get(asked.tool, asked.tool), "tool_input": dict(asked.input)}
    return {**about, **tool, "tool_use_id": asked.id, **response}


def _verdict_in(output: str, event: str) -> HookVerdict | None:
    """Return the verdict that a command has printed. Other text is context for the model at a prompt, else ignored.

    Raises `ValueError`, `TypeError`.
    """
    if not output.lstrip().startswith("{"):
        return HookVerdict.add(output.strip()) if event == "UserPromptSubmit" and output.strip() else None
    said = json.loads(output)
    if said.get("continue") is False:
        return None if event == "Stop" else HookVerdict.deny(str(said.get("stopReason") or "it ends the turn"))
    further = said.get("hookSpecificOutput")
    further = further if isinstance(further, dict) else {}
    context = str(further.get("additionalContext") or "")
    if said.get("decision") == "block":
        return HookVerdict("deny", str(said.get("reason") or "it gives no reason"), context=context)
    decision = further.get("permissionDecision", "allow")
    if decision not in ("allow", "deny", "ask"):
        raise ValueError(f"permissionDecision {decision!r} is unknown")
    changed = further.get("updatedInput")
    if changed is not None and not isinstance(changed, Mapping):
        raise TypeError("updatedInput is no object")
    return HookVerdict(decision, str(further.get("permissionDecisionReason") or ""), changed, context)


async def _run(directory: Path, command: str, text: str) -> tuple[int, str, str]:
    from ikigai_actors.tools.workspace import PASSED_ON
    from ikigai_actors.tools.workspace.shells import BASH

    own = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("LC_")}
    return await run_command(BASH, command, text, directory=directory, environment=own)
