"""Requests and replies about which hooks are asked. Pure; calls are in `ikigai_actors.agent.turn.calls`.

    before_request   the request is due, but not sent: a ``hook`` message has the verdict, and a ``context`` message
                     each text that a hook adds; then the request is sent, or an ``error`` message ends the turn
    after_reply      the reply is committed with a ``hook`` message that says ``asked``. A second ``hook`` message has
                     the verdict: it ends the turn, or a ``context`` message makes the turn go on

Both verdicts are committed before their consequences, so no hook is asked again after its verdict: not at a resumption,
not on another host, not in a fork. A crash before that leaves the request unsent, or the reply in the log, and the
hooks are asked once more. A verdict on a request holds until the model has new messages to read: the same request may
be sent several times, and no hook is asked again. A paid reply is committed before any hook is asked about it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import AskHooks, Phase, RequestModel, State, Step
from ikigai_actors.agent.turn.steps import PendingMessage, advance, end_turn, messages_of
from ikigai_actors.errors import BadInput, ProviderError
from ikigai_actors.frozen import replace
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.hook_commands import commands_in
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import reply_of
from ikigai_actors.text import storable
from ikigai_actors.tools.hooks.verdict import AFTER_REPLY, BEFORE_REQUEST, MOST_ROUNDS, HookOutcome

EVENT, ASKED, GOES_ON, ENDS = "event", "asked", "goes_on", "ends"
"""Keys of the data of ``hook`` messages: the event, and whether hooks are asked, have it go on, or let it end."""


def is_hooked(own: Iterable[Message]) -> bool:
    """Whether hooks have already given their verdict on the request that is due.

    ``own``: an agent's messages, the latest first.
    """
    for message in own:
        if message.kind == Kind.HOOK and message.data.get(EVENT) == BEFORE_REQUEST:
            return True
        if _begins_another(message):
            return False
    return False


def dropped_hooks(above: Mapping[str, Any], changes: Mapping[str, Any]) -> list[str]:
    """Return the hooks that an agent above a child requires and that the child's settings would remove."""
    lost = list[str]()
    if "hooks" in changes:
        lost += (name for name in above.get("hooks") or () if name not in (changes["hooks"] or ()))
    if "hook_commands" in changes:
        kept = {entry["name"] for entry in commands_in(changes)}
        lost += (entry["name"] for entry in commands_in(above) if entry["name"] not in kept)
    return lost


def refusal_to_drop(name: str, lost: list[str]) -> BadInput:
    """Return the error for a change that would drop hooks of an agent above."""
    return BadInput(
        f"Agent {name} can only add hooks: {', '.join(lost)} must be asked, since it was forked with that. Take it "
        "away from the agent that has set it, and fork again."
    )


def begins_with(own: Iterable[Message]) -> str | None:
    """Return the prompt and steering messages that only the next request brings to the model; None without any."""
    texts = list[str]()
    for message in own:
        if message.kind in (Kind.USER, Kind.STEER):
            texts.append(message.content)
        elif _begins_another(message) or (message.kind == Kind.HOOK and message.data.get(EVENT) == BEFORE_REQUEST):
            break
    return "\n\n".join(reversed(texts)) if texts else None


def ending_in(turn: Sequence[Message]) -> Message | None:
    """Return the reply that would end the turn and about which hooks are still asked; None if there is none.

    ``turn`` has the messages of the open turn, oldest first. See `State.ending`.
    """
    reply: Message | None = None
    ending: Message | None = None
    for message in turn:
        if message.kind == Kind.ASSISTANT:
            reply, ending = message, None
        elif message.kind == Kind.HOOK and message.data.get(EVENT) == AFTER_REPLY:
            ending = reply if message.data.get(ASKED) else None
        elif _begins_another(message):
            ending = None
    return ending


def _begins_another(message: Message) -> bool:
    match message.kind:
        case Kind.USER | Kind.STEER | Kind.ASSISTANT | Kind.TOOL_RESULT | Kind.REPAIR | Kind.ERROR | Kind.INTERRUPTED:
            return True
    return False


def rounds_in(turn: Iterable[Message]) -> int:
    """Return how often hooks have made a turn go on after a reply."""
    return sum(message.kind == Kind.HOOK and bool(message.data.get(GOES_ON)) for message in turn)


def may_add(turn: Iterable[Message]) -> bool:
    """Return whether hooks may make the turn go on once more: they may do so a limited number of times."""
    return rounds_in(turn) < MOST_ROUNDS


def ask_about_reply(state: State, draft: PendingMessage, hooks: tuple[str, ...], now: int) -> Step:
    """Commit a reply that would end the turn, and ask hooks about it."""
    asked: PendingMessage = (
        Kind.HOOK, f"{', '.join(hooks)} asked about the reply", {EVENT: AFTER_REPLY, "hooks": list(hooks), ASKED: True}
    )  # fmt: skip
    messages = messages_of(state.uuid, state.head, now, (draft, asked))
    anew = {"calls": (), "hold": None, "squeezed": 0, "focus": None, "service_waits": 0}
    after = advance(state, messages, phase=Phase.RUNNING_TOOLS, ending=messages[0], ending_asked=True, **anew)
    return Step(after, LogUnit(state.uuid, messages), (AskHooks(state.request, "", AFTER_REPLY, hooks),))


def continue_ending(state: State, hooks: tuple[str, ...], now: int) -> Step:
    """Ask hooks about the reply that would end the turn. Without hooks to ask, the reply ends the turn."""
    if state.ending_asked:
        return Step(state)
    if hooks:
        ask = AskHooks(state.request, "", AFTER_REPLY, hooks)
        return Step(replace(state, ending_asked=True), effects=(ask,))
    return _conclude(state, HookOutcome(), now)


def take_reply_verdict(state: State, event: on.HooksAnswered, now: int, has_words: bool) -> Step:
    """Write the verdict of hooks on a reply that would end the turn.

    The turn goes on if a hook adds a text or steering messages wait; else it ends.
    """
    if state.ending is None or not state.ending_asked or event.request != state.request:
        return Step(state)
    said = event.outcome
    if not (said.contexts or has_words):
        return _conclude(state, said, now)
    goes_on = {GOES_ON: True} if said.contexts else {}
    data = {EVENT: AFTER_REPLY, "hooks": list(said.asked), **goes_on}
    by = ", ".join(name for name, _ in said.contexts)
    words = f"{by} had the turn go on" if by else f"{', '.join(said.asked)} heard of the reply"
    messages = messages_of(state.uuid, state.head, now, ((Kind.HOOK, words, data), *_contexts(said)))
    after = advance(state, messages, ending=None, ending_asked=False)
    return Step(after, LogUnit(state.uuid, messages))


def _conclude(state: State, said: HookOutcome, now: int) -> Step:
    assert state.ending is not None
    data = {EVENT: AFTER_REPLY, "hooks": list(said.asked), ENDS: True}
    draft: PendingMessage = (Kind.HOOK, f"{', '.join(said.asked) or 'No hook'} let the turn end", data)
    return end_turn(state, now, replace(reply_of(state.ending), output=None), draft)


def take_request_verdict(state: State, event: on.HooksAnswered, now: int) -> Step:
    """Write the verdict of hooks on a request. The request is sent with the texts that they add, or the turn ends."""
    if state.phase is not Phase.WAITING_FOR_MODEL or event.request != state.request:
        return Step(state)
    said = event.outcome
    data: dict[str, Any] = {EVENT: BEFORE_REQUEST, "hooks": list(said.asked), "decision": said.decision}
    if said.decision == "deny":
        text = storable(f"Hook {said.by} denies this request: {said.reason or 'it gives no reason'}")
        denied: PendingMessage = (Kind.HOOK, f"{said.by} denies the request: {said.reason}", data)
        return end_turn(state, now, ProviderError(text), denied, (Kind.ERROR, text, {"hook": said.by}))
    draft: PendingMessage = (Kind.HOOK, f"{', '.join(said.asked)} let the request pass", data)
    messages = messages_of(state.uuid, state.head, now, (draft, *_contexts(said)))
    if not said.contexts:
        return Step(advance(state, messages), LogUnit(state.uuid, messages), (RequestModel(state.request),))
    request = state.request + 1
    after = advance(state, messages, request=request, hold=None)
    return Step(after, LogUnit(state.uuid, messages, asks=True), (RequestModel(request),))


def _contexts(said: HookOutcome) -> Iterable[PendingMessage]:
    return ((Kind.CONTEXT, text, {"hook": hook}) for hook, text in said.contexts)
