"""Cases: the history with which the replay of a turn begins, the recorded turn to compare with, and the records to use.

    turn    the history as recorded before the turn, and its prompt: one case a turn
    log     one case a log. The first turn begins as above; each later turn begins with the replay of the latest turn
            before it that still counted. Turns that were cleared, undone or rewound do not count in the replay either
    step    the history as recorded before each request of the turn: one case a request, whose first reply ends it

A summary contains recorded texts, so after a summary a log goes on from the recorded history. A log also goes on from
there if no replayed message counts any more.

The edit of a prompt is another prompt. The edit of a reply, or of a result, begins before the step of the reply, with a
changed copy of the step; the turn goes on from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ikigai_actors.agent.turn.recorded_words import RecordedWord
from ikigai_actors.behaviour.trials import TrialStart
from ikigai_actors.behaviour.turns import ANSWERED, RecordedCalls, Turn, TurnRequest, record_of, words_again
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.histories import views_of, written_by
from ikigai_actors.records.log.history import View
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.text import check_text

MODES = ("turn", "log", "step")


class ReplayCase(NamedTuple):
    """A recorded turn, or a step of one, that is to be replayed."""

    turn: Turn
    """The recorded turn, or the part of it from where the case begins, that the replay is compared with."""
    start: TrialStart
    after: int | None = None
    """The number of the case whose end this one continues; None to begin from the recorded history."""

    def requests(self) -> tuple[TurnRequest, ...]:
        """Return the requests of the recorded turn that its replay makes again, without failed and interrupted ones."""
        made = (request for request in self.turn.requests if self._known < request.position <= self.turn.end)
        return tuple(request for request in made if request.was_answered)

    def words(self) -> list[RecordedWord]:
        """Return the recorded steering messages that the replay is given."""
        return words_again(self.turn, self.start.at, copied=self._known)

    @property
    def _known(self) -> int:
        """Return the last recorded position that the replay's history contains."""
        return max((data["from"] for _, _, data in self.start.begin), default=self.start.at)

    def record(self) -> RecordedCalls:
        """Return the recorded calls whose results answer the same calls of the replay."""
        return record_of(self.turn.calls)


def cases_of(turns: Sequence[Turn], each: str, edit: Mapping[int, str]) -> list[ReplayCase]:
    """Return the cases for some turns.

    With edits, only the turns that contain an edited message are cases; in mode ``log`` the turns after them are, too.
    Raises `BadInput` when an edit cannot be made.
    """
    if edit and len({turn.agent.uuid for turn in turns}) > 1:
        raise BadInput("Positions are those of one log: edit the turns of one agent.")
    if edit and each == "step":
        raise BadInput("An edit changes what follows, and each='step' replays every request as recorded before it.")
    if each == "step":
        steps = [case for turn in turns for case in _steps(turn)]
        if not steps:
            raise BadInput("None of the turns has a reply, so there is no step to be replayed.")
        return steps
    left = dict(edit)
    cases: list[ReplayCase] = []
    views = _views(turns) if each == "log" else {}
    for turn in turns:
        own = {position: left.pop(position) for position in sorted(left) if turn.opens <= position <= turn.end}
        if edit and not own and not (each == "log" and cases):
            continue
        case = _edited(turn, own) if own else _whole(turn)
        if each == "log" and case.start.prompt is not None:
            case = case._replace(after=_after(turn, cases, views[turn.agent.uuid]))
        cases.append(case)
    if left:
        raise BadInput(f"Position {min(left)} is in none of the turns that are to be replayed.")
    return cases


def _views(turns: Sequence[Turn]) -> dict[str, dict[int, View]]:
    """Return the view of each log before each of its turns, by agent and position."""
    places: dict[str, list[int]] = {}
    for turn in turns:
        places.setdefault(turn.agent.uuid, []).append(turn.opens - 1)
    return {uuid: views_of(turns[0].agent.system, uuid, positions) for uuid, positions in places.items()}


def _after(turn: Turn, cases: Sequence[ReplayCase], views: Mapping[int, View]) -> int | None:
    """Return the number of the case whose replay a turn continues; None to continue the recorded history."""
    head = turn.opens - 1
    view = views[head]
    for place, case in reversed([*enumerate(cases)]):
        earlier = case.turn
        if earlier.agent.uuid == turn.agent.uuid and earlier.opens <= head and view.shows(earlier.opens, head):
            then = views[earlier.opens - 1]
            is_whole = view.shows(earlier.end, head)
            return place if is_whole and then.lens_place == view.lens_place else None
    return None


def _whole(turn: Turn) -> ReplayCase:
    if turn.born_at is not None:
        return ReplayCase(_from(turn, turn.born_at), _going(turn, turn.born_at))
    return ReplayCase(turn, _prompted(turn, turn.prompt or ""))


def _from(turn: Turn, at: int) -> Turn:
    """Return the part of a turn after a position."""
    calls = tuple(call for call in turn.calls if call.position > at)
    return replace(turn, calls=calls, words=tuple(word for word in turn.words if word.position > at))


def _prompted(turn: Turn, prompt: str) -> TrialStart:
    return TrialStart(turn.agent.uuid, turn.opens - 1, prompt, turn.data)


def _steps(turn: Turn) -> list[ReplayCase]:
    cases, replies = [], _replies(turn, _messages(turn))
    for reply in replies:
        calls = tuple(call for call in turn.calls if call.position == reply.id)
        is_last = reply is replies[-1]
        text = turn.text if is_last else reply.content
        how = ANSWERED if is_last and not calls and turn.how == ANSWERED else "open"
        part = replace(turn, calls=calls, end=reply.id, text=text, how=how, words=())
        cases.append(ReplayCase(part, _going(turn, reply.id - 1)))
    return cases


def _edited(turn: Turn, edit: Mapping[int, str]) -> ReplayCase:
    """Return the case in which some messages of a turn are edited."""
    for position, text in edit.items():
        check_text(text, f"edit of {position}")
    if turn.born_at is not None and min(edit) <= turn.born_at:
        raise BadInput(f"Message {min(edit)} came with the birth of the agent: edit messages after {turn.born_at}.")
    if turn.opens in edit:
        if len(edit) > 1:
            raise BadInput("An edit of a prompt changes all that follows it: edit nothing else of its turn.")
        return ReplayCase(turn, _prompted(turn, edit[turn.opens]))
    messages = {message.id: message for message in _messages(turn)}
    for position in edit:
        if messages[position].kind not in (Kind.ASSISTANT, Kind.TOOL_RESULT):
            kind = messages[position].kind
            raise BadInput(f"Message {position} is of kind {kind}: edit a prompt, a reply with calls, or a result.")
    replies = _replies(turn, list(messages.values()))
    reply = max((kept for kept in replies if kept.id <= min(edit)), key=lambda reply: reply.id, default=None)
    if reply is None:
        raise BadInput(f"Message {min(edit)} cannot be gone on from: it was cut off.")
    later = [other.id for other in replies if other.id > reply.id]
    end = min(later, default=turn.end + 1)
    if not reply.calls or max(edit) >= end:
        text = "nothing goes on from it" if not reply.calls else "the edits are of several steps"
        raise BadInput(f"The reply at {reply.id} cannot be gone on from with this edit: {text}.")
    cut = next((call for call in turn.calls if call.position == reply.id and call.result is None), None)
    if cut is not None:
        raise BadInput(f"The reply at {reply.id} cannot be gone on from: its call of {cut.name} has no result.")
    begin = _copies([message for message in messages.values() if reply.id <= message.id < end], edit)
    return ReplayCase(_from(turn, reply.id - 1), _going(turn, reply.id - 1)._replace(begin=begin))


def _going(turn: Turn, at: int) -> TrialStart:
    """Return the start of a trial after a position, which asks for the turn's typed value if the turn needs one."""
    data = {"output": turn.data["output"]} if turn.data.get("output") else {}
    return TrialStart(turn.agent.uuid, at, None, data, go=True)


def _copies(step: Sequence[Message], edit: Mapping[int, str]) -> tuple[tuple[str, str, Mapping[str, Any]], ...]:
    """Return copies of a reply and its results, with edits. The calls keep their ids."""
    ids = [call.id for call in step[0].calls]
    copies: list[tuple[str, str, Mapping[str, Any]]] = []
    for message in step:
        text = edit.get(message.id, message.content)
        data = {**message.data, "from": message.id}
        if message.kind == Kind.ASSISTANT:
            data.pop("usage", None)  # it was paid for once
            copies.append((message.kind, text, {**data, **_calls_with_ids(message, text, iter(ids))}))
        elif message.kind in (Kind.TOOL_RESULT, Kind.STEER):
            copies.append((message.kind, text, data))
    return tuple(copies)


def _calls_with_ids(reply: Message, text: str, ids: Any) -> dict[str, Any]:
    blocks = reply.data.get("blocks")
    if not blocks:
        return {"tool_calls": [{**call, "id": next(ids)} for call in reply.data.get("tool_calls") or ()]}
    if text != reply.content:
        kept = [block for block in blocks if block.get("type") != "text"]
        first_call = next(place for place, block in enumerate(kept) if block.get("type") == "tool_use")
        blocks = [*kept[:first_call], {"type": "text", "text": text}, *kept[first_call:]]
    return {"blocks": [{**block, "id": next(ids)} if block.get("type") == "tool_use" else block for block in blocks]}


def _messages(turn: Turn) -> list[Message]:
    """Read the messages of a turn alone, and return them. Raises `HistoryPruned`."""
    return written_by(turn.agent.system, turn.agent.uuid, turn.opens - 1, turn.end)


def _replies(turn: Turn, messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.is_whole_reply]
