"""Acts by which clients of A2A have the changes of a task pushed to a receiver.

The token and the credentials of a receiver are sealed in the row. No function here returns them.
"""

import base64
import hashlib
import json
from typing import NamedTuple

from ikigai_actors.errors import BadInput, SubscriptionNotFound
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.contexts import CardedAgent, ContextReader, TaskName
from ikigai_actors.reach.turns import REQUEST, TurnHandle
from ikigai_actors.records.agents import registry
from ikigai_actors.records.log.heads import turn_messages
from ikigai_actors.records.log.outside_events import kind_of_end
from ikigai_actors.records.messages.messages import ENDINGS
from ikigai_actors.records.outbox.events import QUESTION_ASKED, PostedEvent
from ikigai_actors.records.outbox.pushed_tasks import PushedTask
from ikigai_actors.records.outbox.subscriptions import (
    A2A_FORM,
    EndSubscription,
    SubscriptionSpec,
    check_receiver,
    subscription_place,
)
from ikigai_actors.records.outbox.task_subscriptions import PostTaskEvents, SetTaskSubscription, task_subscriptions
from ikigai_actors.records.questions.questions import open_questions
from ikigai_actors.records.secret_references import LONGEST_SECRET
from ikigai_actors.store.base import Transaction
from ikigai_actors.verbs.principal import Principal, words_of_roles

LONGEST_CONFIG_ID = 200
"""The most characters of the id that a client gives a config."""


class PushConfig(NamedTuple):
    """The config by which a client of A2A names a receiver of pushes."""

    id: str
    """The id that the client gives it; empty for the id of the task."""
    url: str
    token: str
    """The header ``X-A2A-Notification-Token`` of each request; empty for none."""
    scheme: str
    """The scheme of the header ``Authorization`` of each request; empty for none."""
    credentials: str


def push_of(task: TaskName, name: str, principal: Principal) -> str:
    """Return the id of the subscription that belongs to a principal's config."""
    identity = json.dumps([str(task), name, principal.id]).encode()
    return f"sub_{base64.b32encode(hashlib.sha256(identity).digest()[:10]).decode().lower()}"


def set_push(reach: Access, carded: CardedAgent, task: TaskName, principal: Principal, config: PushConfig) -> str:
    """Push the present state and all later changes of a task to a receiver; return the id of the config.

    Raises:
        BadInput: a term cannot be used, there are too many, or there is no operator's key, which seals.
    """
    name = _checked(config, task)
    place = push_of(task, name, principal)
    secrets = reach.system._secrets
    plain = [secret for secret in (config.token, config.credentials) if secret]
    terms = PushedTask(str(task), name, principal.id, tuple(sorted(words_of_roles(principal))), config.scheme)
    sealed = tuple(secrets.sealed(subscription_place(place), secret) for secret in plain)
    spec = SubscriptionSpec(sealed, A2A_FORM, task=terms)
    check_receiver(config.url)
    now = reach.client.now_ms()
    reach.client.write(SetTaskSubscription(place, config.url, carded.record.uuid, terms, spec, now))
    handle = reach.turns.settled(ContextReader(reach).handle(carded, task))
    if handle.kind != REQUEST and (former := _former(reach, handle)):
        reach.client.write(PostTaskEvents(place, former, now))
    return name


def pushes(reach: Access, task: TaskName, principal: Principal) -> list[PushConfig]:
    """Return the configs of a principal for a task, oldest first, without token and credentials."""
    every = reach.client.read(lambda tx: task_subscriptions(tx, str(task)))
    terms = [(each.url, each.spec.task) for each in every]
    own = [(url, task) for url, task in terms if task is not None and task.principal == principal.id]
    return [PushConfig(task.config, url, "", task.scheme, "") for url, task in own]


def delete_push(reach: Access, task: TaskName, principal: Principal, name: str) -> None:
    """Stop pushing to a receiver. Does nothing if there is no such config."""
    place = push_of(task, name, principal)
    if any(each.id == name for each in pushes(reach, task, principal)):
        try:
            reach.client.write(EndSubscription(place, reach.client.now_ms()))
        except SubscriptionNotFound:  # the end of the task was faster
            return


def _checked(config: PushConfig, task: TaskName) -> str:
    """Check a config, and return its id. The errors contain no secret."""
    for what, text in (("token", config.token), ("credentials", config.credentials), ("scheme", config.scheme)):
        if not (text.isascii() and text.isprintable() and len(text) <= LONGEST_SECRET) or text != text.strip():
            raise BadInput(f"Expected the {what} to have at most {LONGEST_SECRET:,} printable characters of ASCII.")
    if bool(config.scheme) != bool(config.credentials) or " " in config.scheme:
        raise BadInput("Expected authentication with a scheme of one word, as Bearer, and credentials.")
    name = config.id or str(task)
    if not name.isprintable() or "/" in name or len(name) > LONGEST_CONFIG_ID:
        raise BadInput(f"Expected the id of a config to have at most {LONGEST_CONFIG_ID} characters, and no slash.")
    return name


def _former(reach: Access, handle: TurnHandle) -> list[PostedEvent]:
    """Return the events of a turn that were posted before the subscription: its end, or the questions that it asks."""
    opening = reach.turns.opening(handle)

    def read(tx: Transaction) -> list[PostedEvent]:
        if not opening:
            return []
        if registry.get(tx, handle.agent).turn == opening:
            asked = [question for question in open_questions(tx) if question.agent == handle.agent]
            return [PostedEvent(QUESTION_ASKED, each.agent, each.position, each.id, each.asked_at) for each in asked]
        ends = [each for each in turn_messages(tx, handle.agent, opening) if each.kind in ENDINGS]
        return [
            PostedEvent(kind_of_end(last), handle.agent, last.id, f"t{opening}", last.created_at) for last in ends[-1:]
        ]

    return reach.client.read(read)
