"""The bodies of deliveries, made from rows at each attempt: always the same, except for data deleted meanwhile.

{"type": "turn.done", "timestamp": "2026-11-29T09:28:33.120Z",
 "data": {"agent": "4Kd0…", "name": "triage", "position": 17, "turn": "4Kd0…/t12", "text": "Done."}}
"""

import json
from collections.abc import Mapping
from typing import Any

from ikigai_actors.agent.turn.calls import digest_of
from ikigai_actors.records.agents import registry
from ikigai_actors.records.log.heads import section
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.records.outbox.deliveries import DeliveryKey, DueDelivery
from ikigai_actors.records.outbox.events import (
    AGENT_DIED,
    ARRIVAL_DEAD,
    BUDGET_WAITS,
    QUESTION_ANSWERED,
    QUESTION_ASKED,
    QUESTION_EXPIRED,
    SUBSCRIPTION_PAUSED,
    TURN_DONE,
    TURN_FAILED,
    TURN_INTERRUPTED,
    TURN_STUCK,
)
from ikigai_actors.records.outbox.subscriptions import SubscriptionSpec
from ikigai_actors.records.questions.links import LINK_MS, signed_link
from ikigai_actors.records.questions.questions import question_with
from ikigai_actors.store.base import Transaction
from ikigai_actors.text import iso_time

LONGEST_FIELD = 4_000
"""The most characters of a text in a body."""

LARGEST_DELIVERED = 20_000
"""The most bytes of a body. A body that would be larger has names only, and no texts."""

_OF_QUESTIONS = (QUESTION_ASKED, QUESTION_ANSWERED, QUESTION_EXPIRED)

_NAMED = {
    BUDGET_WAITS: "budget",
    SUBSCRIPTION_PAUSED: "subscription",
    **dict.fromkeys(_OF_QUESTIONS, "question"),
}
"""The key, by kind of event, under which a body names the subject of the event."""

_STEP = 100
"""The number of messages before a question in which the reply that led to it is looked for."""


def delivery_body(tx: Transaction, due: DueDelivery, spec: SubscriptionSpec, key: bytes | None = None) -> bytes:
    """Return the body of a delivery as JSON.

    With ``key``, the operator's key, the body has a signed link to the question, if the subscription wants it.
    """
    names = _names(tx, due.key)
    if key is not None and due.key.kind == QUESTION_ASKED:
        link = signed_link(key, due.key.about, due.at + LINK_MS)
        names["link"] = f"{spec.links.rstrip('/')}/q/{link}"
    data = names if spec.thin else {**names, **_texts(tx, due.key)}
    body = _encoded(due, spec, data)
    return body if len(body) <= LARGEST_DELIVERED else _encoded(due, spec, {**names, "cut": True})


def _encoded(due: DueDelivery, spec: SubscriptionSpec, data: Mapping[str, Any]) -> bytes:
    key, time = due.key, iso_time(due.at)
    if spec.form == "cloudevents":
        event = {
            "specversion": "1.0",
            "id": key.id,
            "source": f"/v1/agents/{key.agent}",
            "type": key.kind,
            "subject": str(key.position),
            "time": time,
            "datacontenttype": "application/json",
            "data": data,
        }
        return json.dumps(event, separators=(",", ":")).encode()
    return json.dumps({"type": key.kind, "timestamp": time, "data": data}, separators=(",", ":")).encode()


def _names(tx: Transaction, key: DeliveryKey) -> dict[str, Any]:
    """Return the ids and names in a body, without any text of a model, a person or a service."""
    record = registry.get(tx, key.agent)
    names: dict[str, Any] = {"agent": key.agent, "name": record.name, "position": key.position}
    if key.kind in (TURN_DONE, TURN_FAILED, TURN_INTERRUPTED, TURN_STUCK):
        names["turn"] = f"{key.agent}/{key.about}"
    elif key.kind == ARRIVAL_DEAD:
        names["endpoint"], _, names["delivery"] = key.about.partition("/")
    elif key.kind in _NAMED:
        names[_NAMED[key.kind]] = key.about
    return names


def _texts(tx: Transaction, key: DeliveryKey) -> dict[str, Any]:
    """Return the fields of a body that are left out of thin bodies."""
    if key.kind in (TURN_DONE, TURN_INTERRUPTED, TURN_FAILED):
        texts = [_cut(message.content) for message in _messages(tx, key)]
        return dict(zip(["error" if key.kind == TURN_FAILED else "text"], texts, strict=False))
    if key.kind == QUESTION_ASKED:
        return {**_asked(tx, key), **_question(tx, key)}
    if key.kind in _OF_QUESTIONS:
        return _decided(tx, key)
    if key.kind == AGENT_DIED:
        record = registry.get(tx, key.agent)
        return {"cause": record.exit_cause, "reason": _cut(record.exit_reason or "")}
    return {}


def _asked(tx: Transaction, key: DeliveryKey) -> dict[str, Any]:
    """Return the fields of a question that a person needs in order to answer."""
    question = question_with(tx, key.about)
    if question is None:
        return {}
    return {"kind": question.kind, "form": question.form, "asks": list(question.asks), "digest": question.digest}


def _decided(tx: Transaction, key: DeliveryKey) -> dict[str, Any]:
    """Return the decision on a question, and who made it."""
    question = question_with(tx, key.about)
    decided = {} if question is None else {"how": question.how, "by": question.by}
    for message in _messages(tx, key):
        decided["tool"] = message.data.get("name")
        if "answer" in message.data:
            answer = message.data["answer"]
            decided["answer"] = _cut(answer) if isinstance(answer, str) else answer
    return decided


def _question(tx: Transaction, key: DeliveryKey) -> dict[str, Any]:
    """Return the call about which a person is asked, with the full name that a decision must give."""
    for asked in _messages(tx, key):
        wanted = asked.data.get("tool_use_id")
        for message in reversed(section(tx, key.agent, max(0, key.position - _STEP), key.position)):
            if message.kind != Kind.ASSISTANT:
                continue
            for call in calls_in(message):
                if call.id == wanted:
                    again = str(asked.data.get("definition", ""))[:8] if asked.data.get("former_definition") else ""
                    name = f"{message.id}/{call.id}/{digest_of(call.name, call.input)[:8]}{again and '/'}{again}"
                    return {"call": name, "tool": call.name, "arguments": _cut_arguments(call.input)}
            break
        return {"tool": asked.content}
    return {}


def _messages(tx: Transaction, key: DeliveryKey) -> list[Message]:
    """Return a list of the message that caused the event; empty if the message was pruned."""
    return section(tx, key.agent, key.position - 1, key.position)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_FIELD else f"{text[: LONGEST_FIELD - 1]}…"


def _cut_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _cut(value) if isinstance(value, str) else value for name, value in arguments.items()}
