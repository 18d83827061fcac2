"""The verb ``editor``, which opens an editor for a prompt."""

from typing import TYPE_CHECKING

from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import ShellPlace


@verb("editor", needs=Right.LOOK, callers=Callers.PEOPLE)
def write_prompt(shell: "ShellPlace", agent: "AgentRef") -> object:
    """Write a prompt in your editor.

    VISUAL or EDITOR names the editor. On the whole screen the text comes into the prompt, and F9 edits the text of the
    prompt. In lines the text is sent.
    """
    from ikigai_actors.errors import BadInput

    if not shell.attended:
        raise BadInput("There is no terminal here to give to an editor.")
    text = (shell.edit("") or "").strip("\n")
    if text.strip():
        shell.give_text(text)
    else:
        shell.screen.line("Nothing was written.", dim=True)
    return None
