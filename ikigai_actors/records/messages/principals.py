"""Principals in messages: which outside principal caused a message. Pure.

``data.principal`` is the id of a principal, as its token or its endpoint has it. Messages without a principal come from
agents, from programs, and from people without a token. A ``configure`` has none, because its data are the settings.
"""

from collections.abc import Sequence

from ikigai_actors.frozen import replace
from ikigai_actors.records.messages.messages import Kind, Message

PRINCIPAL = "principal"
"""The key of the principal's id in the data of a message or mail, and in the body of a remote command."""


def naming(messages: Sequence[Message], principal: str) -> tuple[Message, ...]:
    """Return the messages of a command, each with the id of the principal that has sent the command."""
    return tuple(
        message if message.kind == Kind.CONFIGURE else replace(message, data={PRINCIPAL: principal, **message.data})
        for message in messages
    )


def principal_in(message: Message) -> str | None:
    """Return the principal in a message; None if it names none."""
    principal = message.data.get(PRINCIPAL) if message.kind != Kind.CONFIGURE else None
    return principal if isinstance(principal, str) and principal else None
