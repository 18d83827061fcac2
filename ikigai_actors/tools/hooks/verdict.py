"""Verdicts: the answer of a hook about a call, and how the answers of several hooks are combined. Pure.

A verdict can restrict, but never permit more. ``allow`` means no objection; rules and approvals still apply. Hooks are
asked in order, and each sees the changes of the earlier ones. The first hook that denies ends this. If a hook wants a
person to decide, a person decides, whatever later hooks answer. Each event has its own verdicts:

    before_call      deny, ask, change, add
    filter_result    replace the text of a result, before that is committed
    after_call       add
    before_request   deny, which ends the turn; add
    after_reply      add, and the turn goes on: `MOST_ROUNDS` times
    on_fork          deny, narrow the settings of the child
    on_exit          none: the hook only looks
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.text import check_text

BEFORE_CALL, AFTER_CALL, FILTER_RESULT = "before_call", "after_call", "filter_result"
BEFORE_REQUEST, AFTER_REPLY = "before_request", "after_reply"
ON_FORK, ON_EXIT = "on_fork", "on_exit"
HOOK_EVENTS = (BEFORE_CALL, FILTER_RESULT, AFTER_CALL, BEFORE_REQUEST, AFTER_REPLY, ON_FORK, ON_EXIT)
"""The events at which hooks run."""

GATES: Mapping[str, frozenset[str]] = {
    BEFORE_CALL: frozenset({"deny", "ask", "change", "add"}),
    FILTER_RESULT: frozenset({"replace"}),
    BEFORE_REQUEST: frozenset({"deny", "add"}),
    ON_FORK: frozenset({"deny", "narrow"}),
}
"""The events whose hooks can deny, each with the verdicts that it takes. Any other verdict is a failure."""

MOST_ROUNDS = 3
"""The most times that hooks may continue one turn after a reply."""

NARROWING = frozenset({"tools", "max_agents", "max_steps", "service_retries", "stream_retries", "hooks", "stuck_after"})
"""The settings of a child that a hook may narrow."""

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
class HookedRequest:
    """A request to a model, as a hook sees it."""

    agent: str
    """The agent, by uuid; `current_agent` gives its handle."""
    prompt: str | None
    """The prompt or the word with which it begins; None where it goes on with results, or with what a hook added."""


@dataclass(frozen=True, slots=True)
class HookedReply:
    """A reply that would end a turn, as a hook sees it."""

    agent: str
    """The agent, by uuid; `current_agent` gives its handle."""
    text: str
    """The text of the reply."""
    rounds: int
    """How often hooks have had this turn go on."""


@dataclass(frozen=True, slots=True)
class HookedExit:
    """The end of an agent, as a hook sees it: the agent is dead."""

    agent: str
    """The agent, by uuid."""
    result: str
    """The result with which it has exited, or the reason for which it was ended."""


Hooked = HookedCall | HookedRequest | HookedReply | HookedExit
"""A question to a hook."""


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """The answer of a hook. Made by `allow`, `deny`, `ask`, `change`, `add`, `replace` and `narrow`."""

    decision: str = "allow"
    reason: str = ""
    input: Mapping[str, Any] | None = None
    context: str = ""
    text: str | None = None
    settings: Mapping[str, Any] | None = None

    @property
    def means(self) -> frozenset[str]:
        """Return the names of the decisions in this verdict, as `GATES` lists them, such as ``deny`` and ``add``."""
        parts = {"change": self.input, "add": self.context.strip() or None, "replace": self.text}
        parts |= {"narrow": self.settings, self.decision: None if self.decision == "allow" else self.decision}
        return frozenset(name for name, value in parts.items() if value is not None)

    @classmethod
    def allow(cls) -> "HookVerdict":
        """Have no objection; a hook that returns None means the same."""
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
        """Add a text for the model: after the result of the call, before the request, or after its reply."""
        return cls(context=check_text(context, "context")[:LONGEST_CONTEXT])

    @classmethod
    def replace(cls, text: str) -> "HookVerdict":
        """Replace the text of the result. For ``filter_result``."""
        return cls(text=check_text(text, "text"))

    @classmethod
    def narrow(cls, settings: Mapping[str, Any]) -> "HookVerdict":
        """Restrict the child to what these settings allow, which must be among `NARROWING`. For ``on_fork``."""
        if not isinstance(settings, Mapping) or not settings.keys() <= NARROWING:
            raise BadInput(f"Expected settings among {', '.join(sorted(NARROWING))}; got {shown(settings)}.")
        return cls(settings=dict(settings))


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """The combined verdict of all hooks on one call, request or reply."""

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
    settings: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """The settings by which a child is narrowed, each with its hook."""

    @property
    def ends(self) -> bool:
        """Whether no further hook is asked."""
        return self.decision == "deny"

    def after(self, hook: str, said: HookVerdict) -> "HookOutcome":
        """Return the combined verdict after one more hook has given its verdict."""
        contexts = (*self.contexts, (hook, said.context)) if said.context.strip() else self.contexts
        changes = said.input is not None and said.input != self.input
        kept = self.decision == "ask" and said.decision != "deny"
        return HookOutcome(
            (*self.asked, hook),
            self.decision if kept or said.decision == "allow" else said.decision,
            self.by if kept or said.decision == "allow" else hook,
            self.reason if kept or said.decision == "allow" else said.reason,
            said.input if changes and said.input is not None else self.input,
            (*self.changed_by, hook) if changes else self.changed_by,
            contexts,
            (*self.settings, (hook, said.settings)) if said.settings is not None else self.settings,
        )


@dataclass(frozen=True, slots=True)
class DueHooks:
    """The hooks that must be asked about the calls of a reply, in order, by the id of the call."""

    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The hooks that a setting names and this process does not have, by the id of the call. Such calls are denied."""
    reply: tuple[str, ...] = ()
    """The hooks that are to be asked about a reply that would end the turn."""


NO_HOOKS = DueHooks()


def named_hook(name: str) -> tuple[str, str]:
    """Split the name of a hook in the setting ``hooks`` into its event and its name: ``audit``, or ``EVENT:audit``."""
    event, _, rest = name.partition(":")
    return (event, rest) if rest and event in HOOK_EVENTS else (BEFORE_CALL, name)


def lacking_hooks(wanted: Iterable[str], events: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the hooks that a setting ``hooks`` names and a process lacks, each as its event and its name.

    ``events``: the event of each hook of the process, by its name.
    """
    named = (named_hook(name) for name in wanted)
    return tuple((of, name) for of, name in named if name not in events or of not in (BEFORE_CALL, events[name]))


def as_json_verdict(said: object) -> dict[str, Any]:
    """Convert a hook's return value to JSON data. Raises `TypeError` if it is no verdict."""
    if said is None:
        return {}
    if not isinstance(said, HookVerdict) or said.decision not in ("allow", "deny", "ask"):
        raise TypeError(f"expected None or a HookVerdict, got {said!r}")
    parts = {"input": said.input, "text": said.text, "settings": said.settings}
    changed = {name: value for name, value in parts.items() if value is not None}
    return {"decision": said.decision, "reason": said.reason, "context": said.context, **changed}


def stored_verdict(stored: Mapping[str, Any]) -> HookVerdict:
    """Return the verdict from JSON data that `as_json_verdict` has made."""
    words = stored.get("decision", "allow"), stored.get("reason", "")
    return HookVerdict(
        *words, stored.get("input"), stored.get("context", ""), stored.get("text"), stored.get("settings")
    )
