"""What a line may become at the Tab key: commands, and after them what they are about.

/sw            → /switch
/switch bu     → /switch buyer           names of the living, and the beginnings of their uuids
/rewind be     → /rewind before          marks of the current agent
/doc show pl   → /doc show plan/mast.md  paths
"""

import shlex

from ikigai_actors.records.registry import short_uuids
from ikigai_actors.shell.commands import commands
from ikigai_actors.shell.commands.documents import doc
from ikigai_actors.system.ref import AgentRef

ABOUT_AGENTS = ("/switch ", "/send ", "/filter-mail --from ", "/rename --agent ")
ABOUT_MARKS = ("/rewind ",)
ABOUT_MODELS_TOOLS = ("/tools ",)
ABOUT_DOCUMENTS = ("/doc show ", "/doc write ", "/doc delete ", "/doc log ", "/doc list ")


def completions(current: AgentRef, line: str) -> list[str]:
    """The completions of a line: whole lines. Reads the database.

    Args:
        current: the agent that the person is at.
        line: the line up to the cursor.
    """
    for verbs, words in (
        (ABOUT_AGENTS, _agents),
        (ABOUT_MARKS, _marks),
        (ABOUT_MODELS_TOOLS, _tools),
        (ABOUT_DOCUMENTS, _documents),
        (("/doc ",), lambda _: [f"{name} " for name in sorted(doc.commands)]),
        (("/help ",), lambda _: sorted(commands.commands)),
    ):
        for verb in verbs:
            if line.startswith(verb):
                return [text for text in (verb + word for word in words(current)) if text.startswith(line)]
    return [f"{name} " for name in sorted(commands.commands) if name.startswith(line)]


def common(texts: list[str]) -> str:
    """The beginning that all of the texts share."""
    first, last = min(texts), max(texts)
    same = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:same]


def _agents(current: AgentRef) -> list[str]:
    living = [record for record in current.system.agents() if record.living]
    short = short_uuids(living)
    return [*sorted(record.name for record in living if record.name), *sorted(short.values())]


def _marks(current: AgentRef) -> list[str]:
    labels = {label for label, _ in current.context().marks if label}
    return sorted(labels)


def _tools(current: AgentRef) -> list[str]:
    return sorted(str(tool["name"]) for tool in current.tools())


def _documents(current: AgentRef) -> list[str]:
    return sorted(shlex.quote(document.path) for document in current.system.documents.list())
