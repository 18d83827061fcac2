"""Verdicts: what a hook says of a call, and what several of them come to. Pure.

A verdict narrows and never widens. ``allow`` says that there is no objection: it skips no rule and no person. Hooks are
asked in their order, and each sees what the one before has changed. The first that denies ends that; what one asks for
stays, whatever others say.
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
"""The events of which hooks hear."""

LONGEST_CONTEXT = 20_000
"""How many characters a hook may say to the model at a time."""


@dataclass(frozen=True, slots=True)
class HookedCall:
    """A call of a model, as a hook sees it."""

    agent: str
    """The agent, by uuid; `current_agent` gives its handle."""
    tool: str
    """The tool's name."""
    input: Mapping[str, Any]
    """The arguments, with what hooks before have changed."""
    id: str
    """The id of the call. `current_call` gives a key that stays the same when the hook is asked again."""
    result: str | None = None
    """The text of its result; None before the call."""
    is_error: bool = False
    """Whether the result says that it failed."""


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """The words of a hook. Made by `allow`, `deny`, `ask`, `change` and `add`."""

    decision: str = "allow"
    reason: str = ""
    input: Mapping[str, Any] | None = None
    context: str = ""

    @classmethod
    def allow(cls) -> "HookVerdict":
        """No objection, as None says too."""
        return cls()

    @classmethod
    def deny(cls, reason: str) -> "HookVerdict":
        """The call does not run; the model reads why."""
        return cls("deny", check_text(reason, "reason"))

    @classmethod
    def ask(cls, reason: str = "") -> "HookVerdict":
        """A person, or the program that approves calls, is to decide."""
        return cls("ask", check_text(reason, "reason"))

    @classmethod
    def change(cls, input: Mapping[str, Any]) -> "HookVerdict":  # noqa: A002 - as the call has it
        """The call has these arguments instead. Rules and people look at them."""
        if not isinstance(input, Mapping):
            raise BadInput(f"Expected the arguments of a call as a dict; got {shown(input)}.")
        return cls(input=dict(input))

    @classmethod
    def add(cls, context: str) -> "HookVerdict":
        """The model reads this text, after the result of the call."""
        return cls(context=check_text(context, "context")[:LONGEST_CONTEXT])


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """The words of all hooks of a call, together."""

    asked: tuple[str, ...] = ()
    """The names of those that were asked, in order."""
    decision: str = "allow"
    by: str = ""
    """The hook that denies, or the first that asks."""
    reason: str = ""
    input: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The arguments, as they are now."""
    changed_by: tuple[str, ...] = ()
    """The hooks that have changed them."""
    contexts: tuple[tuple[str, str], ...] = ()
    """The texts for the model, each with its hook."""

    @property
    def ends(self) -> bool:
        """Whether no further hook is asked."""
        return self.decision == "deny"

    def after(self, hook: str, said: HookVerdict) -> "HookOutcome":
        """The outcome with what one more hook has said."""
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
    """The names of the hooks that are to be asked about calls, in order, by the id of the call."""

    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The hooks that a setting names, and that this process does not have: such calls are denied."""


NO_HOOKS = DueHooks()


def as_json_verdict(said: object) -> dict[str, Any]:
    """The value that a hook gave, as JSON has it. Raises `TypeError` for what is no verdict."""
    if said is None:
        return {}
    if not isinstance(said, HookVerdict) or said.decision not in ("allow", "deny", "ask"):
        raise TypeError(f"expected None or a HookVerdict, got {said!r}")
    changed = {} if said.input is None else {"input": dict(said.input)}
    return {"decision": said.decision, "reason": said.reason, "context": said.context, **changed}


def stored_verdict(stored: Mapping[str, Any]) -> HookVerdict:
    """The verdict that `as_json_verdict` has written."""
    return HookVerdict(
        stored.get("decision", "allow"), stored.get("reason", ""), stored.get("input"), stored.get("context", "")
    )
