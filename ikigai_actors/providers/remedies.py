"""Error texts for people: why a service gave no reply, and what to do. Pure."""

import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

from ikigai_actors.providers.base import Request
from ikigai_actors.providers.openai_parts import own_names


class Settings(NamedTuple):
    """The names of a service's settings, as error texts show them."""

    key: str
    """Of its key, as ``ANTHROPIC_API_KEY``."""
    address: str
    """Of its address, as ``ANTHROPIC_BASE_URL``."""


_OVERLOADED = "The service is overloaded or failing: wait, then /resume, or resume()"
_REMEDIES = {
    400: "The request does not suit the model: check the agent's settings, or take the prompt back: /undo, or undo()",
    401: "The key is not accepted: check {key}",
    402: "The account cannot pay: check its billing",
    403: "The key may not do this: check its workspace and the agent's model",
    404: "There is no such model or address: check the agent's model and {address}",
    408: "It took too long: /resume, or resume(), asks again",
    413: "The request is too large: summarise it (/compact, compact()), or take the prompt back (/undo, undo())",
    422: "The request does not suit the model: check the agent's settings, or take the prompt back: /undo, or undo()",
    429: "The rate limit is reached: wait, then /resume, or resume(); fewer agents at once help",
}
_TOO_LONG = re.compile(
    r"too (long|large|many tokens)|context (window|length|limit|size)|exceeds? .*(context|tokens|maximum)"
)
"""Texts by which services say that a request is longer than the model's window."""
_OF_A_TOOL = re.compile(r"\btools[.\[](?P<place>\d+)|\bfunction '(?P<name>[^']+)'")
"""A pattern of how services name a refused tool: by its place in the request, or by its name."""
_ATTACHED = re.compile(r"\b(image|picture|document|pdf|media|vision|audio)", re.IGNORECASE)
"""Words that occur in services' refusals of an attachment, whatever the rest of their texts."""
_REFUSE_ATTACHED = {400, 404, 413, 415, 422, 500}
"""The statuses with which services refuse an attachment."""
_OF_ATTACHED = (
    "The model does not take a picture or document of the conversation: take back the prompt that brought it and all "
    "after it (/undo, undo(), once for each), choose another model, or have a longer history summarised (/compact, "
    "compact()), which sends words alone"
)
_LONGEST = 10_000
"""The highest number that a text about a wait contains, in whichever unit."""
_PAGE = 400
"""The number of characters of an error page that an error text quotes."""
_SHOWN = 40
"""The number of first characters of a prompt that an error text quotes to identify it."""


def refused(
    status: int, said: str, details: Sequence[str], request: Request, settings: Settings, suspected: str
) -> str:
    """Return the error text for an error status.

    Args:
        status: The HTTP status; for an error event in the stream, the equivalent status.
        said: the service's message.
        details: further facts in short: the status, its code, the request's id.
        settings: the names of the service's settings.
        suspected: the likely reason if an address does not answer (`address.suspects`).
    """
    remedy = _OVERLOADED if status >= 500 else _REMEDIES.get(status, "The API refused").format(**settings._asdict())
    if status in (400, 422) and (tool := _refused_tool(f"{said} {' '.join(details)}", request)) is not None:
        remedy = _without_tool(tool, request)
    elif request.blobs and status in _REFUSE_ATTACHED and _ATTACHED.search(said):
        remedy = _OF_ATTACHED
    elif status == 413 or (status == 400 and _TOO_LONG.search(said)):
        remedy = _too_long(request)
    text = f"{remedy}. The API said: {said} ({', '.join(details)})"
    return f"{text}.{suspected}" if status == HTTPStatus.NOT_FOUND and suspected else text


def quoted_page(text: str) -> str:
    """Return the beginning of a page that came in place of an error, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _PAGE else f"{line[:_PAGE]}…"


def asked_to_wait(seconds: float | None) -> str:
    """Return a sentence that says for how long the service asks to wait; empty for None."""
    if not seconds:
        return ""
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            duration = f"{seconds / unit:,.0f} {name}" if seconds < _LONGEST * unit else "for longer than anybody waits"
            return f" It asks to wait {duration}."
    return f" It asks to wait {math.ceil(seconds)} s."


def late(settings: Settings, suspected: str) -> str:
    """Return the error text for a service that did not answer in time."""
    return (
        f"The API did not answer in time: check the network and {settings.address}, then /resume, or resume()."
        f"{suspected}"
    )


def unreachable(why: object, settings: Settings, suspected: str) -> str:
    """Return the error text for an address to which no connection can be made."""
    return f"The API cannot be reached ({why}): check the network and {settings.address}.{suspected}"


def no_server(got: object, check: str, suspected: str) -> str:
    """Return the error text for an address that answers, but is no service of models."""
    return f"The address does not answer as a server of models ({got}): check {check}.{suspected}"


def half_a_character(error: UnicodeError) -> str:
    """Return the error text for a request that cannot be encoded, because a text has half of a character."""
    half = f"The request holds half of a character, which cannot be sent ({error})"
    return f"{half}: take the prompt back (/undo, undo())."


def garbled(what: object) -> str:
    """Return the error text for a reply that does not follow the protocol."""
    return f"The reply cannot be understood: {what}. /resume, or resume(), asks again."


def half_a_call(name: str, why: str, max_tokens: object, cut_by_budget: bool) -> str:
    """Return the error text for a reply that ended within the arguments of a call."""
    ended = f"The reply ended ({why}) in the middle of a call of {name!r}"
    if cut_by_budget:
        return (
            f"{ended}: a strict budget had {max_tokens} tokens left for it. /budget shows it, and +AMOUNT or grant() "
            "gives more; then /resume, or resume(), asks again."
        )
    return f"{ended}: raise the setting max_tokens (now {max_tokens}), or prompt for smaller steps."


def _refused_tool(said: str, request: Request) -> str | None:
    """Return the name of the tool that a refusal is about; None if it is about no tool."""
    names = own_names(request.tools)
    by_place = dict(enumerate(names.values()))
    for match in _OF_A_TOOL.finditer(said):
        name = names.get(match["name"]) if match["place"] is None else by_place.get(int(match["place"]))
        if name is not None:
            return name
    return None


def _without_tool(name: str, request: Request) -> str:
    if request.output is not None and request.output["name"] == name:
        return "The service refuses the schema of the output that was asked for: ask for a simpler type"
    return (
        f"The service refuses the tool {name!r}: name all others in the setting tools (/set tools, "
        "configure(tools=...)), or open the system without it"
    )


def _too_long(request: Request) -> str:
    """Return the error text for a request that is too long: because of its latest prompt, or of the history."""
    whole = sum(_characters(message["content"]) for message in request.messages)
    prompt = next(
        (block["text"] for block in reversed(request.messages[-1]["content"]) if block.get("type") == "text"), ""
    )
    begins = prompt if len(prompt) <= _SHOWN else f"{prompt[:_SHOWN]}…"
    named = f"The prompt {begins!r} ({len(prompt):,} of {whole:,} characters)"
    if 2 * len(prompt) >= whole:
        return f"{named} is too long for the model: take it back (/undo, undo()), and say it in parts"
    ways = "summarise it (/compact, compact()), begin again (/clear, clear()), or go back (/undo, undo())"
    return f"The history is too long for the model: {ways}. {named} is the latest"


def _characters(content: object) -> int:
    match content:
        case str():
            return len(content)
        case Mapping():
            return sum(_characters(part) for key, part in content.items() if key != "type")
        case list() | tuple():
            return sum(_characters(part) for part in content)
    return 0
