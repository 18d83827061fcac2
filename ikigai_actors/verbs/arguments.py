"""The types of the commands' arguments, which define the completions of the Tab key.

    @click.argument("agent", metavar="ID", type=AGENT)

A ``click.Choice`` offers its words by itself. An argument without possible completions is declared as `TEXT`.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from ikigai_actors.verbs.verb import LocalOption

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef

_LOOKED_AT = 100
"""The number of agents whose models are offered."""

UNQUOTED = "words"
"""The type of a completion that consists of several words without quotes."""


class Offering(StringParamType):
    """The type of an argument that takes any text; the Tab key offers some texts."""

    def __init__(self, offered: Callable[["AgentRef"], Iterable[str]]) -> None:
        """Make a type; ``offered`` returns the texts for a person at an agent, and reads the database."""
        self._offered = offered

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the offered texts that begin with ``incomplete``.

        The object of the click context is the current agent.
        """
        return [CompletionItem(text) for text in self.offered(ctx) if text.startswith(incomplete)]

    def offered(self, ctx: click.Context) -> list[str]:
        """Return all texts that the Tab key offers for the current agent; empty without an agent."""
        from ikigai_actors.system.handles.ref import AgentRef

        agent = ctx.find_object(AgentRef)
        return [] if agent is None else list(self._offered(agent))


class OfferingAgents(Offering):
    """The type of an argument that names an agent; the Tab key offers agents whose label begins with the text."""

    def __init__(self, others: Iterable[str] = ()) -> None:
        """Make a type; ``others`` are offered in addition."""
        self._others = tuple(others)
        super().__init__(lambda current: [*_agents(current, ""), *self._others])

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from ikigai_actors.system.handles.ref import AgentRef

        agent = ctx.find_object(AgentRef)
        texts = [] if agent is None else [*_agents(agent, incomplete), *self._others]
        return [CompletionItem(text) for text in texts if text.startswith(incomplete)]


class OfferingWords(Offering):
    """The type of an argument that takes the rest of the line without quotes, as any number of words."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before = "".join(f"{word} " for word in ctx.params.get(param.name or "") or ())
        texts = (text for text in self.offered(ctx) if text.startswith(before + incomplete))
        return [CompletionItem(text[len(before) :], type=UNQUOTED) for text in texts]


class OfferingValues(OfferingWords):
    """The type of an argument that takes the value of a setting; the argument before it names the setting."""

    def offered(self, ctx: click.Context) -> list[str]:
        from ikigai_actors.system.handles.ref import AgentRef

        agent, name = ctx.find_object(AgentRef), str(ctx.params.get("name"))
        return [] if agent is None else _values(agent, name)


class CommandName(StringParamType):
    """The type of an argument that takes the name of a slash command."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        group = ctx.find_root().command
        names = sorted(group.commands) if isinstance(group, click.Group) else []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


RECORDER = click.Choice(("auto", "claude-code", "codex", "pi", "otel", "langfuse", "openai"))
"""The formats of imported files: those of `ikigai_actors.recordings`, which is slow to import."""


SESSIONS = click.Choice(("claude-code", "codex", "pi"))
"""The session formats of other programs to which agents can be exported."""


def in_either_case(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the completions of a choice that ignores case: in capitals, unless the person has typed a small letter."""
    assert isinstance(param.type, click.Choice)  # nothing else is declared with it
    both = ([str(word).upper(), str(word).lower()] for word in param.type.choices)
    fitting = ([form for form in forms if form.startswith(incomplete)] for forms in both)
    return [CompletionItem(forms[0]) for forms in fitting if forms]


def _agents(current: "AgentRef", text: str) -> list[str]:
    """Return the labels of living agents: those that a text finds, or all; only some if there are very many."""
    from ikigai_actors.records.agents.lists import labelled

    return sorted(current.system._store.read(lambda tx: labelled(tx, text)))


def _hosts(current: "AgentRef") -> list[str]:
    from ikigai_actors.store.hosts.rows import recent_hosts

    hosts = current.system._store.read(recent_hosts)
    return sorted(host.name for host in hosts if host.name and host.ended_at is None)


def _marks(current: "AgentRef") -> list[str]:
    return sorted({label for label, _ in current.context().marks if label})


def _tools(current: "AgentRef") -> list[str]:
    return sorted(str(tool["name"]) for tool in current.tools())


def _documents(current: "AgentRef") -> list[str]:
    return sorted(document.path for document in current.system.documents.list())


def _settings(current: "AgentRef") -> Iterable[str]:
    from ikigai_actors.records.messages.settings import SETTINGS

    return SETTINGS


def _values(current: "AgentRef", name: str) -> list[str]:
    """Return the known values of a setting: the values that its type allows, and the value in force."""
    from ikigai_actors.verbs.text.pages import written

    if name in ("model", "compact_model"):
        known = _models(current)
    elif name == "tools":
        known = _tools(current)
    else:
        known = list({"notify": ("on", "off"), "compact": ("auto", "off")}.get(name, ()))
    now = current.context().settings.get(name)
    shown = "" if now is None or isinstance(now, bool) else written(now)
    return [*known, *([shown] if shown and shown not in known else [])]


def _models(current: "AgentRef") -> list[str]:
    """Return the models of the agents here, and the names of the providers, each with its colon."""
    from ikigai_actors.reach.views import scrollback_of
    from ikigai_actors.records.agents.lists import latest_used

    system = current.system
    names = {system._default_model, *(f"{name}:" for name in system._provider_names)}
    for record in system._store.read(lambda tx: latest_used(tx, _LOOKED_AT)):
        names.add(str(scrollback_of(system, record.uuid).settings().get("model", "")))
    return sorted(filter(None, names))


TEXT = Offering(lambda _: ())
"""The type of any text; offers no completions."""
AGENT = OfferingAgents()
"""The type of an agent's name: offers the names of living agents, and the two words of those without a name."""
SENDER = OfferingAgents(["person"])
"""The type of the sender of mail: an agent, or ``person``."""
HOST = Offering(_hosts)
"""The type of a host's name: offers the names of the living hosts."""
MARK_LABEL = OfferingWords(_marks)
"""The type of a mark's label: offers the marks of the current agent."""
TOOL = Offering(_tools)
"""The type of a tool's name: offers the tools of the current agent's model."""
DOCUMENT = Offering(_documents)
"""The type of a document's path: offers the known paths."""
SETTING = Offering(_settings)
"""The type of a setting's name."""
VALUE = OfferingValues(lambda _: ())
"""The type of a setting's value."""
MODEL = Offering(_models)
"""The type of a model, ``provider:model``."""
POSITION = click.IntRange(min=0)
"""The type of a message's position."""
COMMAND = CommandName()
"""The type of the name of a slash command."""


def keyed(work: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--key`` to a verb, which is carried out once for each key."""
    description = "Names this call: done once, however often a script repeats it."
    return click.option("--key", cls=LocalOption, metavar="KEY", type=TEXT, help=description)(work)
