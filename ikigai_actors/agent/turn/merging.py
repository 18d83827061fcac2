"""Merging: one message in this agent's history quotes or summarises another agent's work. Pure.

    idle, interrupted, or a turn whose model calls ``merge``
      │ Merge
      v
    merging ── ReadChild ──> the child's head, its messages since the last merge, its documents
      │ ChildRead: result, pick ────────────────────────> one unit: the row of the merge, and the message ``merge``
      │ ChildRead: summary ── Summarise: the child's history, and a further prompt ──> the child's model
      │ SummaryReplied ──────────────────────────────────> the same unit
      │ SummaryFailed, too long ── Summarise: a part of it (`agent.turn.parts`), until all parts have notes
      └ an error, a refused unit, INT: the state as before, and the caller gets the error

The unit is refused when the child has gone on meanwhile, or was merged at the same head before. So a merge happens
once, and describes one moment. A crash before the unit leaves nothing; a model's call of ``merge`` is then carried out
again. The cost of a summary is reserved for this agent before the summary is asked for, and charged to it (see
`ikigai_actors.agent.turn.compaction`).

The child's words are shown as a quotation, never as this agent's own reply. Its thinking and its calls are not taken
over.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.agent.turn import compaction
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import Call, Progress, progress
from ikigai_actors.agent.turn.compaction import holding, objection_to, said_again, state_behind
from ikigai_actors.agent.turn.parts import ReadPart, behind_part, shorter
from ikigai_actors.agent.turn.state import Answer, Merging, Phase, ReadChild, State, Step, Summarise
from ikigai_actors.agent.turn.steps import PendingMessage, advance, messages_of
from ikigai_actors.agent.turn.tool_steps import asks_next, refuse
from ikigai_actors.agent.turn.ways import RESULT, SUMMARY
from ikigai_actors.errors import (
    AlreadyMerged,
    BadInput,
    BudgetExceeded,
    IkigaiError,
    NothingToMerge,
    ProviderError,
    TurnOpen,
)
from ikigai_actors.frozen import NO_DATA, replace
from ikigai_actors.providers.base import REPORT, Spent
from ikigai_actors.providers.too_long import too_long
from ikigai_actors.records.budgets.amounts import Held
from ikigai_actors.records.log.history import View
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.log.merge_source import MergeEntry, MergeSource
from ikigai_actors.records.messages.messages import CONVERSATION, Kind, Message
from ikigai_actors.records.messages.replies import calls_in, spent_data
from ikigai_actors.text import storable

_ROLES: Mapping[str, str] = {
    Kind.USER.value: "prompt",
    Kind.ASSISTANT.value: "reply",
    Kind.TOOL_RESULT.value: "result of a call",
    Kind.OUTPUT.value: "result",
}
"""The name of a message's kind where it is quoted."""
_QUOTED = CONVERSATION | {Kind.OUTPUT.value}
"""The kinds of messages that can be quoted."""

_INSTRUCTION = f"""{REPORT}
It knows your history up to the point where you parted from it, and reads your notes in place of the rest.
Report what you did and found{{since}}: results; decisions, each with its reason; names, numbers, dates and paths
exactly; what was tried and did not work; what is open.
Invent nothing. Answer no prompt, go on with no work, call no tool: write the notes alone, as short as they can be
without losing any of this."""


def begin_merge(
    state: State,
    child: str,
    how: str,
    positions: Sequence[int],
    *,
    caller: on.Caller = None,
    call: Call | None = None,
    for_code: bool = False,
) -> Step:
    """Begin a merge by reading the child.

    Args:
        call: the model's call that asks for the merge; None if ``caller`` asks.
        for_code: whether the result of the call is JSON data for a program, rather than a sentence for a model.
    """
    request = state.request + 1
    merging = Merging(child, how, tuple(positions), caller, call, back=state.phase, for_code=for_code)
    after = replace(state, phase=Phase.MERGING, request=request, merging=merging)
    return Step(after, effects=(ReadChild(request, child, with_log=how == SUMMARY),))


def refuse_merge(state: State, caller: on.Caller) -> Step:
    """Refuse a merge while a turn waits for a budget, since a summary would need more of it."""
    text = (
        f"A turn of agent {state.called} waits for a budget, so nothing can be merged into it; nothing was changed. "
        "Grant more (/budget +AMOUNT, or grant()), or end the turn free of charge (INT, Ctrl-C), and merge then."
    )
    return Step(state, effects=(Answer(caller, BudgetExceeded(text, state.uuid)),))


def take_child(state: State, event: on.ChildRead, now: int) -> Step:
    """Write the text to be merged, or ask a model for a summary; if neither is possible, the caller gets the error."""
    merging, source = state.merging, event.source
    assert merging is not None  # in this phase
    try:
        if source is None:
            raise event.error or NothingToMerge(f"Agent {merging.child} cannot be read.", merging.child)
        text = text_of(source, merging.how, merging.positions)
    except IkigaiError as error:
        return fail_merge(state, error, now)
    looked = replace(state, merging=replace(merging, source=source))
    if merging.how != SUMMARY:
        return _write(looked, text, {}, now)
    request = state.request + 1
    after = replace(looked, request=request)
    return Step(after, holding(state), (Summarise(request),), merging.caller)


def take_report(state: State, event: on.SummaryReplied, now: int) -> Step:
    """Write the summary of the merged agent's work; after an unusable answer, ask once more or give up."""
    merging, reply = state.merging, event.reply
    assert merging is not None  # in this phase
    again, wrong = objection_to(reply, merging.attempts)
    if again:
        talk = said_again(state, event, merging.talk, again, now)
        request = state.request + 1
        going = replace(merging, talk=talk, attempts=merging.attempts + 1)
        after = replace(state, request=request, merging=going, hold=None)
        return Step(after, holding(state), (Summarise(request),), merging.caller)
    if wrong:
        complaint = f"The model gave no summary of {merging.child}: its answer was {wrong}. Nothing was changed."
        return fail_merge(state, ProviderError(complaint), now)
    text = storable(reply.text.strip())
    spent = _with_earlier(merging, None if reply.usage is None else Spent(reply.usage, reply.model))
    next_part = behind_part(merging.part, text) if merging.part is not None else text
    return _go_on(state, next_part, {"model": event.model, **spent_data(spent)}, spent, now)


def report_failed(state: State, event: on.SummaryFailed, now: int) -> Step:
    """Ask for a summary of a smaller part if the whole was too long for the model. Any other error ends the merge."""
    merging, refused = state.merging, too_long(str(event.error))
    assert merging is not None  # in this phase
    if refused is None or merging.source is None:
        return fail_merge(state, event.error, now)
    source, spent = merging.source, _with_earlier(merging, event.spent)
    news = tuple(message for message in source.messages if message.id > source.since)
    return _go_on(state, shorter(news, merging.part, refused.window), spent_data(spent), spent, now)


def _go_on(state: State, next_part: ReadPart | str, further: dict[str, Any], spent: Spent | None, now: int) -> Step:
    """Ask for notes about the next part, or write the notes that replace the whole history."""
    merging = state.merging
    assert merging is not None  # in this phase
    if isinstance(next_part, str):
        return _write(state, next_part, further, now)
    usage = spent.usage if spent is not None else None
    request = state.request + 1
    going = replace(merging, part=next_part, usage=usage, talk=(), attempts=1)
    after = replace(state, request=request, merging=going, hold=None)
    return Step(after, holding(state), (Summarise(request),), merging.caller)


def _with_earlier(merging: Merging, spent: Spent | None) -> Spent | None:
    """Return the cost of the request, plus that of the notes about earlier parts."""
    if spent is None or merging.usage is None:
        return spent if merging.usage is None else Spent(merging.usage, "")
    return replace(spent, usage=spent.usage + merging.usage)


def fail_merge(state: State, error: IkigaiError, now: int) -> Step:
    """Return the step that ends a merge with an error, which the caller, or the call of the model, gets."""
    merging, held = state.merging, isinstance(state.hold, Held)
    assert merging is not None  # in this phase
    after = state_behind(state)
    if held:
        after = replace(after, hold=None)
    if merging.call is not None:
        return refuse(after, merging.call.id, str(error), now)
    effects = (Answer(merging.caller, error),)
    return Step(after, LogUnit(state.uuid, ()) if held else None, effects)


def text_of(source: MergeSource, how: str, positions: Sequence[int]) -> str:
    """Return the text of an agent that a merge copies; empty for a summary, which a model must write.

    Raises:
        TurnOpen: a turn of the agent is open.
        AlreadyMerged: the agent has said nothing since it was last merged.
        NothingToMerge: the agent has said nothing of that kind.
        BadInput: there is no message of the agent at a position, or the message has no text.
    """
    if source.in_turn:
        raise TurnOpen(f"A turn of agent {source.called} is open: merge it when that is over.", source.agent)
    news = [message for message in source.messages if message.id > source.since and _quotation(message)]
    if source.merged and not news:
        refusal = f"Agent {source.called} was merged at message {source.merged}, and has said nothing since."
        raise AlreadyMerged(refusal, source.agent)
    match how:
        case "pick":
            return _picked(source, positions)
        case "summary" if news:
            return ""
        case "result" if text := source.result.strip() or _latest_answer(news):
            return text
    refusal = f"Agent {source.called} has given no {'answer' if how == RESULT else 'word'} since it was forked."
    raise NothingToMerge(f"{refusal} Nothing was changed.", source.agent)


def asked_agent(state: State, view: View) -> State:
    """Return the state from which the request for the child's summary is made. The merging agent's budget pays.

    Args:
        state: the state of the agent that merges.
        view: the view of the child's history at its head.
    """
    merging = state.merging
    assert merging is not None  # in this phase
    assert merging.source is not None
    source = merging.source
    return State(source.agent, source.head, view=view, request=state.request, hold=state.hold, merging=merging)


def talk_behind(state: State) -> tuple[Message, ...]:
    """Return the messages that follow the history in a request for a summary. They are in no log.

    They are the instruction, then unusable answers of the model with the objections to them.
    """
    merging = state.merging
    if merging is None:
        return compaction.side_talk(state)
    assert merging.source is not None  # at that point
    asked: PendingMessage = (Kind.USER, report_instruction(merging.source, merging.part), NO_DATA)
    return messages_of(state.uuid, state.head, 0, (asked, *merging.talk))


def report_instruction(source: MergeSource, part: ReadPart | None = None) -> str:
    """Return the prompt that asks for a summary of an agent's work, or of a part of it."""
    shown = source.messages if part is None else part.messages
    first = next((message for message in shown if message.id > source.since and message.kind == Kind.USER), None)
    begins = " ".join(first.content.split())[:80] if first is not None else ""
    lines = [_INSTRUCTION.format(since=f" since the prompt that begins with “{begins}”" if begins else "")]
    if part is not None and part.notes:
        lines.append(f"Your notes of what came before that, which these must hold, too:\n\n{part.notes}")
    if part is not None and part.rest:
        lines.append("You will be shown later what came then.")
    return "\n".join(lines)


def _write(state: State, text: str, further: dict[str, Any], now: int) -> Step:
    """Return the step that writes the merge: its row, its message, and in a turn the result of the call."""
    merging, source = state.merging, state.merging.source if state.merging is not None else None
    assert merging is not None  # in this phase
    assert source is not None
    data = {
        "from": source.agent,
        **({"name": source.name} if source.name else {}),
        "head": source.head,
        "since": source.since,
        "how": merging.how,
        **({"positions": list(merging.positions)} if merging.positions else {}),
        **({"documents": [document.as_data() for document in source.documents]} if source.documents else {}),
        **further,
    }
    facts = {
        "position": state.head + (1 if merging.call is None else 2),
        "head": source.head,
        "text": text,
        "documents": [document.as_data() for document in source.documents],
        "usage": further.get("usage"),
    }
    drafts: list[PendingMessage] = [(Kind.MERGE, text, data)]
    if merging.call is not None:
        result = json.dumps(facts) if merging.for_code else f"Merged: what {source.called} has said follows."
        drafts.insert(0, (Kind.TOOL_RESULT, result, merging.call.data))
    messages = messages_of(state.uuid, state.head, now, tuple(drafts))
    calls = state.calls if merging.call is None else progress(state.calls, (merging.call.id,), Progress.DONE)
    after = advance(state_behind(state), messages, hold=None, calls=calls)
    entry = MergeEntry(source.agent, source.head, messages[-1].id, now)
    asks = merging.call is not None and asks_next(after)
    effects = (Answer(merging.caller, facts),) if merging.call is None else ()
    return Step(after, LogUnit(state.uuid, messages, merged=entry, asks=asks), effects, merging.caller)


def _latest_answer(news: Sequence[Message]) -> str:
    answers = (message.content for message in reversed(news) if message.kind in (Kind.ASSISTANT, Kind.OUTPUT))
    return next((text for text in answers if text.strip()), "")


def _picked(source: MergeSource, positions: Sequence[int]) -> str:
    own = {message.id: message for message in source.messages}
    quoted = []
    for position in positions:
        text = _quotation(own[position]) if position in own else ""
        if not text:
            can = [message.id for message in source.messages if _quotation(message)]
            known = f"{', '.join(map(str, can[:20]))}{' …' if len(can) > 20 else ''}" if can else "none"
            raise BadInput(
                f"Message {position} of agent {source.called} cannot be picked: it is none of those that it alone has, "
                f"or has no text. Those that can be: {known}."
            )
        quoted.append(text)
    return "\n\n".join(quoted)


def _quotation(message: Message) -> str:
    """Return a message as a merge quotes it: position, role and text; empty when there is nothing to quote."""
    if message.kind not in _QUOTED:
        return ""
    words = [message.content.strip(), *(f"[calls {call.name}]" for call in calls_in(message))]
    text = "\n".join(word for word in words if word)
    role = _ROLES.get(message.kind, message.kind)
    return f"[{message.id}, {role}]\n{text}" if text else ""
