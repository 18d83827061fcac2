"""What the page does: each request is one call of a handle. Raises what the handle raises."""

from collections.abc import Callable, Mapping
from typing import Any

from ikigai_actors.arguments import check_choice, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.system.approvals import person
from ikigai_actors.system.handles.ref import AgentRef, System
from supervisors.signals import Signal

_PATIENCE = 20.0
"""Seconds that a request waits for its commit."""

PageBody = Mapping[str, Any]


def _prompt(system: System, body: PageBody) -> object:
    """Prompt an agent; the reply comes by the stream."""
    _agent(system, body).prompt(_text(body, "text"))
    return True


def _steer(system: System, body: PageBody) -> object:
    """Say a word to an agent within its turn."""
    _agent(system, body).steer(_text(body, "text"))
    return True


def _fork(system: System, body: PageBody) -> object:
    """Fork an agent, at a position of its history if there is one; gives the child's uuid."""
    made = _agent(system, body).fork(
        body.get("prompt") or None,
        name=body.get("name") or None,
        model=body.get("model") or None,
        at=body.get("at"),
        timeout=_PATIENCE,
    )
    return made.uuid


def _decide(system: System, body: PageBody) -> object:
    """Decide on the call that was shown under its full name; gives whether it was still to be decided.

    ``always`` is one of the words that the call takes; True is the whole tool. The log names the person who has begun
    the observer.
    """
    call = system.approvals.find(_agent(system, body).uuid, _text(body, "call"))
    if call is None:
        return False
    if body.get("approve"):
        return system.approvals.approve(call, always=body.get("always") or False, by=person(), timeout=_PATIENCE)
    return system.approvals.deny(call, str(body.get("reason") or ""), by=person(), timeout=_PATIENCE)


def _signal(system: System, body: PageBody) -> object:
    """Send an agent a signal; gives whether it did something."""
    named = check_choice(_text(body, "signal"), "signal", [*Signal])
    return _agent(system, body).signal(Signal(named), cascade=bool(body.get("cascade")), timeout=_PATIENCE)


def _send(system: System, body: PageBody) -> object:
    """Send an agent a mail; gives its number."""
    return system.send(_agent(system, body), _text(body, "text"), timeout=_PATIENCE)


def _grant(system: System, body: PageBody) -> object:
    """Grant an agent's budget more: ``usd``, ``tokens``."""
    more = {unit: body[unit] for unit in ("usd", "tokens") if body.get(unit) is not None}
    _agent(system, body).grant(**more, timeout=_PATIENCE)
    return True


def _agent(system: System, body: PageBody) -> AgentRef:
    return system.agent(_text(body, "agent"))


def _text(body: PageBody, name: str) -> str:
    if not isinstance(text := body.get(name), str) or not text:
        raise BadInput(f"Expected {name} to be a text, got {shown(text)}.")
    return text


PAGE_ACTS: Mapping[str, Callable[[System, PageBody], object]] = {
    "prompt": _prompt,
    "steer": _steer,
    "fork": _fork,
    "decide": _decide,
    "signal": _signal,
    "send": _send,
    "grant": _grant,
}
"""What can be done, by the last word of the request's path."""
