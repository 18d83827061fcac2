"""The model of the soak, behind a server that speaks real HTTP and does not always answer well.

A prompt carries its orders: ``TOKEN to=UUID doc=PATH``. What the model replies depends on its request alone; whether
the server gives it whole, late, cut, or refuses, on chance.
"""

import hashlib
import json
import random
import re
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from tests.kit.messages_server.server import Answer, Ending, MessagesServer, Refuses, Says

KID = "kid-"
"""How the prompt of a child begins that the model forked; such a child forks no further."""
MAIL = "m/"
"""How the model's mails and lines of documents begin; the call's id follows."""

_ORDER = re.compile(r"(\S+) to=(\S+) doc=(\S+)$")
_DOCUMENT = re.compile(r"(\S+): version (\d+), written by .*\n\n")
_NO_DOCUMENT = re.compile(r"There is no document '(\S+)'")


class Order(NamedTuple):
    """What a prompt says."""

    token: str
    to: str
    """Whom mail is for."""
    doc: str
    """The document to write to."""

    def __str__(self) -> str:
        return f"{self.token} to={self.to} doc={self.doc}"


def order_of(text: str) -> Order | None:
    """Read a prompt; None when it is none of ours."""
    match = _ORDER.match(text)
    return Order(*match.groups()) if match else None


def reply(request: Mapping[str, Any]) -> Says:
    """What the model says to a request."""
    order, steps = _place(request["messages"])
    if order is None:
        return Says.text("Nothing was asked.")
    sent = json.dumps(request["messages"], sort_keys=True)
    digest = hashlib.sha256(sent.encode()).hexdigest()
    chance = random.Random(digest)
    if steps >= random.Random(order.token).randrange(4):
        return Says.text(f"done with {order.token}: {'so it is ' * chance.randrange(10)}".rstrip())
    calls = _calls(order, steps, chance, _results(request["messages"][-1]))
    blocks = [{"type": "text", "text": "Let me see."}]
    for number, (name, arguments) in enumerate(calls):
        key = f"{digest[:20]}-{number}"
        values = {
            name: value.replace("KEY", key) if isinstance(value, str) else value for name, value in arguments.items()
        }
        blocks.append({"type": "tool_use", "id": key, "name": name, "input": values})  # type: ignore[dict-item]
    return Says(tuple(blocks), "tool_use")


def _place(messages: list[Mapping[str, Any]]) -> tuple[Order | None, int]:
    """The prompt that the turn answers, and how many replies it has had."""
    replies = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            replies += 1
            continue
        texts = [block["text"] for block in message["content"] if block["type"] == "text"]
        for text in reversed(texts):
            if order := order_of(text):
                return order, replies
        if texts:
            return None, replies
    return None, replies


def _results(message: Mapping[str, Any]) -> list[str]:
    """The texts of the results that a message brings."""
    results: list[str] = []
    for block in message["content"]:
        if block["type"] == "tool_result":
            content = block.get("content", "")
            results += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return results


def _calls(order: Order, steps: int, chance: random.Random, results: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """What a reply asks for. A document that was read is written, with what it said and one line more."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for text in results:
        if match := _DOCUMENT.match(text):
            path, version, body = match[1], int(match[2]), text[match.end() :]
            calls.append(("document_write", {"path": path, "body": f"{body}\n{MAIL}KEY", "expect": version}))
        elif match := _NO_DOCUMENT.match(text):
            calls.append(("document_write", {"path": match[1], "body": f"{MAIL}KEY", "expect": 0}))
    offers: tuple[tuple[str, dict[str, Any], int], ...] = (
        ("once", {"key": "KEY"}, 4),
        ("again", {"key": "KEY"}, 2),
        ("later", {"key": "KEY"}, 2),
        ("send", {"to": order.to, "body": f"{MAIL}KEY"}, 4),
        ("read_mail", {}, 3),
        ("check_mail", {}, 1),
        ("wait", {"timeout": 0.3}, 1),
        ("wait", {"children": True, "timeout": 1.0}, 1),
        ("document_read", {"path": order.doc}, 3),
        ("document_list", {}, 1),
        ("agents", {}, 1),
        ("nobody", {}, 1),
        ("exit", {"result": "gone"}, 1 if order.token.startswith(KID) and steps else 0),
    )
    weights = [weight for *_, weight in offers]
    calls += [(name, arguments) for name, arguments, _ in chance.choices(offers, weights, k=chance.randrange(1, 5))]
    if steps == 0 and not order.token.startswith(KID):
        child = Order(f"{KID}KEY", order.to, order.doc)
        calls += [("fork", {"prompt": str(child)})] * chance.choice((0, 0, 1, 2))
    return calls


class Weather:
    """The server's moods: most requests are answered well."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(seed)

    def __call__(self, request: Mapping[str, Any]) -> Answer:
        """What a request gets."""
        chance = self._chance
        mood = chance.random()
        if mood < 0.06:
            return Refuses(429, "rate_limit_error", "Slow down.", {"retry-after": "0", "retry-after-ms": "200"})
        if mood < 0.07:
            return Refuses(429, "rate_limit_error", "Slow down.", {"retry-after": "1"})
        if mood < 0.10:
            return Refuses(529, "overloaded_error", "Overloaded.")
        if mood < 0.11:
            return Refuses(500, "api_error", "Internal error.")
        said = reply(request)
        ending = Ending.WHOLE
        if mood < 0.17:
            ending = chance.choice((Ending.CUT, Ending.SHORT, Ending.ERROR, Ending.BROKEN_JSON, Ending.BROKEN_EVENT))
        return Says(said.blocks, said.stop_reason, ending, delay=chance.choice((0.0, 0.0, 0.0, 0.005, 0.03)))


def serve(seed: str, conductor: Connection) -> None:
    """Run the server until the conductor hangs up; the entry point of its process."""
    with MessagesServer(Weather(seed), records=False) as server:
        conductor.send(server.url)
        try:
            conductor.recv()
        except (EOFError, OSError):
            return
