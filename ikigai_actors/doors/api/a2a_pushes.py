"""Push notification configs of A2A 1.0: from JSON to a receiver, and back without its secrets. Pure."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.verbs.acts.task_pushes import PushConfig


def push_config(body: object, task: str = "") -> PushConfig:
    """Return the receiver that the JSON of a push config names; ``task`` is the task of the request.

    Raises `BadInput`.
    """
    if not isinstance(body, Mapping):
        raise BadInput("Expected a push notification config as an object with a url.")
    proof = body.get("authentication") or {}
    texts = [body.get(name) or "" for name in ("id", "url", "token", "taskId")]
    texts += [proof.get(name) or "" for name in ("scheme", "credentials")] if isinstance(proof, Mapping) else [None]
    if not all(isinstance(text, str) for text in texts) or not texts[1]:
        raise BadInput("Expected a push notification config with url, and perhaps id, token and authentication.")
    name, url, token, of_task, scheme, credentials = texts
    if of_task and task and of_task != task:
        raise BadInput(f"Expected the taskId {task}, as in the address.")
    return PushConfig(name, url, token, scheme, credentials)


def shown_push(config: PushConfig, task: str) -> dict[str, Any]:
    """Return the push config of a task as JSON for its client, without token and credentials."""
    shown = {"id": config.id, "taskId": task, "url": config.url}
    return {**shown, "authentication": {"scheme": config.scheme}} if config.scheme else shown
