"""Which tools an agent has: those of the system, less what its settings leave out."""

from collections.abc import Iterable, Mapping
from typing import Any

from ikigai_actors.calls import FORK, Book, Facts
from ikigai_actors.errors import BadInput, ProviderError
from ikigai_actors.tools import Tool

FORK_DESCRIPTION: Mapping[str, Any] = {
    "name": FORK,
    "description": (
        "Make a copy of yourself that goes on beside you, like fork() in Unix. Both of you return from this call: you "
        "with the child's id, the child with the news that it is the child. It remembers all that you remember now. "
        "Give it a prompt that says what it is to do; without one it goes on with what you are doing."
    ),
    "input_schema": {
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "What the child is to do."},
            "name": {"type": "string", "description": "A name for the child, unique among living agents."},
        },
        "additionalProperties": False,
    },
}
"""What a model is told of `fork`."""

PROCESS: Mapping[str, Mapping[str, Any]] = {FORK: FORK_DESCRIPTION}
"""The calls that the agent performs itself, by name."""


class Toolbox:
    """The tools of a system."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Raises `BadInput` as `add` does."""
        self._tools: dict[str, Tool] = {}
        self.add(tools)

    def add(self, tools: Iterable[Tool]) -> None:
        """Offer further tools. Raises `BadInput` when two tools have one name."""
        for tool in tools:
            if tool.name in self._tools or tool.name in PROCESS:
                raise BadInput(f"Two tools are named {tool.name!r}; give one of them another name.")
            self._tools[tool.name] = tool

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def names(self, settings: Mapping[str, Any]) -> list[str]:
        """The names of an agent's tools, sorted: all of them, or those that its setting ``tools`` names.

        Raises `ProviderError` when the setting names one that is not registered.
        """
        known = sorted({*self._tools, *PROCESS})
        allowed = settings.get("tools")
        if allowed is None:
            return known
        if missing := sorted(set(allowed) - set(known)):
            raise ProviderError(
                f"The setting tools names {', '.join(missing)}, not registered now. Registered: {', '.join(known)}. "
                "Change the setting, or open the system with these tools."
            )
        return sorted(set(allowed))

    def book(self, settings: Mapping[str, Any]) -> Book:
        """What the machine must know of an agent's tools; those that are not registered are left out."""
        allowed = settings.get("tools")
        facts = {name: tool.facts for name, tool in self._tools.items()} | {name: Facts() for name in PROCESS}
        return facts if allowed is None else {name: facts[name] for name in allowed if name in facts}

    def describe(self, settings: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
        """An agent's tools for its model, in an order that never changes. Raises `ProviderError` as `names` does."""
        return tuple(
            PROCESS[name] if name in PROCESS else self._tools[name].describe() for name in self.names(settings)
        )
