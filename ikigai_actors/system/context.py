"""The context of an agent: the messages, settings and marks in force, for ``/context`` and for programs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ikigai_actors.records.log.history import ReplayRange
from ikigai_actors.records.log.log import Log


@dataclass(frozen=True, slots=True)
class Context:
    """The numbers of messages, the settings and the marks in force in an agent's history at one moment."""

    inherited: int
    """The number of visible messages that the agent has inherited."""
    own: int
    """The number of visible messages that the agent has written itself."""
    settings: Mapping[str, Any]
    """The settings in force."""
    marks: tuple[tuple[str, int], ...]
    """The label and position of each mark in force, oldest first."""
    ranges: tuple[ReplayRange, ...]
    """The ranges of positions in the logs of the agent and its ancestors that make up the history."""
    usage: Mapping[str, int]
    """The token counts that a provider has last reported, by kind; empty if none has."""
    window: int = 0
    """The context window of the agent's model, in tokens; 0 if unknown. It comes from the setting ``context_window``,
    from ``ikigai.toml``, from a refusal that this process has received, or from the provider.
    """
    parts: Mapping[str, int] = field(default_factory=dict)
    """The approximate number of tokens of each part of the window: the ``system`` prompt, the descriptions of
    ``tools``, the ``summary`` in force, the ``kept`` rest of the conversation, and the ``results`` of tools in it.
    ``tools`` is missing where only the host knows them.
    """


def context_of(
    log: Log,
    ranges: tuple[ReplayRange, ...],
    defaults: Mapping[str, Any],
    window_of: Callable[[str | None], int],
    tools_of: Callable[[Log], Sequence[Mapping[str, Any]] | None],
) -> Context:
    """Return the context, at the head of a log, of the agent that has this log.

    Args:
        log: the log.
        ranges: the ranges of positions where the history is stored.
        defaults: the settings that hold where the agent has set none.
        window_of: returns the window of a model, in tokens.
        tools_of: returns the descriptions of the tools that the model reads; None if they are not known.
    """
    from ikigai_actors.agent.sizes import parts_of

    head = log.head
    view, visible = log.view(head), list(log.visible(head))
    in_force = {**defaults, **view.settings}
    used: object = next((message.data["usage"] for message in reversed(visible) if "usage" in message.data), {})
    return Context(
        inherited=sum(message.id <= log.fork for message in visible),
        own=sum(message.id > log.fork for message in visible),
        settings=dict(view.settings),
        marks=tuple((mark.label, mark.id) for mark in view.all_marks()),
        ranges=ranges,
        usage=dict(used) if isinstance(used, Mapping) else {},
        window=view.settings.get("context_window") or window_of(view.settings.get("model")),
        parts=parts_of(log, in_force, tools_of(log)),
    )
