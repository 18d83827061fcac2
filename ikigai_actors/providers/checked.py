"""A provider's answer, checked once: what passes here can be stored, sent again and shown.

    checked_reply(await provider.respond(request, on_delta))

Types are hints to Python, so a provider, or a function that stands in for one, may answer with anything. Every answer
passes here before the runtime works with it. An answer that cannot be used is the provider's error, which names the
field.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn

from ikigai_actors.frozen import replace
from ikigai_actors.providers.base import Delta, KeptReply, Reply, Spent, ToolCall, Usage
from ikigai_actors.providers.token_counts import MOST_TOKENS
from ikigai_actors.text import storable

_DEEPEST = 100
"""The deepest nesting of lists and dicts in a reply."""

_LARGEST = 10_000
"""Bits of a whole number: above about 14,000 Python refuses to write it in decimal."""


class NoReply(TypeError):
    """Raised if the answer of a provider is no valid `Reply`. The provider is not asked again."""


def checked_reply(value: object) -> Reply:
    """Return a provider's answer, after checking all its fields.

    Args:
        value: the result of ``respond``.

    Returns:
        The reply: its text can be stored, and its calls and blocks are tuples.

    Raises:
        NoReply: the value is no reply. The message names the field, the expected value and the actual one.
    """
    if not isinstance(value, Reply):
        raise NoReply(f"Expected respond() to return a Reply, got {_shown(value)}.")
    for name in ("text", "stop_reason", "model"):
        if not isinstance(getattr(value, name), str):
            _refuse(name, "text", getattr(value, name))
    if not isinstance(value.batched, bool):
        _refuse("batched", "True or False", value.batched)
    for name in ("tool_calls", "blocks"):
        if not isinstance(getattr(value, name), tuple | list):
            _refuse(name, "a tuple", getattr(value, name))
    for number, call in enumerate(value.tool_calls):
        _check_call(f"tool_calls[{number}]", call)
    for number, block in enumerate(value.blocks):
        check_block(f"blocks[{number}]", block)
    if value.usage is not None:
        _check_usage("usage", value.usage, "a Reply")
    used = [block["name"] for block in value.blocks if block["type"] == "tool_use"]
    if value.blocks and value.tool_calls and used != [call.name for call in value.tool_calls]:
        named = [call.name for call in value.tool_calls]
        raise NoReply(f"Expected the blocks of a Reply to hold the calls {named} that tool_calls names, got {used}.")
    return replace(
        value,
        text=storable(value.text),
        stop_reason=storable(value.stop_reason),
        model=storable(value.model),
        tool_calls=tuple(value.tool_calls),
        blocks=tuple(value.blocks),
    )


def check_block(where: str, block: object) -> None:
    """Raise `NoReply` unless ``block`` is a content block; ``where`` names it in the error."""
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        _refuse(where, "a content block: a dict with a 'type'", block)
    if block["type"] == "text" and not isinstance(block.get("text"), str):
        _refuse(f"{where}['text']", "text", block.get("text"))
    if block["type"] == "tool_use":
        _check_use(where, block.get("name"), block.get("input"), block.get("id", ""), "{0}[{1!r}]")
    _check_json(where, dict(block))


def checked_delta(value: object) -> Delta:
    """Return a delta, after checking all its fields. Raises `NoReply`, which names the field."""
    if not isinstance(value, Delta):
        raise NoReply(f"Expected a Delta, got {_shown(value)}.")
    for name in ("text", "kind"):
        if not isinstance(getattr(value, name), str):
            _refuse(name, "text", getattr(value, name), "a Delta")
    if value.kept is not None:
        _check_kept(value.kept)
    if value.spent is None:
        return value
    if not isinstance(value.spent, Spent):
        _refuse("spent", "Spent(usage, model) or None", value.spent, "a Delta")
    if not isinstance(value.spent.model, str):
        _refuse("spent.model", "text", value.spent.model, "a Delta")
    _check_usage("spent.usage", value.spent.usage, "a Delta")
    return replace(value, spent=replace(value.spent, model=storable(value.spent.model)))


def _check_kept(kept: object) -> None:
    if not (isinstance(kept, KeptReply) and isinstance(kept.id, str) and kept.id and isinstance(kept.after, int)):
        _refuse("kept", "KeptReply(id, after) or None", kept, "a Delta")
    if storable(kept.id) != kept.id:
        _refuse("kept.id", "text that can be stored", kept.id, "a Delta")


def _check_call(where: str, call: object) -> None:
    if not isinstance(call, ToolCall):
        _refuse(where, "ToolCall(name, input)", call)
    _check_use(where, call.name, call.input, call.id, "{0}.{1}")
    _check_json(f"{where}.input", dict(call.input))


def _check_use(where: str, name: object, arguments: object, call_id: object, path: str) -> None:
    if not isinstance(name, str):
        _refuse(path.format(where, "name"), "text", name)
    if not isinstance(arguments, Mapping):
        _refuse(path.format(where, "input"), "a dict", arguments)
    if not isinstance(call_id, str):
        _refuse(path.format(where, "id"), "text", call_id)


def _check_usage(where: str, usage: object, of: str) -> None:
    if not isinstance(usage, Usage):
        _refuse(where, "a Usage", usage, of)
    for field in fields(Usage):
        count: object = getattr(usage, field.name)
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_TOKENS:
            _refuse(f"{where}.{field.name}", f"a number of tokens up to {MOST_TOKENS:,}", count, of)


def _check_json(where: str, value: object, depth: int = 0) -> None:
    """Raise `NoReply` unless ``value`` can be written as JSON and read again."""
    if depth > _DEEPEST:
        raise NoReply(f"Expected {where} of a Reply to be nested {_DEEPEST} deep at most.")
    match value:
        case None | bool() | float() | str():
            pass
        case int():
            if value.bit_length() > _LARGEST:
                raise NoReply(f"Expected {where} of a Reply to be of {_LARGEST} bits at most.")
        case dict():
            for key, part in value.items():
                if not isinstance(key, str):
                    _refuse(f"the keys of {where}", "text", key)
                _check_json(f"{where}[{key!r}]", part, depth + 1)
        case list() | tuple():
            for number, part in enumerate(value):
                _check_json(f"{where}[{number}]", part, depth + 1)
        case _:
            _refuse(where, "JSON (text, numbers, true, false, null, lists, dicts)", value)


def _refuse(where: str, expected: str, got: Any, of: str = "a Reply") -> NoReturn:
    raise NoReply(f"Expected {where} of {of} to be {expected}, got {_shown(got)}.")


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # other people's code
        text = "something"
    return f"{text if len(text) <= 200 else text[:200] + '…'} (type={type(value).__name__})"
