"""The checks of fsck for calls of programs: their names follow from the act, and how often the turn has done it.

Pure.
"""

from collections.abc import Iterator

from ikigai_actors.records.messages.acts import digest_of_act, is_of_program
from ikigai_actors.records.messages.messages import Kind, Message


class ActCheck:
    """Checks the calls of programs in all logs. Pass the messages in order."""

    def __init__(self) -> None:
        self._agent = ""
        self._known: set[str] | None = None  # the acts of the turn; None where it began in another log

    def read(self, message: Message) -> Iterator[str]:
        """Return the faults of one message, given the messages before it."""
        if message.agent_uuid != self._agent:
            self._agent, self._known = message.agent_uuid, None
        if message.kind == Kind.USER:
            self._known = set()
        if message.kind != Kind.ASSISTANT or not is_of_program(message):
            return
        of_reply = set[str]()
        for call in message.data.get("tool_calls") or ():
            name, _, count = call["id"].rpartition("-")
            if name != digest_of_act(call["name"], call["input"]) or not count.isdecimal():
                yield f"expected call {call['id']} of message {message.id} to be named by digest and count of its act"
            elif call["id"] in of_reply:
                yield f"expected call {call['id']} once in message {message.id}"
            elif self._known is not None and int(count) and f"{name}-{int(count) - 1}" not in self._known | of_reply:
                yield f"expected call {name}-{int(count) - 1} before call {call['id']} of message {message.id}"
            of_reply.add(call["id"])
        if self._known is not None:
            self._known |= of_reply
