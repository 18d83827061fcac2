"""The verb about hooks."""

from typing import TYPE_CHECKING

from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import ShellPlace


@verb("hooks", slash="--of", callers=Callers.PEOPLE, needs=Right.LOOK)
def hooks(shell: "ShellPlace", agent: "AgentRef") -> None:
    """List the hooks that are asked about the calls of an agent, in their order.

    They are those of this process. One that the setting hooks names and that is missing here has each call denied.
    """
    from ikigai_actors.reach.views import hooks_of

    hooks = hooks_of(shell.system)
    for hook in hooks:
        tools = ", ".join(hook.tools) or "all tools"
        failure = "denies" if hook.on_error == "deny" else "lets the call pass"
        runs = f"   runs {one_line(hook.command)}" if hook.command else ""
        shell.screen.line(
            f"{one_line(hook.name)}   {hook.event}   {tools}   {hook.timeout:g} s, a failure {failure}{runs}"
        )
    missing = sorted(set(agent.context().settings.get("hooks") or ()) - {hook.name for hook in hooks})
    for name in missing:
        shell.screen.line(f"{one_line(name)}   missing here: each call is denied", bold=True)
    if not hooks and not missing:
        shell.screen.line("There are no hooks. ActorSystem.open(hooks=[...]) has some.")
