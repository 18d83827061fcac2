"""What a process sends that runs no agents: in a transaction of its own, beside a running shell or without one."""

from ikigai_actors import registry
from ikigai_actors.clock import SystemClock
from ikigai_actors.mailbox import Mail, Send
from ikigai_actors.shell.reader import existing
from ikigai_actors.units import write_alone


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
