"""The setting ``effects``, set at a trial's birth: which calls the trial may make."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.arguments import check_choice, check_mapping, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.trials import check_files_at, check_model, forking_folders, tools_of
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.system.handles.ref import System
from ikigai_actors.tools.policy import ToolTraits

SHARE = "share"
"""The trials share the files of the other agents, and only read them."""


def effects(
    run: Iterable[str] = (),
    record: Sequence[Sequence[Any]] = (),
    missing: str = "stop",
    once: bool = False,
    files: str = SHARE,
    words: Sequence[Sequence[Any]] = (),
) -> dict[str, Any]:
    """Return the value of the setting ``effects`` for a trial.

    Args:
        run: names of tools that run; each must only read.
        record: name, arguments, result and whether that is an error, of each recorded call.
        missing: ``stop`` ends the turn at a call that the record does not have, ``tell`` gives the model an error.
        files: ``overlay`` lets tools that are named change the trial's own files.
        once: whether the first reply ends the turn, also where the model would be asked for a value that fits.
        words: the recorded words that the trial is given: the fields of `RecordedWord`.
    """
    named = sorted(run)
    recorded = [list(result) for result in record]
    settings = {"run": named, "missing": missing, **({"once": True} if once else {})}
    settings |= {"files": files} if files != SHARE else {}
    settings |= {"words": [list(word) for word in words]} if words else {}
    return {**({"record": recorded} if recorded else {}), **settings}


def check_files(system: System, files: object) -> str:
    """Check the argument ``files`` of an experiment.

    Raises `BadInput`, also if forks share files with their parents.
    """
    chosen = check_choice(files, "files", (SHARE, "overlay"))
    if chosen != SHARE and forking_folders(system) == []:  # of another process its host decides
        raise BadInput(
            "files='overlay' needs a workspace whose files fork: open the system with Workspace(…, on_fork='overlay')."
        )
    return chosen


def check_files_known(system: System, files: str, of: str, positions: Iterable[int]) -> None:
    """Check that trials can have the files that an agent had at these positions. Raises `BadInput`."""
    if files == SHARE:
        return
    if folders := forking_folders(system):  # the births are refused where another process knows them
        check_files_at(system, of, folders, [*positions])


def check_read_only(system: System, names: object, what: str = "tools", files: str = SHARE) -> list[str]:
    """Check names of tools that must only read, or change a trial's own files. Raises `BadInput`."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise BadInput(f"Expected {what} to be a list of tools' names; got {shown(names)}.")
    listed = [str(name) for name in names]
    if not listed:
        return listed
    if (traits := tools_of(system)) is None:  # the host that runs the trials decides
        return listed
    for name in listed:
        check_known_tool(name, traits)
        if not traits[name].read_only and not (files != SHARE and traits[name].confined):
            raise BadInput(
                f"Tool {name!r} may change something outside, and trials must not: it can be named here when it is "
                "declared as read_only, or files='overlay' gives trials files of their own and it changes nothing else "
                "(of a workspace write and edit; bash with network='none' and no write=)."
            )
    return listed


def check_known_tool(name: str, known: Mapping[str, ToolTraits]) -> None:
    """Raise `BadInput` if no tool has this name."""
    if name not in known:
        raise BadInput(f"There is no tool {name!r}; known are {', '.join(sorted(known))}.")


def check_change(system: System, change: object) -> dict[str, Any]:
    """Check settings that differ in trials.

    Raises `BadInput` when one is unknown, or names an unknown model or tool.
    """
    settings = check_settings(check_mapping(change, "change", "a dict of settings"))
    if "effects" in settings:
        raise BadInput("A change has no effects: run= names the tools that run in a replay.")
    for setting in ("model", "compact_model"):
        if settings.get(setting):
            check_model(system, settings[setting])
    if (known := tools_of(system)) is not None:
        for name in settings.get("tools") or ():
            check_known_tool(name, known)
    return settings
