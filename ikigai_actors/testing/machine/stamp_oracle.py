"""Time stamps, checked by the commits: no row has an earlier stamp than the rows from which it was made.

    stamp       stamps do not fall along a log, nor from inherited messages to a child's. No stamp for reading a mail,
                taking up a prompt or steering message, or carrying out a remote command is before that row's stamp;
                and no mail of an agent has an earlier stamp than the agent's messages before it
    unit        a child, its first message and the ``fork`` in the log of its birth have one stamp; so have a mail of a
                model and the message that reports it: so no state as of a time has half of a unit

So the rows with stamps up to a time form a consistent state, over any number of hosts. If a clock is set back by more
than `SET_BACK`, stamps before and after that are not compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.records.mail.mail import MAIL
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.base import Row
from ikigai_actors.store.database_clock import SET_BACK
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.world import Simulation

SENT = "Sent: mail "
"""The beginning of a result of a call that has sent mail to one agent."""


class StampOracle:
    """Checks that no row of a run has an earlier time stamp than the rows from which it was made."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._logs: dict[str, list[tuple[int, int]]] = {}  # the position and the stamp of each message
        self._mails: dict[tuple[str, int], tuple[str, int]] = {}  # what is not read: its kind and its stamp
        self._commands: dict[tuple[str, int], int] = {}
        self._numbers: dict[str, int] = {}

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the time stamps of the rows that a commit writes."""
        made: dict[str, int] = {}  # what the messages of each agent are made from, by its latest stamp
        for change in changes:
            if isinstance(change, RanStatement):
                self._ran(change.query, change.parameters, made)
        for change in changes:
            if isinstance(change, Written) and change.table == "mail":
                self._sent(*change.row[:6])
        for change in changes:
            if isinstance(change, Written) and change.table == "messages":
                message = Message.from_row(change.row)
                self._wrote(message)
                self._judge(made.get(message.agent_uuid, 0), message.created_at, f"message {message.id} reports")
        self._judge_units(changes)

    def _judge_units(self, changes: Sequence[StoredChange]) -> None:
        """Check that a message that reports mail or a fork has the same stamp as that mail or that child."""
        rows = [change for change in changes if isinstance(change, Written)]
        logs = [Message.from_row(row.row) for row in rows if row.table == "messages"]
        mail = {(sender, stamp) for _, _, sender, kind, _, stamp, *_ in _mail(rows) if kind == MAIL}
        born = {birth.parameters["uuid"]: birth.parameters["now"] for birth in _births(changes)}
        for message in logs:
            if _reports_mail(message) and (message.agent_uuid, message.created_at) not in mail:
                self._two_stamps(message, "mail that has another stamp")
            child = message.data.get("child", message.agent_uuid) if message.kind == Kind.FORK else None
            if (at := born.get(child)) not in (None, message.created_at):
                self._two_stamps(message, f"agent {child}, born at {at}")

    def _two_stamps(self, message: Message, what: str) -> None:
        at = f"message {message.id} of agent {message.agent_uuid} at {message.created_at}"
        self._world.process.broken(f"unit: {at} reports {what}: one unit has two stamps")

    def _ran(self, query: str, parameters: Mapping[str, Any], made: dict[str, int]) -> None:
        if query == "add_remote_command":
            number = self._numbers[parameters["agent"]] = self._numbers.get(parameters["agent"], 0) + 1
            self._commands[parameters["agent"], number] = parameters["now"]
        elif query == "answer_remote_command":
            self._judge(
                self._commands.pop((parameters["agent"], parameters["id"]), 0),
                parameters["now"],
                "a command is answered",
            )
        elif query in ("mark_read", "mark_one_read", "take_prompt", "take_words"):
            for number in self._read(query, parameters):
                _, stamp = self._mails.pop((parameters["recipient"], number), ("", 0))
                self._judge(stamp, parameters["now"], f"mail {number} is read")
                made[parameters["recipient"]] = max(made.get(parameters["recipient"], 0), stamp)

    def _read(self, query: str, parameters: Mapping[str, Any]) -> list[int]:
        if query == "take_words":
            return [int(number) for number in parameters["ids"]]
        if query == "mark_read":
            mine = [
                key for key, (kind, _) in self._mails.items() if key[0] == parameters["recipient"] and kind != "prompt"
            ]
            return [number for _, number in mine if number <= parameters["last"] and parameters["sender"] is None]
        return [parameters["id"]]

    def _sent(self, recipient: str, number: int, sender: str | None, kind: str, body: str, stamp: int) -> None:
        self._mails[recipient, number] = kind, stamp
        if kind == MAIL and sender in self._logs:
            self._judge(self._logs[sender][-1][1], stamp, f"agent {sender} sends mail {number}")

    def _wrote(self, message: Message) -> None:
        log = self._logs.setdefault(message.agent_uuid, [])
        before = log[-1][1] if log else 0
        if message.kind == Kind.FORK and "parent" in message.data:
            inherited = self._logs.get(message.data["parent"], [])
            before = max([before, *(stamp for at, stamp in inherited if at <= message.id)])
        self._judge(before, message.created_at, f"message {message.id} of agent {message.agent_uuid} is written")
        log.append((message.id, message.created_at))

    def _judge(self, cause: int, stamp: int, what: str) -> None:
        if 0 < cause - stamp <= SET_BACK:
            self._world.process.broken(f"stamp: {what} at {stamp}, {cause - stamp} ms before what it was made from")


def _mail(rows: Sequence[Written]) -> list[Row]:
    return [row.row for row in rows if row.table == "mail"]


def _births(changes: Sequence[StoredChange]) -> list[RanStatement]:
    return [change for change in changes if isinstance(change, RanStatement) and change.query == "register"]


def _reports_mail(message: Message) -> bool:
    """Return whether a message is the result of a model's call that has sent something to one mailbox."""
    return message.kind == Kind.TOOL_RESULT and message.data.get("name") == "send" and message.content.startswith(SENT)
