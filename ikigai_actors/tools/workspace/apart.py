"""Commands apart: commands that only the pattern of a rule allows, and about which nobody was asked.

A pattern sees words. In a shell that goes on, an earlier command may have changed what they mean: a function or alias
of that name, ``hash -p``, a trap, an option, ``enable -f``, PATH or any other variable. So such a command runs in a
subshell of the clean shell (see `ikigai_actors.tools.workspace.bash`):

    rule     With the same directory and files, the command has the same effect as if it were the first command of a
             new shell.
    returns  Its definitions do not hold for later commands. A command that changes the agent's shell, such as
             ``cd``, cannot be allowed by a pattern (`commands.of_shell`).

From the agent's shell it takes only the current directory. The pattern of a rule was written for the workspace, so such
a command does not run outside of the workspace's directory. If its program is named by a relative path, it runs only in
the workspace's directory itself. Variables of the shell are not taken over, because there is no complete list of the
variables that change a program's behaviour; use ``environment`` of `Workspace`. Changes of earlier commands to files,
and their background jobs, remain.
"""

import shlex

from ikigai_actors.tools.function import ToolError
from ikigai_actors.tools.rules.commands import plain_words
from ikigai_actors.tools.workspace.bash import Bash, CommandOutput, PlaceOfShell

_NOTE = (
    "[run apart from your shell, since nothing but a pattern allows it: variables, functions and aliases of your shell "
    "do not hold there]"
)


async def run_apart(shell: Bash, command: str, seconds: float) -> tuple[str, CommandOutput]:
    """Run a command in a clean subshell, apart from what earlier commands have defined.

    Call this while no other command runs in the shell.

    Returns:
        A note for the model that the command ran apart, or an empty text; and the outcome of the command.

    Raises:
        ToolError: the pattern that allows the command does not apply in the shell's current directory. The command
            was not started.
    """
    ran = await shell.run_apart(command, seconds, places_for(command))
    if ran.place is not None:
        raise ToolError(why_not(ran.place, ran.output))
    if not shell.used or (shell.told_apart and ran.code == 0):
        return "", ran
    shell.told_apart = True
    return _NOTE, ran


def places_for(command: str) -> tuple[PlaceOfShell, ...]:
    """Return where the agent's shell may be if only the pattern of a rule allows a plain command."""
    program = (plain_words(command) or ("./",))[0]
    relative = "/" in program and not program.startswith("/")
    return (PlaceOfShell.TOP,) if relative else (PlaceOfShell.TOP, PlaceOfShell.BENEATH)


def why_not(place: PlaceOfShell, directory: str) -> str:
    """Return the reason why the pattern of a rule does not allow a command in this directory."""
    if place is PlaceOfShell.GONE:
        return "Nothing was run: the directory of your shell is gone, or closed to it. Go to another one with cd."
    means = "holds only within it" if place is PlaceOfShell.ELSEWHERE else "means the program in its top directory"
    where = "outside of the workspace" if place is PlaceOfShell.ELSEWHERE else "beneath the workspace's directory"
    return (
        f"Nothing was run: your shell is in {directory}, {where}, and the pattern of a rule that allows this "
        f"command {means}. Go back with cd, or begin it with `cd {shlex.quote(directory)} &&`: then it asks."
    )
