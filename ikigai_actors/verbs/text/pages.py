"""Pages about one agent, as text. Pure: data of the library in, lines out."""

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.attachments import name_and_size
from ikigai_actors.providers.base import CUT_BY_BUDGET
from ikigai_actors.records.agents.identity import is_agent_uuid
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.mail.mail import preview
from ikigai_actors.records.messages.messages import ATTACHMENTS_KEY, CONVERSATION, Kind, Message
from ikigai_actors.records.messages.principals import principal_in
from ikigai_actors.records.messages.replies import reply_of
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.words import counted, in_thousands

if TYPE_CHECKING:
    from ikigai_actors.system.context import Context

_BROKE_OFF = "[the reply broke off; asking again]"
_INTERRUPTED = "[interrupted]"
_SILENT_STOPS = frozenset({"end_turn", "stop_sequence", "tool_use", "output"})

_INDENT = " " * 20


NameOf = Callable[[str], str | None]
"""Returns the label of an agent by its uuid; None if unknown."""


def no_name(uuid: str) -> None:
    """Return None: the `NameOf` for a caller that knows no agents."""


class MessageView(NamedTuple):
    """A message as a line of a list, and whether the model is sent it."""

    text: str
    spoken: bool
    """Whether the model is sent the message; other messages are dim."""


class MessageWords(NamedTuple):
    """The text of a message for people, in a list and as a line between answers."""

    entry: str
    """The text beside its kind in a list of messages: one line or several."""
    line: str | None = None
    """The text as a single line between answers; None for a message that is not shown there."""
    rule: bool = False
    """Whether a rule is drawn at the message, because it separates the messages before and after."""


class ForkWords(NamedTuple):
    """The text about a fork. The texts of several forks can be joined on one line."""

    verb: str
    """The verb: ``forked``, or ``inherited:``."""
    what: str
    """The mark before the name, followed by a blank."""
    name: str
    """The name of the other agent."""


def fork_words(message: Message, called: NameOf = no_name) -> ForkWords | None:
    """Return the text for a fork, in the log of the parent or of the child; None for any other message."""
    if message.kind != Kind.FORK or ("child" in message.data and "number" in message.data):  # a trial
        return None
    if "child" in message.data:
        return ForkWords("forked", "", _called(message.data, "child", called))
    return ForkWords(
        "inherited:", f"{counted(message.id - 1, 'message')} from ", _called(message.data, "parent", called)
    )


def history_page(
    messages: Sequence[Message], uuid: str, most: int, command: str, called: NameOf = no_name
) -> list[MessageView]:
    """Return the latest messages of a history, oldest first; ``<`` marks inherited ones.

    ``command`` is the command that shows the whole history.
    """
    left_out = len(messages) - most
    head = [MessageView(f"({left_out} earlier; {command} shows all)", False)] if left_out > 0 else []
    return [*head, *(_entry(message, uuid, called) for message in messages[-most:])]


def _entry(message: Message, uuid: str, called: NameOf) -> MessageView:
    inherited = "<" if message.agent_uuid != uuid else " "
    lines = message_words(message, called).entry.split("\n")
    text = "\n".join([lines[0] + by_whom(message), *(f"{_INDENT}{line}".rstrip() for line in lines[1:])])
    return MessageView(f"{inherited}{message.id:>4}  {message.kind:<11}  {text}", message.kind in CONVERSATION)


def by_whom(message: Message) -> str:
    """Return, in words, the principal that caused a message; empty if unknown."""
    principal = principal_in(message)
    return "" if principal is None else f"  (by {one_line(principal)})"


def message_words(message: Message, called: NameOf = no_name) -> MessageWords:
    """Return the texts of a message, for line mode and the application."""
    data, content = message.data, message.content
    match message.kind:
        case Kind.ASSISTANT if data.get("stop_reason") == "interrupted":
            return MessageWords(f"{content.rstrip()} {_INTERRUPTED}")
        case Kind.ASSISTANT:
            calls = reply_of(message).tool_calls
            lines = [f"{call.name} {json.dumps(dict(call.input), ensure_ascii=False)}" for call in calls]
            return MessageWords("\n".join([content, *lines] if content else lines))
        case Kind.TOOL_CALL:
            return MessageWords(f"{content} started")
        case Kind.TOOL_RESULT:
            return MessageWords("\n".join([f"{data.get('name', 'tool')}: {content}", *attached_lines(message)]))
        case Kind.USER | Kind.STEER | Kind.APPROVAL | Kind.ERROR:
            return MessageWords("\n".join([content, *attached_lines(message)]))
        case Kind.HOOK:
            return MessageWords(content, f"[hook] {one_line(content)}")
        case Kind.CONTEXT:
            return MessageWords(content, f"[{one_line(str(data.get('hook') or 'hook'))} says] {one_line(content)}")
        case Kind.REPAIR:
            return MessageWords(content, f"[asked again] {one_line(content)}")
        case Kind.OUTPUT:
            return MessageWords(content, f"result: {one_line(content)}")
        case Kind.RETRY if "next" in data:
            entry = f"[asking {data['next']} instead] {content}"
            return MessageWords(entry, one_line(entry))
        case Kind.RETRY if "until" in data:
            entry = f"[asking {data.get('service') or 'again'} again at {_clock(data['until'], message)}] {content}"
            return MessageWords(entry, one_line(entry))
        case Kind.RETRY:
            return MessageWords(_BROKE_OFF, _BROKE_OFF)
        case Kind.INTERRUPTED:
            return MessageWords(content, _INTERRUPTED)
        case Kind.CONFIGURE:
            entry = ", ".join(f"{key} = {value!r}" for key, value in data.items())
            return MessageWords(entry, one_line(entry))
        case Kind.CLEAR:
            entry, line = content, "cleared: the history starts over"
        case Kind.MARK:
            entry, line = content or "(no label)", f"mark {content!r}" if content else "mark"
        case Kind.REWIND if "before" in data:
            entry = f"to before the prompt at {data['before']}"
            line = f"took back the prompt at {data['before']}; everything after it, too"
        case Kind.REWIND if content:
            entry, line = f"to mark {content!r}", f"rewound to mark {content!r}"
        case Kind.REWIND:
            entry, line = f"to the mark at {data.get('mark', '?')}", "rewound to the latest mark"
        case Kind.SUMMARY if content:
            span = f"messages up to {data.get('keep_from', 1) - 1}"
            entry, line = f"of {span}: {content}", f"summarised: {span}{_saved(data)}"
        case Kind.SUMMARY:
            span = f"long results before message {data.get('elide', 0)}"
            entry, line = f"by reference: {span}", f"by reference from now on: {span}"
        case Kind.UNCOMPACT:
            summary = f"the summary at {data.get('summary', '?')}"
            entry, line = f"took off {summary}", f"took off {summary}: the messages are back"
        case Kind.MERGE:
            entry, line = _merged(message, called)
        case Kind.OMITTED:
            entry, line = "", "left out: it was cleared before these agents were exported"
        case Kind.FORK if "child" in data and "number" in data:
            trial = f"trial {data['number']}"
            asked = one_line(preview(str(data.get("prompt") or "go on")))
            child = _called(data, "child", called)
            entry, line = f"{trial}, forked {child}: {asked}", f"{trial} ({child}): {asked}"
        case Kind.NOTE if isinstance(data.get("verdicts"), list):
            verdicts = [_verdict(verdict) for verdict in data["verdicts"]]
            entry, line = "\n".join(verdicts) or "no verdict yet", "; ".join(verdicts) or "no verdict yet"
        case Kind.NOTE if isinstance(data.get("terms"), dict):
            entry = f"experiment {json.dumps(data['terms'], ensure_ascii=False)}"
            line = f"experiment: {data['terms'].get('verb')}"
        case Kind.NOTE:
            entry = f"note {json.dumps(dict(data), ensure_ascii=False)}"
            line = entry
        case Kind.FORK:
            fork = fork_words(message, called)
            assert fork is not None  # it is no trial
            line = f"{fork.verb} {fork.what}{fork.name}"
            entry = line if "child" in data else f"forked from {fork.name}"
        case _:
            return MessageWords(content, f"{message.kind}: {one_line(content)}")
    return MessageWords(entry, one_line(line), rule=True)


def attached_lines(message: Message) -> list[str]:
    """Return a line for each attachment of a message: its name, type and size."""
    listed = message.data.get(ATTACHMENTS_KEY) or ()
    return [f"[attached: {one_line(name_and_size(attachment))}]" for attachment in listed]


def _clock(until: int, message: Message) -> str:
    """Return a time after a message as local time, with the date if the day differs."""
    at, written = (datetime.fromtimestamp(each / 1000) for each in (until, message.created_at))
    return f"{at:%H:%M:%S}" if at.date() == written.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def _verdict(said: object) -> str:
    """Return a verdict in the notebook of an experiment as text."""
    match said:
        case [number, None, str(why), *_]:
            return f"trial {number}: not judged {one_line(why)}".rstrip()
        case [number, float() | int() as score, str(why), *_]:
            return f"trial {number}: {score:g} {one_line(why)}".rstrip()
    return json.dumps(said, ensure_ascii=False)


def _called(data: Mapping[str, Any], which: str, called: NameOf) -> str:
    """Return the name of an agent in a message's data; if the agent is unknown, the name that the message contains."""
    uuid = str(data.get(which, "?"))
    name = called(uuid) or data.get("name")
    return str(name or (words_of(uuid) if is_agent_uuid(uuid) else uuid))


def _merged(message: Message, called: NameOf) -> tuple[str, str]:
    """Return the texts about a merge: the full one, and one line."""
    data = message.data
    positions = (
        ", ".join(map(str, data.get("positions") or ())) or f"{data.get('since', 0) + 1}–{data.get('head', '?')}"
    )
    source = f"{_called(data, 'from', called)}, messages {positions}"
    documents = [merged_document(document) for document in data.get("documents") or ()]
    entry = "\n".join([f"of {source}: {message.content}", *documents])
    return entry, "; ".join([f"merged: {source}", *documents])


def merged_document(document: Mapping[str, Any]) -> str:
    """Return a document of a merged branch as text: its path and version, and a conflict."""
    conflict = f", a conflict: somebody else has written version {document['other']}" if document.get("other") else ""
    return f"{document['path']}, version {document['version']}{conflict}"


def _saved(data: Mapping[str, Any]) -> str:
    """Return a text about the tokens that a summary has saved; empty if the number is not stored."""
    before, after = data.get("before"), data.get("after")
    if not isinstance(before, int) or not isinstance(after, int):
        return ""
    return f", {in_thousands(before)} → {in_thousands(after)} tokens (/uncompact brings them back)"


def stop_note(stop_reason: str, empty: bool) -> str | None:
    """Return the note after a reply that stopped for an unusual reason, or is empty; None for others."""
    if stop_reason == "interrupted":
        return _INTERRUPTED
    if stop_reason == CUT_BY_BUDGET:
        return "[the answer ends here: a strict budget has no more tokens for it (/budget)]"
    if stop_reason not in _SILENT_STOPS:
        return f"[the answer ends here: {stop_reason}]"
    return "[an empty answer]" if empty else None


def written(value: object) -> str:
    """Return the value of a setting as a person writes it: text unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def context_page(record: AgentRecord, state: str, context: "Context", called: NameOf) -> list[str]:
    """Return the lines about an agent's context: messages, tokens, settings and marks."""
    settings = context.settings
    others = {key: value for key, value in settings.items() if key not in ("model", "system")}
    rows = {
        "agent": called(record.uuid) or record.short,
        "uuid": record.uuid,
        "state": state,
        "model": settings.get("model", "the default of the process that runs it"),
        "system": textwrap.shorten(str(settings.get("system", "none")), 70, placeholder=" …"),
        "settings": ", ".join(f"{key} = {value!r}" for key, value in others.items()) or None,
        "messages": f"{context.inherited} inherited + {context.own} own in its context",
        "tokens": _tokens(context.usage),
        "window": f"{context.window:,} tokens" if context.window else None,
        "filled": "\n".join(_filled(context)),
        "marks": ", ".join(f"{label or '(no label)'} at {place}" for label, place in context.marks) or "none",
        "ranges": ", ".join(
            f"{_called({'of': stored.agent_uuid}, 'of', called)} {stored.start_id + 1} to {stored.end_id or 'the end'}"
            for stored in context.ranges
        ),
    }
    lines = [f"{title:<9} {text}" for title, text in rows.items() if text is not None]
    return [line for text in lines for line in text.split("\n")]


def _filled(context: "Context") -> Iterator[str]:
    """Yield the lines about the contents of the context window: the sum, and each part with its share."""
    filled = sum(context.parts.values())
    whole = context.window or filled or 1
    yield f"about {filled:,} tokens" + (f", {filled / whole:.0%} of the window" if context.window else "")
    for name, tokens in context.parts.items():
        yield f"{'':9} {name:<8}{tokens:>9,}{tokens / whole:>6.0%}"
    if "tools" not in context.parts:
        yield f"{'':9} and the tools, which only the host knows"


def _tokens(usage: Mapping[str, Any]) -> str:
    counts = [f"{many} {name.removesuffix('_tokens').replace('_', ' ')}" for name, many in usage.items() if many]
    return f"{', '.join(counts)}, as last reported" if counts else "none reported"
