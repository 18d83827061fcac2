"""The lines about what a command wrote: one for each mail, prompt, signal and name.

Each function opens the database, does one thing, and gives it back. Whatever it returns is committed.
"""

import os
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.arguments import parse_span
from ikigai_actors.attachments import attachments
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.lives.membership import GroupSent, SendToGroup, group_in
from ikigai_actors.records.messages.blob_references import stored_in
from ikigai_actors.shell.text.timers import timer_line
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.system.remote.client import Client

if TYPE_CHECKING:
    from ikigai_actors.providers.base import Reply
    from supervisors.signals import Signal

_Tell = Callable[[str], object]
"""Takes a notice: what nobody asked for, and a person should know."""


class Prompted(NamedTuple):
    """A prompt that was left, and what came of it as far as it was waited for."""

    agent: AgentRecord
    mail: int
    """Its number among the mails of the agent."""
    reply: "Reply | None" = None
    """None when it was not waited for, or not for long enough."""
    why: str = ""
    """Why it has not come in time, as a sentence; empty when that is not known."""


class Forked(NamedTuple):
    """A child, and what it answered as far as that was waited for."""

    child: AgentRecord
    parent: AgentRecord
    inherited: int
    """How many messages it remembers."""
    reply: "Reply | None" = None
    """None when it was not waited for, or not for long enough."""
    why: str = ""
    """As `Prompted.why`."""


def send(
    database: str | None,
    recipient: str,
    text: str,
    sender: str | None = None,
    after: str | None = None,
    **when: str | None,
) -> str:
    """Send a mail, as a person when no sender is named; later with ``after``, or ``at`` in a ``zone``.

    Raises what `Client.open`, `find`, `send` and `send_later` do.
    """
    later = after is not None or any(when.values())
    with Client.open(database) as client:
        if (group := group_in(recipient)) is not None:
            if later:
                raise BadInput("Mail that is sent later goes to an agent: the members of a group may change.")
            by_whom = None if sender is None else client.find(sender).uuid
            sent: GroupSent = client.write(SendToGroup(group, by_whom, text, client.now_ms()))
            return f"mail to {sent.id} members of {group}"
        to, *by = client.find_all([recipient] if sender is None else [recipient, sender])
        if later:
            seconds = None if after is None else parse_span(after) / 1000
            timer = client.send_later(to.uuid, text, by[0].uuid if by else None, after=seconds, **when)
            return f"{to.short}: {timer_line(timer, by[0].short if by else None)}"
        mail = client.send(to.uuid, text, by[0].uuid if by else None)
    return f"mail {mail.id} to {to.short}"


def prompt(database: str | None, agent: str, text: str, notice: _Tell, attach: Sequence[str] = ()) -> Prompted:
    """Leave a prompt for an agent, with the files at these paths. Raises what `Client.open`, `find` and `prompt` do."""
    given = attachments(attach)
    with Client.open(database) as client:
        to, host = client.find(agent), client.host()
        mail = client.prompt(to.uuid, text, stored_in(given), given)
        _tell_of_delay(to, host, notice)
    return Prompted(to, mail.id)


def steer(database: str | None, agent: str, text: str, now: bool, notice: _Tell) -> Prompted:
    """Leave a word for an agent, within its turn. Raises what `prompt` does, and `InboxFull`."""
    from ikigai_actors.records.mail.words import KeepWord, KeptWord

    with Client.open(database) as client:
        to, host = client.find(agent), client.host()
        kept: KeptWord = client.write(KeepWord(to.uuid, text, client.now_ms(), at_once=now))
        _tell_of_delay(to, host, notice)
    return Prompted(to, kept.mail.id)


def prompt_and_wait(
    database: str | None, agent: str, text: str, timeout: float | None, notice: _Tell, attach: Sequence[str] = ()
) -> Prompted:
    """Leave a prompt for an agent, and wait for the end of its turn.

    Args:
        database: see `Client.open`.
        agent: who is prompted, as in `Client.find`.
        text: the prompt.
        timeout: seconds to wait; None waits forever. The prompt stays, whether it was waited for or not.
        notice: told when it may take long.
        attach: the paths of files that go with the prompt.

    Raises what `prompt` does, and how the turn ended when there is no reply: `ProviderError`, `TurnInterrupted`,
    `AgentDead`.
    """
    from ikigai_actors.system.remote.turn import RemoteTurn

    given = attachments(attach)
    with Client.open(database) as client:
        to = client.find(agent)
        with client.feed([to.uuid]) as feed:
            mail = client.prompt(to.uuid, text, stored_in(given), given)
            _tell_of_delay(to, feed.host, notice)
            turn = RemoteTurn(to.uuid, prompt=mail.id)
            end = feed.await_turn(turn, timeout, lambda: _tell_of_delay(to, None, notice))
        why = client.why_late(to.uuid) if end is None else ""
    if isinstance(end, IkigaiError):
        raise end
    return Prompted(to, mail.id, end, why)


def fork(
    database: str | None,
    agent: str,
    prompt: str | None,
    notice: _Tell,
    *,
    wait: bool = False,
    timeout: float | None = None,
    **how: Any,
) -> Forked:
    """Have an agent make a child, and return when it is there; with ``wait`` when its first turn is over.

    Args:
        database: see `Client.open`.
        agent: the parent, as in `Client.find`.
        prompt: the child's first prompt; None for none.
        notice: told when the reply may take long.
        wait: whether the reply to the prompt is waited for.
        timeout: seconds for all of it; None waits forever. A child that is not there by then is not made later.
        **how: further arguments of `AgentRef.fork`.

    Raises what `AgentRef.fork` and `Client.perform` do, and as `prompt_and_wait` how the turn ended without a reply.
    """
    until, why = None if timeout is None else monotonic() + timeout, ""
    with Client.open(database) as client:
        parent, [uuid] = _forked(client, agent, prompt, None, timeout, how)
        child, inherited, reply = client.get(uuid), client.scrollback(uuid).remembered(), None
        if wait:
            with client.feed([uuid]) as feed:
                left = None if until is None else max(0.0, until - monotonic())
                end = feed.await_turn(client.first_turn(uuid), left, lambda: _tell_of_delay(child, None, notice))
            if isinstance(end, IkigaiError):
                raise end
            reply = end
            why = client.why_late(uuid) if end is None else ""
    return Forked(child, parent, inherited, reply, why)


def fork_many(
    database: str | None, agent: str, prompt: str | None, count: int, *, timeout: float | None = None, **how: Any
) -> tuple[AgentRecord, dict[str, str]]:
    """Fork an agent that another process runs several times in one unit; return it, and its children's labels by uuid.

    Takes and raises what `fork` does.
    """
    with Client.open(database) as client:
        parent, uuids = _forked(client, agent, prompt, count, timeout, how)
        return parent, {uuid: client.label(uuid) for uuid in uuids}


def _forked(
    client: Client, agent: str, prompt: str | None, count: int | None, timeout: float | None, how: dict[str, Any]
) -> tuple[AgentRecord, list[str]]:
    """Have an agent make children; return it, and their uuids."""
    from ikigai_actors.actors.futures import Future
    from ikigai_actors.records.agents.identity import new_agent_uuid
    from ikigai_actors.system.lifecycle import new_children, new_fork

    children = new_children(lambda: new_agent_uuid(os.urandom), prompt, how.pop("name", None), count=count)
    command = new_fork(children, **how)
    parent = client.find(agent)
    late = f"{parent.short} has not forked within {timeout or 0:g} s, and does not later either."
    client.perform(parent.uuid, command(Future()), timeout, late)
    return parent, [child.uuid for child in children]


def signal(database: str | None, agent: str, name: "Signal", *, cascade: bool, reason: str, grace: float) -> str:
    """Send a signal, as a person. Raises what `Client.open`, `find` and `signal` do."""
    with Client.open(database) as client:
        record = client.find(agent)
        done = client.signal(record.uuid, name, cascade=cascade, reason=reason, grace=grace)
    if done.dead:
        others = len(done.dead) - 1
        return f"{record.short} is dead" + (f", and {others} below it" if others else "")
    return f"{name} sent to {record.short}" + (f": {done.ignored}" if done.ignored else "")


def rename(database: str | None, agent: str, name: str) -> str:
    """Give an agent another name, or none. Raises what `Client.open`, `find` and `rename` do."""
    with Client.open(database) as client:
        record = client.find(agent)
        client.rename(record.uuid, name)
        now = client.get(record.uuid)
    return f"{record.short} is {now.short} now"


def _tell_of_delay(to: AgentRecord, host: HostRecord | None, notice: _Tell) -> None:
    if host is None:
        notice("No process runs these agents now: the prompt waits until one does, as ikigai does.")
    elif to.status == "stopped":
        notice(f"{to.short} is stopped: the prompt waits until it goes on (ikigai signal CONT {to.short}).")
