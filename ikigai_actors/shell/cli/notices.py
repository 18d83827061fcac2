"""The notices for a person at the start of a shell."""

from typing import TYPE_CHECKING

from ikigai_actors.verbs.opening import OF_A_WORKSPACE, Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ikigai_actors.store.hosts.rows import HostRecord
    from ikigai_actors.system.handles.ref import System


ATTACHED = "Your commands are carried out there."
"""The notice of an attached shell about its commands."""

_MOST_NAMED = 3
"""The most agents that a notice names."""


def notices_of(system: "System", options: Options) -> list[str]:
    """Return the notices for a person at the start of a shell."""
    from ikigai_actors.reach.views import owners_of, stand_in_notice
    from ikigai_actors.system.attached import AttachedSystem

    if isinstance(system, AttachedSystem):
        return _attached_notices(owners_of(system), options)
    return [*filter(None, [stand_in_notice(system)]), *_cut_off_notices(system), *skill_notices(system)]


def skill_notices(system: "System") -> list[str]:
    """Return notices about skills, instructions and kinds on this disk that were neither allowed nor refused yet."""
    from ikigai_actors.reach.views import undecided_hooks_of, undecided_kinds_of, undecided_skills_of
    from ikigai_actors.verbs.place import last_active

    agent = last_active(system).uuid
    return [
        *_undecided("skills", "Not in use here", undecided_skills_of(system, agent)),
        *_undecided("kinds", "Kinds not in use here", undecided_kinds_of(system, agent)),
        *_undecided("hooks", "Hooks not in use here", undecided_hooks_of(system, agent)),
    ]


def _undecided(verb: str, what: str, pending: list[str]) -> list[str]:
    from ikigai_actors.verbs.text.harmless import one_line

    if not pending:
        return []
    names = ", ".join(map(one_line, pending[:_MOST_NAMED]))
    more = f" and {len(pending) - _MOST_NAMED} more" if pending[_MOST_NAMED:] else ""
    return [f"{what}: {names}{more}. /{verb} shows them, /{verb} use NAME or off NAME decides."]


def _cut_off_notices(system: "System") -> list[str]:
    """Return the notice about turns that were cut off, if there are any: a person decides whether they are resumed."""
    from ikigai_actors.reach.views import left_turns_of

    turns = left_turns_of(system, _MOST_NAMED + 1)
    names = [turn.short for turn in turns[:_MOST_NAMED]] + ["more"] * (len(turns) > _MOST_NAMED)
    if not names:
        return []
    agents = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    how = "/switch NAME and /resume go on with one, `ikigai host` with all."
    return [f"Cut off with the process before: the turn of {agents}. {how}"]


def _attached_notices(hosts: "Sequence[HostRecord]", options: Options) -> list[str]:
    """Return the notices for a person at an attached shell: the hosts, and the options that have no effect there."""
    who = " and ".join(str(host) for host in reversed(hosts)) if hosts else "no process now"
    notices = [f"Attached: these agents are run by {who}. {ATTACHED}"]
    return [*notices, *without_effect(options)]


def without_effect(options: Options) -> list[str]:
    """Return the notice about given options that only the process which runs the agents could apply."""
    options_here = {
        "--model": options.model,
        "--provider": options.provider,
        "--provider-url": options.provider_url,
        "--config": options.config,
        "--app": options.app,
        "--workspace": options.workspace,
        **{f"--{name}": getattr(options, name) for name in OF_A_WORKSPACE},
        "--set": options.settings,
        "--budget": options.budget,
        "--mcp": options.mcp,
        "--yes": options.yes,
    }
    useless = [name.replace("_", "-") for name, value in options_here.items() if value]
    line = f"Without effect here, since the process that runs the agents decides: {', '.join(useless)}."
    return [line] if useless else []
