"""The forms that the data of messages must have, where the runtime would fail on other data.

A database may have been edited. Data of another form are damage, like a body that does not parse. The damage is found
when the message is read, so no later code meets it. A part may be missing, and an unknown part is left alone, since a
newer version may have written it. Settings are not checked here: a further message can correct a wrong setting, so it
is an error of the prompt (see `ikigai_actors.records.messages.settings`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from ikigai_actors.records.agents.labels import are_labels

Data = Mapping[str, Any]

Wrong = Iterator[tuple[str, str]]
"""The name of a part that does not fit, with the expected form."""

Form = Callable[[Data], Wrong]

ASKER = "asker"
"""The key in a prompt's data that has the uuid of the program that asks."""

LARGEST_NUMBER = 2**53
"""The largest whole number in a message, which every JSON program reads exactly."""

_YEAR_10000 = 253_402_300_800_000
"""The year 10,000, in milliseconds since 1970. Later times cannot be shown."""


def problem_of(form: Form | None, data: Data) -> str | None:
    """Return the fault of data that must have this form, or None."""
    for name, expected in form(data) if form else ():
        return f"expected its {name} to be {expected}, got {data.get(name)!r}"
    return None


def reply_form(data: Data) -> Wrong:
    """Check the data of a reply."""
    blocks, calls = data.get("blocks"), data.get("tool_calls")
    if blocks is not None and not (_are_objects(blocks) and all(map(_is_block, blocks))):
        yield "blocks", "a list of objects, each with a type, and with what blocks of its type have"
    if calls is not None and not (_are_objects(calls) and all(map(_is_call, calls))):
        yield "tool_calls", "a list of objects, each with name, input and id"
    for name in ("model", "stop_reason"):
        if not isinstance(data.get(name, ""), str):
            yield name, "text"
    yield from spending_form(data)


def prompt_form(data: Data) -> Wrong:
    """Check the data of a prompt or steering message, which may have attachments and ask for a typed value."""
    yield from _attached_form(data)
    if data.get("steer", True) not in (True, "now"):
        yield "steer", 'true or "now"'
    if not isinstance(data.get("sender", ""), str) or not isinstance(data.get("name", ""), str):
        yield "sender", "the uuid of an agent, with its name"
    if not isinstance(data.get(ASKER, ""), str):
        yield ASKER, "the uuid of an agent"
    if not isinstance(data.get("principal", ""), str):
        yield "principal", "the id of a principal"
    for name in ("mail", "turn"):
        if not _is_whole(data.get(name, 0)):
            yield name, "a whole number"
    yield from birth_form(data)
    if "labels" in data and not are_labels(data["labels"]):
        yield "labels", "an object of texts"
    skills = data.get("skills")
    if skills is not None and not (_are_objects(skills) and all(map(is_skill_text, skills))):
        yield "skills", "a list of objects, each with name, sha256 and text"


def birth_form(data: Data) -> Wrong:
    """Check the data of a message that may ask for a typed value."""
    output = data.get("output")
    if output is not None and not (isinstance(output, dict) and isinstance(output.get("schema"), dict)):
        yield "output", "an object with a schema"


def call_form(data: Data) -> Wrong:
    """Check the data of a message about a call."""
    yield from _attached_form(data)
    for name in ("tool_use_id", "name"):
        if not isinstance(data.get(name, ""), str):
            yield name, "text"


def start_form(data: Data) -> Wrong:
    """Check the data of the start of a call."""
    yield from call_form(data)
    if data.get("name") != "wait":
        return
    if not _is_whole(data.get("deadline")):
        yield "deadline", "a time in milliseconds"
    agents = data.get("agents")
    if agents is not None and not (isinstance(agents, list) and all(map(_is_awaited, agents))):
        yield "agents", "pairs of a name and a uuid"
    if "turns" in data and not (_are_turns(data["turns"]) and _is_count(data.get("need"))):
        yield "turns", "pairs of a uuid and a number, and how many of them are enough"


def output_form(data: Data) -> Wrong:
    """Check the data of a message with the value that ends a typed turn."""
    if "output" not in data:
        yield "output", "there"
    yield from spending_form(data)


def mail_form(data: Data) -> Wrong:
    """Check the data of a notice about the mailbox."""
    for name in ("unread", "last"):
        if not _is_whole(data.get(name, 0)):
            yield name, "a whole number"


def merge_form(data: Data) -> Wrong:
    """Check the data of a merge."""
    if not isinstance(data.get("from", ""), str) or not isinstance(data.get("name") or "", str):
        yield "from", "the uuid of an agent, with its name"
    for name in ("head", "since"):
        if not _is_whole(data.get(name, 0)):
            yield name, "a position"
    positions, documents = data.get("positions"), data.get("documents")
    if positions is not None and not (isinstance(positions, list) and all(map(_is_whole, positions))):
        yield "positions", "a list of positions"
    if documents is not None and not (_are_objects(documents) and all(map(_is_version, documents))):
        yield "documents", "a list of objects, each with path and version"
    yield from spending_form(data)


def summary_form(data: Data) -> Wrong:
    """Check the data of a summary."""
    for name in ("keep_from", "prompt", "elide"):
        if not _is_whole(data.get(name, 0)):
            yield name, "a position"
    if not isinstance(data.get("name") or "", str):
        yield "name", "text"
    words = data.get("words")
    if words is not None and not (_are_objects(words) and all(map(_is_word, words))):
        yield "words", "a list of objects, each with a text"
    skills = data.get("skills")
    if skills is not None and not (_are_objects(skills) and all(map(_is_kept_skill, skills))):
        yield "skills", "a list of objects, each with name, sha256, text and message"
    per_byte = data.get("tokens_per_byte", 0.0)
    if not (isinstance(per_byte, float) and 0 <= per_byte <= 1):
        yield "tokens_per_byte", "a number below 1"
    yield from spending_form(data)


def is_skill_text(entry: Data) -> bool:
    """Return whether a value is the text of a skill beside a prompt."""
    return all(isinstance(entry.get(name), str) for name in ("name", "sha256", "text"))


def _is_kept_skill(skill: Data) -> bool:
    return is_skill_text(skill) and _is_count(skill.get("message"))


def uncompact_form(data: Data) -> Wrong:
    """Check the data of an uncompact."""
    if not _is_whole(data.get("summary", 0)):
        yield "summary", "a position"


def retry_form(data: Data) -> Wrong:
    """Check the data of a message about a request that is sent again."""
    until = data.get("until", 0)
    if not (_is_whole(until) and 0 <= until < _YEAR_10000):
        yield "until", "milliseconds since 1970"
    if not isinstance(data.get("service", ""), str):
        yield "service", "text"
    yield from spending_form(data)


def spending_form(data: Data) -> Wrong:
    """Check the cost of a request in the data of a message."""
    usage = data.get("usage")
    if usage is not None and not (isinstance(usage, dict) and _are_counts(usage.values())):
        yield "usage", f"an object of whole numbers from 0 to {LARGEST_NUMBER:,}"
    if not isinstance(data.get("made_by", ""), str):
        yield "made_by", "text"


def are_references(value: object) -> bool:
    """Return whether a value is a list of references to attachments."""
    return _are_objects(value) and all(map(_is_reference, value))


def _attached_form(data: Data) -> Wrong:
    attached = data.get("attached")
    if attached is not None and not are_references(attached):
        yield "attached", "a list of objects, each with sha256, media, size and name"


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and -LARGEST_NUMBER <= value <= LARGEST_NUMBER


def _is_count(value: object) -> bool:
    return _are_counts((value,))


def _are_counts(values: Iterable[object]) -> bool:
    """Return whether all values are whole numbers from 0 on. Fast, since a replay checks every reply with it."""
    return all(type(value) is int and 0 <= value <= LARGEST_NUMBER for value in values)


def _is_block(value: Data) -> bool:
    match value.get("type"):
        case "text":
            return isinstance(value.get("text", ""), str)
        case "tool_use":
            return _is_call(value)
        case kind:
            return not isinstance(kind, list | dict)


def _is_call(value: Data) -> bool:
    texts = all(isinstance(value.get(name) or "", str) for name in ("name", "id"))
    return texts and isinstance(value.get("input") or {}, dict)


def _are_objects(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(element, dict) for element in value)


def _is_reference(value: Data) -> bool:
    texts = all(isinstance(value.get(name), str) for name in ("sha256", "media", "name"))
    return texts and _is_whole(value.get("size")) and _is_whole(value.get("pixels", 0))


def _is_word(value: Data) -> bool:
    return isinstance(value.get("text"), str) and isinstance(value.get("from", ""), str)


def _is_version(value: Data) -> bool:
    numbers = _is_whole(value.get("version")) and _is_whole(value.get("other", 0))
    return isinstance(value.get("path"), str) and numbers


def _are_turns(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(turn, list) and len(turn) == 2 and isinstance(turn[0], str) and _is_count(turn[1]) for turn in value
    )


def _is_awaited(value: object) -> bool:
    match value:
        case [str(), str() | None]:
            return True
    return False
