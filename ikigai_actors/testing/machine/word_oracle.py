"""Steering messages, checked by the commits: the invariant ``steer``.

A stored steering message enters the history of its agent once, by the commit that marks its mail as read, in the order
of the mails, in the open turn or as the prompt that opens one. A steering message never comes between a call and its
result, and is in no unit of a summary. The next reply answers a request that contained the message. A withdrawn message
never enters. Agents can send steering messages only to agents below them. A receipt has the position of the message as
soon as it has entered.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ikigai_actors.agent.turn.calls import calls_of
from ikigai_actors.errors import AgentDead, Withdrawn
from ikigai_actors.providers.base import Request
from ikigai_actors.records.mail.mail import PROMPT
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.reply_data import INTERRUPTED
from ikigai_actors.records.messages.steered import Steered, steered_in
from ikigai_actors.system.receipts import Receipt
from ikigai_actors.testing.machine.commit_invariants import Standing
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken, Process, asks_for_summary

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation


@dataclass(slots=True)
class Listener:
    """The steering messages to one agent: unread, entered, and due in the next request."""

    unread: dict[int, str] = field(default_factory=dict)
    """The messages that wait, by their mails."""
    entered: dict[int, Steered] = field(default_factory=dict)
    latest: int = 0
    """The mail of the steering message that has entered last."""
    calls: set[str] = field(default_factory=set)
    """The calls of the latest reply that have no result."""
    request: str = ""
    """The text of the latest request to the agent's model."""
    due: list[str] = field(default_factory=list)
    """The steering messages of the turn that the model must get before its next reply."""


class WordOracle:
    """Checks the steering messages of a run, and their senders."""

    def __init__(self, world: "Simulation", agents: Mapping[str, Standing]) -> None:
        """Make an oracle for a run without commits so far; ``agents`` has the state of each agent after each commit."""
        self._world, self._agents = world, agents
        self._listeners: dict[str, Listener] = {}
        self._withdrawn: set[tuple[str, int]] = set()
        self.receipts: list[tuple[Process, str, Receipt]] = []
        """The receipts of steering messages, each with the process that sent it and the agent."""

    def of(self, agent: str) -> Listener:
        """Return the steering messages of an agent, which are recorded there."""
        return self._listeners.setdefault(agent, Listener())

    def asked(self, request: Request) -> None:
        """Record the last message of a request to an agent's model."""
        if not asks_for_summary(request):
            self.of(request.agent).request = json.dumps(
                request.messages[-1]["content"], default=str, ensure_ascii=False
            )

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the steering messages that a commit stores, lets enter a history, or withdraws."""
        read: set[tuple[str, int]] = set()
        before: dict[str, str] = {}  # the kind of the latest message of each agent in this commit
        for change in changes:
            if isinstance(change, RanStatement):
                read |= self._read_by(change)
                self._withdraw(change)
            elif change.table == "mail" and change.row[3] == PROMPT:
                agent, mail, sender, _, text, _, _, data, _ = change.row
                if "steer" in json.loads(data or "{}"):
                    self._kept(agent, mail, sender, text)
        for change in changes:
            if isinstance(change, Written) and change.table == "messages":
                message = Message.from_row(change.row)
                self._wrote(message, read, before.get(message.agent_uuid, ""))
                before[message.agent_uuid] = message.kind
        for agent, mail in read:
            if self.of(agent).unread.pop(mail, None) is not None:
                self._broken(f"agent {agent} has read mail {mail}, and its history does not have it")

    def _broken(self, what: str) -> None:
        self._world.process.broken(f"steer: {what}")

    def _kept(self, agent: str, mail: int, sender: str | None, text: str) -> None:
        self.of(agent).unread[mail] = text
        above, supervisor = set[str | None](), self._agents[agent].supervisor
        while supervisor is not None:
            above.add(supervisor)
            supervisor = self._agents[supervisor].supervisor
        if sender is not None and sender not in above:
            self._broken(f"agent {sender} is not above {agent}, and says {text!r} to it")

    @staticmethod
    def _read_by(change: RanStatement) -> set[tuple[str, int]]:
        parameters = change.parameters
        match change.query:
            case "take_words":
                return {(parameters["recipient"], int(mail)) for mail in parameters["ids"]}
            case "take_prompt":
                return {(parameters["recipient"], parameters["id"])}
        return set()

    def _withdraw(self, change: RanStatement) -> None:
        if change.query == "withdraw_prompt":
            agent, mail = change.parameters["recipient"], change.parameters["id"]
            if self.of(agent).unread.pop(mail, None) is not None:
                self._withdrawn.add((agent, mail))

    def _wrote(self, message: Message, read: set[tuple[str, int]], before: str) -> None:
        listener, agent = self.of(message.agent_uuid), message.agent_uuid
        if message.kind in (Kind.USER, Kind.INTERRUPTED, Kind.ERROR, Kind.REWIND, Kind.CLEAR):
            listener.calls = set()
        if message.kind == Kind.ASSISTANT:
            self._replied(listener, message)
        elif message.kind == Kind.TOOL_RESULT:
            listener.calls.discard(str(message.data.get("tool_use_id")))
        if (steered_mail := steered_in(message)) is None or "from" in message.data:
            listener.due = [] if message.kind == Kind.USER else listener.due
            return
        mail, steered = steered_mail
        where = f"agent {agent} has word {mail} at {message.id}"
        if (agent, mail) not in read or listener.unread.pop(mail, None) != message.content:
            self._broken(f"{where}, which did not wait, or waits still")
        if mail <= listener.latest:
            self._broken(f"{where}, after word {listener.latest}")
        if listener.calls:
            self._broken(f"{where}, before the results of {sorted(listener.calls)}")
        if before == Kind.SUMMARY:
            self._broken(f"{where}, in the unit of a summary")
        turn = self._agents[agent].turn
        if not steered.opened and (not turn or steered.turn != turn):
            self._broken(f"{where}, of turn {steered.turn}; turn {turn} is open")
        listener.latest, listener.entered[mail] = mail, steered
        listener.due = [message.content] if steered.opened else [*listener.due, message.content]

    def _replied(self, listener: Listener, message: Message) -> None:
        listener.calls = {call.id for call in calls_of(message)}
        if message.data.get("stop_reason") == INTERRUPTED or self._agents[message.agent_uuid].status == "dead":
            return
        if "@" in str(message.data.get("made_by", "")):  # a program, to which nobody tells its history
            return
        if untold := [
            text for text in listener.due if json.dumps(text, ensure_ascii=False)[1:-1] not in listener.request
        ]:
            self._broken(f"the model of agent {message.agent_uuid} replies at {message.id}, and was not told {untold}")
        listener.due = []

    def withdrew(self, agent: str, receipt: Receipt) -> None:
        """Check that a steering message whose withdrawal was confirmed is withdrawn in the database."""
        mail = receipt.kept.get(timeout=0)
        if (agent, mail) not in self._withdrawn:
            raise Broken(f"steer: word {mail} of agent {agent} was not withdrawn, and is said to be")

    def check(self) -> None:
        """Check that receipts are right, and that each stored steering message is unread, entered or withdrawn."""
        for _, agent, receipt in self.receipts:
            if not receipt.kept.done() or receipt.kept.exception() is not None:
                continue
            mail, listener = receipt.kept.get(timeout=0), self.of(agent)
            known = mail in listener.unread, mail in listener.entered, (agent, mail) in self._withdrawn
            dead = self._agents[agent].status == "dead"
            if known.count(True) != 1 and not dead:
                raise Broken(f"steer: word {mail} of agent {agent} was kept, and is nowhere or twice: {known}")
            if receipt.done():
                self._check_receipt(receipt, agent, mail, listener)

    def _check_receipt(self, receipt: Receipt, agent: str, mail: int, listener: Listener) -> None:
        error = receipt.exception()
        if error is None and listener.entered.get(mail) != receipt.get(timeout=0):
            promised, entered = receipt.get(timeout=0), listener.entered.get(mail)
            raise Broken(f"steer: word {mail} of agent {agent} is at {entered}, and its receipt says {promised}")
        if isinstance(error, Withdrawn) and (agent, mail) not in self._withdrawn:
            raise Broken(f"steer: word {mail} of agent {agent} was not withdrawn, and its receipt says so")
        if isinstance(error, AgentDead) and self._agents[agent].status != "dead":
            raise Broken(f"steer: agent {agent} lives, and the receipt of word {mail} says otherwise: {error}")

    def check_rest(self, running: set[Any]) -> None:
        """Check that the senders in these processes have a receipt for each message that has entered.

        Call it when nothing can happen any more.
        """
        self.check()
        for asked, agent, receipt in self.receipts:
            if asked not in running or receipt.done() or not receipt.kept.done():
                continue
            mail = receipt.kept.get(timeout=0)
            if mail in self.of(agent).entered:
                raise Broken(f"steer: word {mail} of agent {agent} has entered, and who waits for it was not told")
            if (agent, mail) in self._withdrawn:
                raise Broken(f"steer: word {mail} of agent {agent} was withdrawn, and nobody asked for that")
