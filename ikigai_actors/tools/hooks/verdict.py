"""Verdicts: the answer of a hook about a call, and how the answers of several hooks are combined. Pure.

A verdict can restrict a call, but never permit more. ``allow`` means no objection; rules and approvals still apply.
Hooks are asked in order, and each sees the changes of the earlier ones. The first hook that denies ends this. If a hook
wants a person to decide, a person decides, whatever later hooks answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.text import check_text

BEFORE_CALL, AFTER_CALL = "before_call", "after_call"
HOOK_EVENTS = (BEFORE_CALL, AFTER_CALL)
"""The events at which hooks run."""

LONGEST_CONTEXT = 20_000
"""The most characters that a hook may add for the model at a time."""


@dataclass(frozen=True, slots=True)
class HookedCall:
    """A call of a model, as a hook gets it."""

    agent: str
    """The uuid of the agent; `current_agent` returns its handle."""
    tool: str
    """The name of the tool."""
    input: Mapping[str, Any]
    """The arguments, with the changes of earlier hooks."""
    id: str
    """The id of the call. `current_call` has a key that stays the same when the hook is asked again."""
    result: str | None = None
    """The text of the call's result; None before the call."""
    is_error: bool = False
    """Whether the result is an error."""


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """The answer of a hook. Made by `allow`, `deny`, `ask`, `change` and `add`."""

    decision: str = "allow"
    reason: str = ""
    input: Mapping[str, Any] | None = None
    context: str = ""

    @classmethod
    def allow(cls) -> "HookVerdict":
        """No objection; returning None means the same."""
        return cls()

    @classmethod
    def deny(cls, reason: str) -> "HookVerdict":
        """Deny the call. The model reads the reason."""
        return cls("deny", check_text(reason, "reason"))

    @classmethod
    def ask(cls, reason: str = "") -> "HookVerdict":
        """Let a person, or the function that approves calls, decide."""
        return cls("ask", check_text(reason, "reason"))

    @classmethod
    def change(cls, input: Mapping[str, Any]) -> "HookVerdict":  # noqa: A002 - as the call has it
        """Replace the arguments of the call. Rules and people check the new ones."""
        if not isinstance(input, Mapping):
            raise BadInput(f"Expected the arguments of a call as a dict; got {shown(input)}.")
        return cls(input=dict(input))

    @classmethod
    def add(cls, context: str) -> "HookVerdict":
        """Add a text for the model, after the result of the call."""
        return cls(context=check_text(context, "context")[:LONGEST_CONTEXT])


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """The combined verdict of all hooks of a call."""

    asked: tuple[str, ...] = ()
    """The names of the hooks that were asked, in order."""
    decision: str = "allow"
    by: str = ""
    """The name of the hook that denies, or of the first that asks for a decision."""
    reason: str = ""
    input: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The arguments after all changes."""
    changed_by: tuple[str, ...] = ()
    """The names of the hooks that have changed the arguments."""
    contexts: tuple[tuple[str, str], ...] = ()
    """The texts for the model, each with the name of its hook."""

    @property
    def ends(self) -> bool:
        """Whether no further hook is asked."""
        return self.decision == "deny"

    def after(self, hook: str, said: HookVerdict) -> "HookOutcome":
        """Return the outcome after one more verdict."""
        told = (*self.contexts, (hook, said.context)) if said.context.strip() else self.contexts
        changes = said.input is not None and said.input != self.input
        kept = self.decision == "ask" and said.decision != "deny"
        return HookOutcome(
            (*self.asked, hook),
            self.decision if kept or said.decision == "allow" else said.decision,
            self.by if kept or said.decision == "allow" else hook,
            self.reason if kept or said.decision == "allow" else said.reason,
            said.input if changes and said.input is not None else self.input,
            (*self.changed_by, hook) if changes else self.changed_by,
            told,
        )


@dataclass(frozen=True, slots=True)
class DueHooks:
    """The names of the hooks that must be asked about calls, in order, by the id of the call."""

    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The hooks that a setting names and this process does not have, by the id of the call. Such calls are denied."""


NO_HOOKS = DueHooks()


def as_json_verdict(said: object) -> dict[str, Any]:
    """Convert a hook's return value to JSON data. Raises `TypeError` if it is no verdict."""
    if said is None:
        return {}
    if not isinstance(said, HookVerdict) or said.decision not in ("allow", "deny", "ask"):
        raise TypeError(f"expected None or a HookVerdict, got {said!r}")
    changed = {} if said.input is None else {"input": dict(said.input)}
    return {"decision": said.decision, "reason": said.reason, "context": said.context, **changed}


def stored_verdict(stored: Mapping[str, Any]) -> HookVerdict:
    """Read the verdict that `as_json_verdict` has written."""
    return HookVerdict(
        stored.get("decision", "allow"), stored.get("reason", ""), stored.get("input"), stored.get("context", "")
    )
