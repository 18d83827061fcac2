"""The context of an agent: what its history means now, for `/context` and for programs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ikigai_actors.records.log.history import ReplayRange
from ikigai_actors.records.log.log import Log


@dataclass(frozen=True, slots=True)
class Context:
    """The meaning of an agent's history now."""

    inherited: int
    """Messages before the fork point that are visible."""
    own: int
    """Messages of its own that are visible."""
    settings: Mapping[str, Any]
    """The settings in force."""
    marks: tuple[tuple[str, int], ...]
    """Label and position of the marks in force, oldest first."""
    ranges: tuple[ReplayRange, ...]
    """Where the history is stored."""
    usage: Mapping[str, int]
    """Tokens as last reported by a provider; empty when none has."""
    window: int = 0
    """How many tokens its model takes, as far as it is known; else 0. The setting ``context_window`` says so,
    ``ikigai.toml``, a refusal that this process has met, or the provider.
    """
    parts: Mapping[str, int] = field(default_factory=dict)
    """How many tokens fill that, about: the ``system`` prompt, the descriptions of ``tools``, the ``summary`` in force,
    what is ``kept`` of the conversation beside, and the ``results`` of tools in it. ``tools`` is missing where only the
    host knows them.
    """


def context_of(
    log: Log,
    ranges: tuple[ReplayRange, ...],
    defaults: Mapping[str, Any],
    window_of: Callable[[str | None], int],
    tools_of: Callable[[Log], Sequence[Mapping[str, Any]] | None],
) -> Context:
    """The context of the agent that has this log, at its head.

    Args:
        log: the log.
        ranges: where it is stored.
        defaults: the settings of agents that have not set them.
        window_of: gives the window of a model.
        tools_of: gives the descriptions of the tools that its model reads; None where they are not known.
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
