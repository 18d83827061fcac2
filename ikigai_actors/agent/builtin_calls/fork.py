"""The built-in call fork, which is Unix fork: parent and child both return from the same call.

The result in the parent names the child. The result in the child says that it is the child. The turn goes on in both. A
child of a kind begins without the history (`ikigai_actors.agent.turn.kinds`), and its prompt says how it returns its
result.

Consecutive fork calls of one reply are one unit. If the unit is refused, each call is carried out by itself, so that
only the faulty call gets the error.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, Given, text
from ikigai_actors.agent.turn.calls import FORK, Call, Progress, builtin_calls, progress
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.fork import Childbed, give_birth
from ikigai_actors.agent.turn.kinds import budget_of_kind, messages_of_kind, restart_of_kind
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.agent.turn.steps import PendingMessage
from ikigai_actors.agent.turn.typed import EXIT
from ikigai_actors.errors import BadInput
from ikigai_actors.frozen import NO_DATA, replace
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.agents.words import called, words_of
from ikigai_actors.records.budgets.budget import parse_budget
from ikigai_actors.records.messages.kinds import kind_named, kinds_in
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.settings import FORK_MODELS, LIVING_LIMIT
from ikigai_actors.records.transfer.rights import restricted
from ikigai_actors.tools.policy import SHELL, ToolTraits


class ForkCall(BuiltinCall):
    """The call ``fork``: make a child. Both the parent and the child continue the turn after the call."""

    name = FORK
    description = (
        "Make a copy of yourself that goes on beside you, like fork() in Unix. Both of you return from this call: you "
        "with the child's name, the child with the news that it is the child. It remembers all that you remember now. "
        "Give it a prompt that says what it is to do; without one it goes on with what you are doing."
    )
    arguments: ClassVar = {
        "prompt": Argument("string", "What the child is to do."),
        "name": Argument("string", "A name for the child, unique among living agents."),
        "budget": Argument(
            "string",
            "The most that the child and all below it may spend, as 'tokens=200k' or 'usd=0.5,agents=3'. Without it, "
            "they share what is left for you.",
        ),
        "kind": Argument("string", "The kind of agent that the child is, of those that your system prompt lists."),
        "model": Argument("string", "The model of the child. Without it, the child has yours, or that of its kind."),
    }

    def __init__(self) -> None:
        super().__init__()
        self._whole = self.described
        self.described = self._described(False, ())
        """The call for a model that has no kinds of agents and may name no models."""

    def described_for(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the call's description for a model with these settings.

        The arguments ``kind`` and ``model`` are described only if the settings let the model choose.
        """
        kinds = bool(settings.get("kinds") and kinds_in(settings))
        return self._described(kinds, tuple(settings.get(FORK_MODELS) or ()))

    @lru_cache(maxsize=64)  # noqa: B019 - there is one of these calls, for ever
    def _described(self, kinds: bool, models: tuple[str, ...]) -> Mapping[str, Any]:
        schema = {**self._whole["input_schema"]}
        properties = {**schema["properties"]}
        if not kinds:
            del properties["kind"]
        if models:
            properties["model"] = {**properties["model"], "enum": [*models]}
        else:
            del properties["model"]
        return {**self._whole, "input_schema": {**schema, "properties": properties}}

    def check(self, arguments: Given) -> None:
        super().check(arguments)
        if name := arguments.get("name"):
            check_name(name)
        if budget := arguments.get("budget"):
            parse_budget(budget)

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        """Carry out this call together with the ``fork`` calls that directly follow it; see `Continue.one_by_one`."""
        following = () if event.one_by_one else self._following(state, call, tools)
        calls = [call, *following][: len(event.fresh)]
        beds = [self._bed(state, sibling, child, tools) for sibling, child in zip(calls, event.fresh, strict=False)]
        done = progress(state.calls, (sibling.id for sibling in calls), Progress.DONE)
        spent = 0 if event.spent is None else event.spent.usage.all_tokens
        step = give_birth(replace(state, calls=done), beds, now, inherited=spent)
        return replace(step, call=call.id, together=len(calls) > 1)

    def _following(self, state: State, call: Call, tools: Mapping[str, ToolTraits]) -> Iterator[Call]:
        waiting = builtin_calls(state.calls, tools)
        for later in waiting[waiting.index(call) + 1 :]:
            try:
                if later.name == self.name:
                    self._bed(state, later, state.uuid, tools)
            except BadInput:
                return  # it gets its own result, once it is the first
            if later.name != self.name:
                return
            yield later

    def _bed(self, state: State, call: Call, child: str, tools: Mapping[str, ToolTraits]) -> Childbed:
        self.check(call.input)
        name, prompt = call.input.get("name"), text(call.input, "prompt")
        named = check_name(name) if name else None
        news = f"You are the child {called(child, named)}, forked from {words_of(state.uuid)}."
        if SHELL in tools:
            news += " Your shell is new; what the parent runs is not yours."
        own, over = [_result(call, news)], _model_named(call.input, state.view.settings)
        restart, budget = "transient", parse_budget(request) if (request := call.input.get("budget")) else None
        if kind_name := text(call.input, "kind"):
            kind = kind_named(state.view.settings, kind_name)
            budget, restart = budget_of_kind(kind, budget), restart_of_kind(kind, restart)
            if not prompt:
                raise BadInput(f"Expected a prompt for a child of kind {kind_name}; got none.")
            asked = f"{prompt}\n\n{_reporting(state, child, named, tools)}"
            own = messages_of_kind(kind, state.view.settings, tools, asked, NO_DATA, over, (EXIT,))
        else:
            own = [*([(Kind.CONFIGURE, "", over)] if over else []), *own]
            own += [(Kind.USER, prompt, NO_DATA)] if prompt else []
        own, limits = _narrowed(own, state, call)
        messages = (_result(call, f"Forked: the child is {called(child, named)}.{limits}"),)
        limit = state.view.settings.get("max_agents")
        most = LIVING_LIMIT if limit is None else limit
        return Childbed(
            child, named, restart, own, messages, opens=True, limit=most, limit_is_set=limit is not None, budget=budget
        )


def _model_named(arguments: Given, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for a child with the model that a call names. Raises `BadInput` for a forbidden model."""
    named, allowed = text(arguments, "model"), settings.get(FORK_MODELS) or ()
    if not named:
        return {}
    if named not in allowed:
        known = ", ".join(allowed) or "none, so it has yours"
        raise BadInput(f"You cannot name model {named!r} for a child. Models: {known}.")
    return {"model": named}


def _narrowed(own: list[PendingMessage], state: State, call: Call) -> tuple[list[PendingMessage], str]:
    """Return the first messages of a child, narrowed as hooks have decided, and the text about that for its parent."""
    if not call.narrowed:
        return own, ""
    set_by = next((place for place, draft in enumerate(own) if draft[0] is Kind.CONFIGURE), None)
    settings = dict(state.view.settings if set_by is None else {**state.view.settings, **own[set_by][2]})
    changes: dict[str, Any] = {}
    for narrowing in call.narrowed:
        changes |= restricted({**settings, **changes}, narrowing["settings"])
    hooks = ", ".join(dict.fromkeys(str(narrowing["hook"]) for narrowing in call.narrowed))
    if not changes:
        return own, ""
    limits = f" Hook {hooks} narrowed its settings: {', '.join(sorted(changes))}."
    if set_by is None:
        return [(Kind.CONFIGURE, "", changes), *own], limits
    kind, content, data = own[set_by]
    return [*own[:set_by], (kind, content, {**data, **changes}), *own[set_by + 1 :]], limits


def _reporting(state: State, child: str, name: str | None, tools: Mapping[str, ToolTraits]) -> str:
    """Return the text for a child without its parent's history: who it is, and how it returns its result."""
    news = f"You are {called(child, name)}, made by {words_of(state.uuid)} for this."
    how = f" When you are done, call {EXIT} with your result: it goes there." if EXIT in tools else ""
    return f"[{news}{how}]"


FORK_CALL = ForkCall()
CALLS = (FORK_CALL,)


def _result(call: Call, content: str) -> PendingMessage:
    return (Kind.TOOL_RESULT, content, call.data)
