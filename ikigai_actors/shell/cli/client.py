"""What a process sends that runs no agents: in a transaction of its own, beside a running shell or without one.

Each function opens the database, does one thing, and gives it back. Whatever it returns is committed.
"""

from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.errors import IkigaiError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.records import registry
from ikigai_actors.records.deaths import LifecycleChange
from ikigai_actors.records.mail import PROMPT, Mail, Send
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.records.signals import SendSignal, milliseconds
from ikigai_actors.shell.cli.registry import existing
from ikigai_actors.store.base import Store
from ikigai_actors.store.owner import HostRow, owner
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.attached.follower import HEARTBEAT, Follower, watching
from supervisors.signals import Signal

Tell = Callable[[str], object]
"""Takes a notice: what nobody asked for, and a person should know."""

NO_HOST = "No process runs these agents"


class Prompted(NamedTuple):
    """A prompt that was left, and what came of it as far as it was waited for."""

    agent: AgentRecord
    mail: int
    """Its number among the mails of the agent."""
    reply: Reply | None = None
    """None when it was not waited for, or not for long enough."""


def send(database: str | None, recipient: str, text: str, sender: str | None = None) -> str:
    """Send a mail, as nobody when no sender is named; return what is told of it, after the commit.

    Raises what `existing`, `registry.find` and `Send` do.
    """
    with existing(database) as store:
        to, by = store.read(
            lambda tx: (registry.find(tx, recipient), None if sender is None else registry.find(tx, sender))
        )
        letter = Send(to.uuid, None if by is None else by.uuid, text, SystemClock().now_ms())
        mail: Mail = write_alone(store, letter)
    return f"mail {mail.id} to {to.short}"


def prompt(database: str | None, agent: str, text: str, notice: Tell) -> Prompted:
    """Leave a prompt for an agent; return after the commit. The host takes it up.

    Raises what `existing`, `registry.find` and `Send` do.
    """
    with existing(database) as store:
        to, host = store.read(lambda tx: (registry.find(tx, agent), owner(tx)))
        mail = _leave(store, to, text)
        _tell_of_delay(to, host, notice)
    return Prompted(to, mail)


def prompt_and_wait(database: str | None, agent: str, text: str, timeout: float | None, notice: Tell) -> Prompted:
    """Leave a prompt for an agent, and wait for the end of its turn.

    Args:
        database: see `existing`.
        agent: who is prompted, as in `registry.find`.
        text: the prompt.
        timeout: seconds to wait; None waits for ever. The prompt stays, whether it was waited for or not.
        notice: told when it may take long.

    Raises what `prompt` does, and how the turn ended when there is no reply: `ProviderError`, `TurnInterrupted`,
    `AgentDead`.
    """
    from ikigai_actors.system.attached.turn import RemoteTurn

    until = float("inf") if timeout is None else monotonic() + timeout
    with existing(database) as store, watching(store) as watch:
        to = store.read(lambda tx: registry.find(tx, agent))
        follower = Follower(store, [to.uuid])
        hosted = follower.begin(SystemClock().now_ms()).host
        mail = _leave(store, to, text)
        _tell_of_delay(to, hosted, notice)
        turn = RemoteTurn(to.uuid, prompt=mail)
        while True:
            news = follower.news()
            if (end := turn.take(news)) is not None:
                break
            if turn.begun and news.host is None:
                raise TurnInterrupted(f"{NO_HOST} any more, so the turn was cut off. Start ikigai, and /resume.")
            if news.host is None and hosted is not None:
                _tell_of_delay(to, None, notice)
            hosted = news.host
            if (left := until - monotonic()) <= 0:
                return Prompted(to, mail)
            watch.wait(min(HEARTBEAT, left))
    if isinstance(end, IkigaiError):
        raise end
    return Prompted(to, mail, end)


def signal(database: str | None, agent: str, name: Signal, *, cascade: bool, reason: str, grace: float) -> str:
    """Send a signal, as a person; return what is told of it, after the commit. The host that runs the agent follows.

    Raises what `existing`, `registry.find` and `SendSignal` do.
    """
    with existing(database) as store:
        record = store.read(lambda tx: registry.find(tx, agent))
        now = SystemClock().now_ms()
        sent = SendSignal(record.uuid, name, now, spread=cascade, reason=reason, grace=milliseconds(grace))
        done: LifecycleChange = write_alone(store, sent)
    if done.dead:
        others = len(done.dead) - 1
        return f"{record.short} is dead" + (f", and {others} below it" if others else "")
    return f"{name} sent to {record.short}" + (f": {done.ignored}" if done.ignored else "")


def rename(database: str | None, agent: str, name: str) -> str:
    """Give an agent another name, or none; return what is told of it, after the commit. The host that runs it follows.

    Raises what `existing`, `registry.find` and `Rename` do.
    """
    with existing(database) as store:
        record = store.read(lambda tx: registry.find(tx, agent))
        write_alone(store, registry.Rename(record.uuid, name))
        now = store.read(lambda tx: registry.get(tx, record.uuid))
    return f"{record.short} is {now.short} now"


def _leave(store: Store, to: AgentRecord, text: str) -> int:
    mail: Mail = write_alone(store, Send(to.uuid, None, text, SystemClock().now_ms(), PROMPT))
    return mail.id


def _tell_of_delay(to: AgentRecord, host: HostRow | None, notice: Tell) -> None:
    if host is None:
        notice(f"{NO_HOST} now: the prompt waits until one does, as ikigai does.")
    elif to.status == "stopped":
        notice(f"{to.short} is stopped: the prompt waits until it goes on (ikigai signal CONT {to.short}).")
