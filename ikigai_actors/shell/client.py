"""What a process sends that runs no agents: in a transaction of its own, beside a running shell or without one."""

from ikigai_actors import registry
from ikigai_actors.clock import SystemClock
from ikigai_actors.deaths import Aftermath
from ikigai_actors.mailbox import PROMPT, Mail, Send
from ikigai_actors.shell.reader import existing
from ikigai_actors.signalling import SendSignal
from ikigai_actors.units import write_alone
from supervisors.signals import Signal


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


def prompt(database: str | None, agent: str, text: str) -> str:
    """Leave a prompt for an agent; return what is told of it, after the commit. The host takes it up.

    Raises what `existing`, `registry.find` and `Send` do.
    """
    with existing(database) as store:
        to = store.read(lambda tx: registry.find(tx, agent))
        mail: Mail = write_alone(store, Send(to.uuid, None, text, SystemClock().now_ms(), PROMPT))
    return f"prompt {mail.id} to {to.short}"


def signal(database: str | None, agent: str, name: Signal, *, cascade: bool, reason: str, grace: float) -> str:
    """Send a signal, as a person; return what is told of it, after the commit. The host that runs the agent follows.

    Raises what `existing`, `registry.find` and `SendSignal` do.
    """
    with existing(database) as store:
        record = store.read(lambda tx: registry.find(tx, agent))
        now = SystemClock().now_ms()
        sent = SendSignal(record.uuid, name, now, spread=cascade, reason=reason, grace=int(grace * 1000))
        done: Aftermath = write_alone(store, sent)
    if done.dead:
        others = len(done.dead) - 1
        return f"{record.short} is dead" + (f", and {others} below it" if others else "")
    return f"{name} sent to {record.short}" + (f": {done.ignored}" if done.ignored else "")
