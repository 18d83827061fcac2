"""What a trial's calls may do: the setting ``effects`` that it is born with."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput, HostElsewhere
from ikigai_actors.system.ref import System


def effects(run: Iterable[str] = (), record: Sequence[Sequence[Any]] = (), missing: str = "stop") -> dict[str, Any]:
    """The setting.

    Args:
        run: the tools that run, by name; each must only read.
        record: name, arguments, result and whether that is an error, of each recorded call.
        missing: ``stop`` ends the turn at a call that the record does not have, ``tell`` tells the model.
    """
    named = sorted(run)
    recorded = [list(one) for one in record]
    return {**({"record": recorded} if recorded else {}), "run": named, "missing": missing}


def check_read_only(system: System, names: object, what: str = "tools") -> list[str]:
    """Check for names of tools that only read. Raises `BadInput`."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise BadInput(f"Expected {what} to be a list of tools' names; got {shown(names)}.")
    listed = [str(name) for name in names]
    if not listed:
        return listed
    try:
        traits: Mapping[str, Any] = system.toolbox.traits({})
    except HostElsewhere:  # the host that runs the trials decides
        return listed
    for name in listed:
        if name not in traits:
            raise BadInput(f"There is no tool {name!r}; known are {', '.join(sorted(traits))}.")
        if not traits[name].read_only:
            raise BadInput(
                f"Tool {name!r} may change something outside, and trials must not: it can be named here when it is "
                "declared as read_only."
            )
    return listed
