"""Process calls: what the agent performs itself for a call of its model, each as one unit of effect and result.

A crash leaves both or neither, so on resume a call without a result is simply performed. What the store refuses (the
agent to be killed is dead already) is the call's result, as an error.

A ``wait`` is performed in two: the ``tool_call``, which holds who is waited for and until when at most, and the result.
What lies between holds no thread (`ikigai_actors.agent.waits`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ikigai_actors.agent.builtin_calls.mail_and_documents import (
    Awaited,
    CheckMail,
    ListDocuments,
    NameAwaited,
    Noted,
    NoteMail,
    ReadDocument,
    ReadMail,
    SendMail,
    WriteDocument,
)
from ikigai_actors.agent.builtin_calls.schemas import DESCRIPTIONS, LONGEST_WAIT, WAIT_TIMEOUT
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import Call, Progress, progress
from ikigai_actors.agent.turn.fork import fork_by_call
from ikigai_actors.agent.turn.state import BeginWait, ComeBack, Departure, State, Step
from ikigai_actors.agent.turn.steps import advance, end_turn
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.append import Performance
from ikigai_actors.records.identity import check_name
from ikigai_actors.records.mail import Mail
from ikigai_actors.records.messages import NO_DATA, Kind
from ikigai_actors.records.signals import KillByAgent
from ikigai_actors.store.unit import Unit
from ikigai_actors.text import storable
from ikigai_actors.tools.function import LIMIT, cut
from ikigai_actors.tools.policy import CHECK_MAIL, FORK, READ_MAIL, WAIT
from supervisors.causes import Cause

LOOKS = (CHECK_MAIL, READ_MAIL)
"""The calls by which an agent looks at its mailbox."""

_WORDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "string": (str, "text"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "array": (list, "a list of texts"),
}
"""What stands for a type of a schema, and how it is called."""


def problem_of(call: Call) -> str | None:
    """Why a process call cannot be performed as it is, in words that help the model; None when it can."""
    schema = DESCRIPTIONS[call.name]["input_schema"]
    takes = schema["properties"]
    for key, value in call.input.items():
        if key not in takes:
            return f"{call.name} takes {', '.join(takes) or 'no arguments'}; it does not know {key!r}."
        if value is not None and not _fits(value, takes[key]["type"]):
            return f"{call.name} wants {key} to be {_WORDS[takes[key]['type']][1]}, got {value!r}."
    for key in schema.get("required", ()):
        if not call.input.get(key) and (key != "body" or call.input.get(key) is None):
            return f"{call.name} needs {key}."
    try:
        if call.name == FORK and (name := call.input.get("name")):
            check_name(name)
    except BadInput as error:
        return str(error)
    if call.name == WAIT and not 0 <= _timeout(call) <= LONGEST_WAIT:
        return f"wait wants timeout to be 0 to {LONGEST_WAIT:,} seconds, got {call.input['timeout']!r}."
    return None


def perform(state: State, call: Call, fresh: str, now: int, has_shell: bool = False) -> Step:
    """Perform a process call that has no problem.

    Args:
        state: the agent.
        call: one of its model's.
        fresh: a uuid that nobody has, for a child.
        now: milliseconds since 1970.
        has_shell: each agent has a shell of its own.
    """
    match call.name:
        case "fork":
            return fork_by_call(state, call, fresh, now, has_shell)
        case "exit":
            return depart(state, _text(call, "result"), now, call)
        case "wait":
            return _begin_wait(state, call, now)
    act, tell = _act(state.uuid, call, now)
    performance = Performance(state.uuid, state.head + 1, _data(call), now, act, tell)
    notice = 0 if call.name in LOOKS else state.notice
    done = progress(state.calls, (call.id,), Progress.DONE)
    return Step(advance(state, performance.messages, calls=done, notice=notice), performance, call=call.id)


def note_mail(state: State, event: on.NoteMail, now: int) -> Step:
    """Tell an idle agent of its unread mail; refused when there is nothing new to tell."""
    act = NoteMail(state.uuid, event.earlier)
    performance = Performance(state.uuid, state.head + 1, NO_DATA, now, act, _noted, Noted._asdict, Kind.MAIL)
    return Step(advance(state, performance.messages, notice=state.head + 1), performance)


def depart(state: State, result: str, now: int, call: Call | None = None) -> Step:
    """The normal end. A permanent agent closes its turn, and its supervisor brings it back."""
    if not state.standing.permanent:
        return Step(state, Departure(Cause.EXITED, result), call=call.id if call is not None else None)
    drafts = [] if call is None else [(Kind.TOOL_RESULT, "You exited, and were restarted.", _data(call))]
    ended = end_turn(state, now, Reply(result, stop_reason="exit"), *drafts, (Kind.INTERRUPTED, "", {"exit": result}))
    return replace(ended, effects=(*ended.effects, ComeBack()))


def _act(me: str, call: Call, now: int) -> tuple[Unit, Callable[[Any], str]]:
    """What a call does, and how its result tells of it."""
    given = call.input
    path, expect = _text(call, "path"), given.get("expect")
    match call.name:
        case "kill":
            return KillByAgent(
                _text(call, "agent"), me, now, _text(call, "reason"), bool(given.get("cascade"))
            ), _killed
        case "send":
            return SendMail(me, _text(call, "to"), _text(call, "body"), now), _sent
        case "check_mail":
            return CheckMail(me), str
        case "read_mail":
            sender = None if given.get("sender") is None else _text(call, "sender")
            return ReadMail(me, sender, LIMIT, now), str
        case "document_write":
            return WriteDocument(me, path, _text(call, "body"), expect, now), lambda version: f"Version {version}."
        case "document_delete":
            return WriteDocument(me, path, None, expect, now), lambda version: f"Deleted: that is version {version}."
        case "document_read":
            return ReadDocument(path, given.get("version")), cut
        case _:
            return ListDocuments(_text(call, "prefix")), cut


def _begin_wait(state: State, call: Call, now: int) -> Step:
    """The ``tool_call`` of a wait: who is waited for, and until when at most. A crash leaves it, and it goes on."""
    deadline = now + int(_timeout(call) * 1000)
    called = tuple(map(storable, call.input.get("agents") or ()))
    children = bool(call.input.get("children"))
    named = called or children

    def note(awaited: Sequence[Awaited]) -> Mapping[str, Any]:
        return {"deadline": deadline, "agents": [[*one] for one in awaited] if named else None}

    act = NameAwaited(state.uuid, called, children)
    performance = Performance(
        *(state.uuid, state.head + 1, _data(call), now, act, lambda _: call.name), note, Kind.TOOL_CALL
    )
    after = advance(state, performance.messages, calls=progress(state.calls, (call.id,), Progress.RUNNING))
    return Step(after, performance, (BeginWait(state.request, call.id),), call=call.id)


def told_waited(answers: Mapping[str, str], named: bool) -> str:
    """The result of a ``wait``: by agent, as it was called, what it is waited for no more for."""
    if answers:
        return json.dumps(answers, ensure_ascii=False)
    return "You have no children to wait for." if named else "No mail came in that time."


def _timeout(call: Call) -> float:
    given: float | None = call.input.get("timeout")
    return WAIT_TIMEOUT if given is None else given


def _fits(value: object, kind: str) -> bool:
    expected = _WORDS[kind][0]
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, expected) and (
        not isinstance(value, list) or all(isinstance(one, str) and one for one in value)
    )


def _text(call: Call, key: str) -> str:
    return storable(call.input.get(key) or "")


def _data(call: Call) -> dict[str, str]:
    return {"tool_use_id": call.id, "name": call.name}


def _sent(mail: Mail) -> str:
    return f"Sent: mail {mail.id} in the mailbox of {mail.recipient}."


def _noted(noted: Noted) -> str:
    mails = "mail" if noted.unread == 1 else "mails"
    return f"You have {noted.unread} unread {mails}: {CHECK_MAIL} looks at the mailbox, {READ_MAIL} reads."


def _killed(aftermath: object) -> str:
    dead = len(getattr(aftermath, "dead", ()))
    return "Killed." if dead == 1 else f"Killed, and {dead - 1} agents with it."
