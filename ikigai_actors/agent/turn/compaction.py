"""Compaction: the model writes a text, the summary, that replaces older messages. Pure.

    idle, interrupted, or in a turn whose calls all have results, even if the turn's next request waits
      │ Compact, with a plan
      v
    compacting ── Summarise: the history, and a further prompt ──> the model
      │ text ──> one unit with the message ``summary``, then the agent goes on as before
      │ calls, or a truncated answer: the model is asked once more; the calls are denied, and not in the log
      └ no text, an error, INT: the agent goes on as before; the caller of `Compact` gets the reason

A history that is too long for its model is summarised in parts, the oldest first, each of whole steps and with the
summary of the parts before it. Each part is a separate ``summary``: after a crash or INT the finished parts stay.
The caller gets the answer when all parts are written. A request that waits for the summary is sent as soon as it fits.
If a single step is too long for the model, a digest replaces it.

If it is enough to show long results by reference, a ``summary`` message without a text is written, and no model is
asked (`ikigai_actors.agent.turn.elision`). A model may ask for a summary by a call; the summary is made before the next
step.

The questions and answers for a summary are in no log. A crash before the unit is committed leaves nothing of them; a
crash after it leaves the summary. Messages that are appended meanwhile come after the planned part, so the plan stays
valid. Forks are made at once, and inherit the history without the summary.

Before each request for a summary, a unit reserves its highest cost, and frees what was reserved for the request of the
turn. If a budget has no room, the summary is refused rather than delayed. A request that cannot be sent without a
summary is then sent after a digest, and any other request as it is. After a crash the reserved amount counts as spent.
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.found_tools import FOUND_NAMES
from ikigai_actors.agent.turn.plan import LEAST_FREED, Elision, SummaryPlan
from ikigai_actors.agent.turn.skills import data_of_kept
from ikigai_actors.agent.turn.state import (
    NOT_ASKED,
    Answer,
    Compaction,
    Effect,
    Phase,
    PlanPart,
    RequestModel,
    State,
    Step,
    Summarise,
)
from ikigai_actors.agent.turn.steps import PendingMessage, advance, between_steps, messages_of, write_messages
from ikigai_actors.agent.turn.tokens import tokens_in
from ikigai_actors.errors import BadInput, IkigaiError, NothingToCompact, NothingToUncompact, ProviderError
from ikigai_actors.frozen import NO_DATA, replace
from ikigai_actors.providers.base import CUT_BY_BUDGET, REFUSAL, SUMMARISE, Reply, Spent
from ikigai_actors.providers.too_long import too_long
from ikigai_actors.records.budgets.amounts import Held
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind, Message, new_message
from ikigai_actors.records.messages.replies import calls_in, reply_message_data, spent_data
from ikigai_actors.text import storable

MOST_ATTEMPTS = 3
"""The most times that the model is asked for one summary. An answer with calls, or one that was cut, leads to another
attempt.
"""
LONGEST_PART = 0.9
"""A summary that is longer than this part of the replaced text is refused."""
ANSWER_TOKENS = 4_096
"""The most tokens of a summary."""

MOST_SQUEEZED = 8
"""The most summaries in a row without a reply. Each covers more of a history that is too long to be read at once."""
MOST_PUT_OFF = 3
"""The most of these summaries before a service has refused the request."""
PERSON, MODEL, AUTO, REFUSED = "person", "model", "auto", "refusal"
"""The origin of a request for a summary: a person; a call of the model; or the runtime, because a request came near the
window, or was refused.
"""

_INSTRUCTION = f"""{SUMMARISE} You go on with them, and with nothing else of it.
State who you are and what you must do or must never do; decisions, each with its reason; names, numbers, dates and
paths exactly; what was tried and what came of it; what is open, and which agents or people you wait for.
Invent nothing. Answer no prompt, go on with no work, call no tool: write the notes alone, as short as they can be
without losing any of this."""

_DENIED = "No tool runs now: write the notes, as text alone."
_CUT = "That was too long, and was cut. Write the notes again, in half as many words."


def begin_compaction(state: State, event: on.Compact, now: int) -> Step:
    """Begin the summary that a command asks for: ask the model, or write the text that the command has.

    The command is answered with an error if there is nothing to summarise.
    """
    if event.plan is None:
        text = f"Agent {state.called} has too short a history for a summary. Nothing was changed."
        return Step(state, effects=(Answer(event.caller, NothingToCompact(text, state.uuid)),))
    unit = holding(state)
    if state.phase in NOT_ASKED:  # the request that waits is another one after the summary
        unit = replace(unit, unpaused=state.phase is Phase.WAITING_FOR_BUDGET)
        state = between_steps(state)
    if event.summary:
        return _write_given(state, event, event.plan, now)
    request = state.request + 1
    compaction = Compaction(event.plan, event.focus, event.caller, back=state.phase)
    after = replace(state, phase=Phase.COMPACTING, request=request, compaction=compaction, hold=None)
    return Step(after, unit, (Summarise(request),), event.caller)


def _write_given(state: State, event: on.Compact, plan: SummaryPlan, now: int) -> Step:
    length = tokens_in(event.summary, plan.tokens_per_byte)
    if length > LONGEST_PART * plan.replaced:
        long = f"The text has about {length} tokens, and replaces about {plan.replaced}: give a shorter one."
        return Step(state, effects=(Answer(event.caller, BadInput(f"{long} Nothing was changed.")),))
    asking = replace(state, compaction=Compaction(plan, "", event.caller, back=state.phase))
    data = {**_cut_of(plan), "how": "given", "by": PERSON, **_sizes_of(plan, length)}
    return _write(asking, storable(event.summary), data, now)


def begin_for_model(state: State, plan: SummaryPlan | None) -> Step:
    """Begin the summary that the model wants by its call ``compact``; do nothing if the history is too short."""
    if plan is None:
        return Step(replace(state, focus=None))
    request = state.request + 1
    compaction = Compaction(plan, state.focus or "", None, Phase.RUNNING_TOOLS, MODEL)
    after = replace(state, phase=Phase.COMPACTING, request=request, compaction=compaction, focus=None, hold=None)
    return Step(after, holding(after), (Summarise(request),))


def begin_automatic(state: State, compaction: Compaction) -> Step:
    """Begin a summary before the next request, because that request is too long, or will soon be."""
    after = replace(_compacting(state, compaction), hold=None)
    return Step(after, holding(after), (Summarise(after.request),))


def _compacting(state: State, compaction: Compaction) -> State:
    return replace(
        state,
        phase=Phase.COMPACTING,
        request=state.request + 1,
        compaction=compaction,
        steps=state.steps - 1,
        calls=(),
        squeezed=state.squeezed + 1,
    )


def ask_for_less(state: State, event: on.SummaryFailed) -> Step:
    """Ask for the summary of a smaller part, because the planned part was too long for the model."""
    return _ask_for_part(state, event.plan)


def ask_next(state: State) -> Step:
    """Ask the agent's next model for the summary. The turn then goes on with that model."""
    request = state.request + 1
    after = replace(state, request=request, passed=state.passed + 1, service_waits=0, hold=None)
    return Step(after, holding(state), (Summarise(request),))


def part_written(state: State, event: on.PartWritten) -> Step:
    """Begin the summary of the next part of the history, or end if the rest is too short for a summary."""
    compaction = state.compaction
    assert compaction is not None  # in this phase
    if event.plan is not None:
        return _ask_for_part(state, event.plan)
    return Step(state_behind(state), effects=answers_of_compaction(state, compaction.written))


def _ask_for_part(state: State, plan: SummaryPlan | None) -> Step:
    compaction = state.compaction
    assert compaction is not None  # in this phase
    assert plan is not None  # as the machine has looked
    request = state.request + 1
    going = replace(compaction, plan=plan, talk=(), attempts=1)
    after = replace(state, request=request, compaction=going, service_waits=0, hold=None)
    return Step(after, holding(state), (Summarise(request),))


def summary_refused(state: State, event: on.SummaryFailed, refused: on.RefusedSummary, now: int) -> Step:
    """Go on without an automatic summary, because no budget has room for it."""
    compaction: Compaction = refused.compaction
    if compaction.must:
        return fail_compaction(_compacting(state, compaction), event.error, now, refused.messages)
    if compaction.by == MODEL:
        return Step(replace(state, focus=None))
    return _let_go(state, compaction.tokens)


def _let_go(state: State, tokens: int) -> Step:
    """Send the request, which has this many tokens, without a summary.

    Later requests are delayed for a summary only if they are much longer.
    """
    left = max(state.squeezed + 1, MOST_PUT_OFF)
    return Step(replace(state, squeezed=left, left_at=tokens), effects=(RequestModel(state.request),))


def window_full(state: State, event: on.WindowFull, now: int, can_recall: bool) -> Step:
    """Shorten a request that comes near the window, if that frees enough; else send it as it is.

    A request that is too long is shortened if that frees anything at all. The size is an estimate, so a request that
    cannot be shortened is sent too, and the service decides.

    ``can_recall``: whether the model has the call ``recall``, which shows the replaced results again.
    """
    plan = event.plan
    if event.elision is not None and can_recall:
        messages = messages_of(state.uuid, state.head, now, (_references(event.elision, AUTO),))
        after = advance(state, messages, squeezed=state.squeezed + 1, left_at=0)
        return Step(after, LogUnit(state.uuid, messages), (RequestModel(state.request),))
    if plan is not None and (event.is_full or plan.replaced >= LEAST_FREED * (plan.replaced + plan.kept)):
        begun = Compaction(plan, "", None, Phase.RUNNING_TOOLS, AUTO, event.tokens, must=event.is_full)
        return begin_automatic(state, begun)
    return _let_go(state, event.tokens)


def _references(elision: Elision, by: str) -> PendingMessage:
    """Return the draft of a ``summary`` without a text: from its position on, references replace long results."""
    data = {"elide": elision.elide, "how": "elide", "by": by, "before": elision.before, "after": elision.after}
    return (Kind.SUMMARY, "", data)


def may_squeeze(state: State, event: on.ReplyFailed) -> bool:
    """Return whether a refused request may be shortened and sent again."""
    off = state.view.settings.get("compact") == "off" or state.squeezed >= MOST_SQUEEZED
    return not off and (event.plan is not None or event.elision is not None)


def squeeze_refused(state: State, event: on.ReplyFailed, now: int, can_recall: bool) -> Step:
    """Shorten a request that was refused. The cost of a reply that was cut is recorded."""
    retry: PendingMessage = (Kind.RETRY, storable(str(event.error)), spent_data(event.spent))
    retries = () if event.spent is None else (retry,)
    if event.elision is not None and (can_recall or event.plan is None):
        messages = messages_of(state.uuid, state.head, now, (*retries, _references(event.elision, REFUSED)))
        request = state.request + 1
        after = advance(state, messages, request=request, squeezed=state.squeezed + 1, left_at=0, hold=None)
        return Step(after, LogUnit(state.uuid, messages, asks=True), (RequestModel(request),))
    assert event.plan is not None  # as it was asked
    step = begin_automatic(state, Compaction(event.plan, "", None, Phase.RUNNING_TOOLS, REFUSED, must=True))
    messages = messages_of(state.uuid, state.head, now, retries)
    return replace(step, state=advance(step.state, messages), unit=replace(holding(state), messages=messages))


def take_summary(state: State, event: on.SummaryReplied, now: int) -> Step:
    """Write the text of the summary; after an unusable answer, ask once more or give up."""
    compaction, reply, text = state.compaction, event.reply, event.reply.text.strip()
    assert compaction is not None  # in this phase
    plan = compaction.plan
    again, wrong = objection_to(reply, compaction.attempts)
    if again:
        request = state.request + 1
        talk = said_again(state, event, compaction.talk, again, now)
        going = replace(compaction, talk=talk, attempts=compaction.attempts + 1)
        after = replace(state, request=request, compaction=going, hold=None)
        return Step(after, holding(state), (Summarise(request),))
    if wrong:
        return fail_compaction(
            state, ProviderError(f"The model gave no summary: its answer was {wrong}. {_left(compaction)}"), now
        )
    length = tokens_in(text, plan.tokens_per_byte)
    if length > LONGEST_PART * plan.replaced:
        complaint = (
            f"The summary would be about as long as the messages that it replaces ({length} of {plan.replaced} tokens)."
        )
        return fail_compaction(state, ProviderError(f"{complaint} {_left(compaction)}"), now)
    spent = Spent(reply.usage, reply.model) if reply.usage is not None else None
    data = {
        **_cut_of(plan),
        "how": "model",
        "by": compaction.by,
        "saw": event.saw,
        **_sizes_of(plan, length),
        "model": event.model,
        **({"focus": compaction.focus} if compaction.focus else NO_DATA),
        **({"name": event.name} if event.name else NO_DATA),
        **spent_data(spent),
    }
    return _write(state, storable(text), data, now)


def fail_compaction(state: State, error: IkigaiError, now: int, first: tuple[Message, ...] = ()) -> Step:
    """Return to the work before a summary that failed. The caller who asked for it gets the error.

    If the next request is too long without a summary, or a step is too long for any model, a digest of the prompts
    replaces the past, after the messages ``first``.
    """
    compaction = state.compaction
    assert compaction is not None  # in this phase
    if compaction.must or (compaction.by in (PERSON, MODEL) and too_long(str(error)) is not None):
        plan = compaction.plan
        sizes = _sizes_of(plan, tokens_in(plan.digest, plan.tokens_per_byte))
        return _write(state, plan.digest, {**_cut_of(plan), "how": "digest", "by": compaction.by, **sizes}, now, first)
    effects = answers_of_compaction(state, error)
    after = replace(state_behind(state), left_at=compaction.tokens or state.left_at)
    if not isinstance(state.hold, Held):
        return Step(after, effects=effects)
    return Step(replace(after, hold=None), LogUnit(state.uuid, ()), effects)  # settles what was held for it


def _left(compaction: Compaction) -> str:
    """Return a sentence for people on the parts of the history that stay summarised after a failure."""
    if compaction.written is None:
        return "Nothing was changed."
    return "The parts before it are summarised; /uncompact, or uncompact(), takes off the latest."


def state_behind(state: State) -> State:
    """Return the state after the end of a compaction or merge: the agent goes on in the phase before it."""
    back = state.side.back if state.side is not None else state.phase
    return replace(state, phase=back, compaction=None, merging=None, service_wait=None, service_waits=0)


def answers_of_compaction(state: State, value: object) -> tuple[Effect, ...]:
    """Return the effects that give ``value`` to the caller of the compaction or merge in progress."""
    side = state.side
    return (Answer(side.caller, value),) if side is not None and side.caller is not None else ()


def take_off_summary(state: State, event: on.Uncompact, now: int) -> Step:
    """Remove the latest summary. The model sees the replaced messages again."""
    lens = state.view.lens
    if lens is None:
        text = f"No summary is in force in the history of agent {state.called}."
        return Step(state, effects=(Answer(event.caller, NothingToUncompact(text, state.uuid)),))
    return write_messages(state, now, (Kind.UNCOMPACT, "", {"summary": lens.id}), caller=event.caller)


def summary_instruction(plan: SummaryPlan, focus: str) -> str:
    """Return the prompt that asks the model for the text of a summary."""
    lines = [_INSTRUCTION]
    if plan.begins:
        lines.append(f"What begins with “{plan.begins}” stays verbatim beside your notes: do not repeat it.")
    if focus:
        lines.append(f"This matters most: {focus}")
    return "\n".join(lines)


def answer_tokens(settings: Mapping[str, Any]) -> int:
    """Return the most tokens of a summary, by the settings: those for the text, and those for thinking."""
    thinking = settings.get("thinking") or {}
    budget = thinking.get("budget_tokens", ANSWER_TOKENS if thinking.get("type") == "adaptive" else 0)
    return ANSWER_TOKENS + int(budget)


def side_talk(state: State) -> tuple[Message, ...]:
    """Return the messages that follow the history in a request for a summary. They are in no log.

    They are the instruction, then unusable answers of the model with the objections to them.
    """
    compaction = state.compaction
    assert compaction is not None  # in this phase
    asked: PendingMessage = (Kind.USER, summary_instruction(compaction.plan, compaction.focus), NO_DATA)
    return messages_of(state.uuid, state.head, 0, (asked, *compaction.talk))


def objection_to(reply: Reply, attempts: int) -> tuple[str, str]:
    """Check that an answer for a summary is a plain text, and return what to object to.

    Returns:
        The objection to send to the model if it may be asked once more, else empty; and the fault in words, empty if
        there is none.
    """
    cut = reply.stop_reason in ("max_tokens", CUT_BY_BUDGET)
    if (reply.tool_calls or cut) and attempts < MOST_ATTEMPTS:
        return _DENIED if reply.tool_calls else _CUT, ""
    if reply.stop_reason == REFUSAL:
        return "", "a refusal"
    if cut and reply.stop_reason == CUT_BY_BUDGET and not reply.tool_calls:
        return "", "cut, as a strict budget has no more tokens left for it (/budget shows it, and grants more)"
    return "", "with calls of tools" if reply.tool_calls else "cut" if cut else "" if reply.text.strip() else "blank"


def said_again(
    state: State, event: on.SummaryReplied, talk: tuple[PendingMessage, ...], text: str, now: int
) -> tuple[PendingMessage, ...]:
    """Return the talk about a text, extended by an unusable answer of the model and the objection to it."""
    data = reply_message_data(event.reply, event.model)
    calls = calls_in(new_message(state.uuid, state.head + 1, Kind.ASSISTANT.value, event.reply.text, data, now))
    denied = ((Kind.TOOL_RESULT, _DENIED, {"tool_use_id": call.id, "is_error": True}) for call in calls)
    answered: tuple[PendingMessage, ...] = (Kind.ASSISTANT, event.reply.text, data), *denied
    return (*talk, *answered, *(() if calls else ((Kind.USER, text, NO_DATA),)))


def holding(state: State) -> LogUnit:
    """Return the unit that settles the last request, and reserves the cost of the next request for a summary."""
    return LogUnit(state.uuid, (), asks=True, may_wait=False)


def _write(state: State, text: str, data: dict[str, object], now: int, first: tuple[Message, ...] = ()) -> Step:
    compaction = state.compaction
    assert compaction is not None  # in this phase
    messages = (*first, *messages_of(state.uuid, state.head + len(first), now, ((Kind.SUMMARY, text, data),)))
    data_of_summary: dict[str, Any] = {
        "position": messages[-1].id,
        **{name: data.get(name) for name in ("before", "after", "usage")},
    }
    if compaction.written is not None:
        usage = _sum(compaction.written["usage"], data_of_summary["usage"])
        data_of_summary = {**data_of_summary, "before": compaction.written["before"], "usage": usage}
    unit = LogUnit(state.uuid, messages)
    if compaction.plan.is_part and compaction.by in (PERSON, MODEL):
        request = state.request + 1
        going = replace(compaction, written=data_of_summary)
        after = advance(state, messages, request=request, compaction=going, hold=None, left_at=0)
        return Step(after, unit, (PlanPart(request),), compaction.caller)
    return Step(
        advance(state_behind(state), messages, hold=None, left_at=0),
        unit,
        answers_of_compaction(state, data_of_summary),
        compaction.caller,
    )


def _cut_of(plan: SummaryPlan) -> dict[str, object]:
    words = {"words": [*plan.words]} if plan.words else {}
    found_names = {FOUND_NAMES: [*plan.found_tools]} if plan.found_tools else {}
    further = {**words, **found_names, **data_of_kept(plan.skills)}
    return {"keep_from": plan.keep_from, "prompt": plan.prompt, "saw": plan.upto, **further}


def _sizes_of(plan: SummaryPlan, length: int) -> dict[str, object]:
    sizes = {"before": plan.replaced + plan.kept, "after": length + plan.kept}
    return {**sizes, "tokens_per_byte": plan.tokens_per_byte}


def _sum(usage: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the tokens of two requests together, in the form of `spent_data`. An uncounted request is ignored."""
    if usage is None or other is None:
        return usage if other is None else other
    return {kind: usage.get(kind, 0) + other.get(kind, 0) for kind in {**usage, **other}}
