"""Principals in messages: who asked from outside for what a message says. Pure.

``data.principal`` is the id of a principal, as its token or its endpoint has it. Messages without one are of agents, of
programs, and of people whom no door knows. A ``configure`` has none: its data are the settings.
"""

from collections.abc import Sequence

from ikigai_actors.frozen import replace
from ikigai_actors.records.messages.messages import Kind, Message

PRINCIPAL = "principal"
"""In the data of a message, of a mail, or of the body of a remote command."""


def naming(messages: Sequence[Message], principal: str) -> tuple[Message, ...]:
    """The messages of a command, with the principal that has asked for it."""
    return tuple(
        one if one.kind == Kind.CONFIGURE else replace(one, data={PRINCIPAL: principal, **one.data}) for one in messages
    )


def principal_in(message: Message) -> str | None:
    """The principal that a message names; None where it names none."""
    found = message.data.get(PRINCIPAL) if message.kind != Kind.CONFIGURE else None
    return found if isinstance(found, str) and found else None
