"""Opens the system on which a command works: runs the agents, or attaches to the process that does."""

from typing import TYPE_CHECKING

from ikigai_actors.errors import StoreInUse
from ikigai_actors.shell.cli.progress import progress_line
from ikigai_actors.verbs.opening import Options
from ikigai_actors.verbs.text.harmless import harmless

if TYPE_CHECKING:
    from ikigai_actors.system.attached import AttachedSystem
    from ikigai_actors.system.system import ActorSystem


def opened(options: Options, interactive: bool) -> "ActorSystem | AttachedSystem":
    """Open the system that runs the agents; if another process runs them, attach to it."""
    from ikigai_actors.reach.databases import place_of
    from ikigai_actors.system.system import ActorSystem

    try:
        with progress_line(f"Opening {harmless(place_of(options.database).shown)}"):
            arguments = options.arguments(interactive)
            if not place_of(options.database).is_server:
                arguments["resume"] = False  # a person looks first; hosts that share agents go on
            return ActorSystem.open(options.database, **arguments)
    except StoreInUse:
        from ikigai_actors.reach.views import owners_of
        from ikigai_actors.system.attached import AttachedSystem

        attached = AttachedSystem.open(options.database)
        if all(host.is_gone for host in owners_of(attached)):  # the host is ending, or its lease has not run out
            attached.close()
            raise
        return attached
