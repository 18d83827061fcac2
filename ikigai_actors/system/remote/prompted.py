"""The turn of a prompt that was stored as mail: finds its end in the rows, for a caller who repeats the key.

turn = PromptedTurn(uuid, 7)
store.read(turn.current_end)               # None while mail 7 waits, or its turn is open; then its outcome

The object remembers the message that has opened the turn, so call it again and again. A resumed turn has the outcome of
its end. An undone turn counts as interrupted, even if it had a reply.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ikigai_actors.errors import AgentDead, IkigaiError, StoreError, TurnInterrupted, Withdrawn
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord, Died
from ikigai_actors.records.log.heads import heads_of, section
from ikigai_actors.records.mail.asked import AskedTurn
from ikigai_actors.records.mail.prompts import PromptTimes, prompt_times
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.remote.follower import CLOCK_MARGIN, News
from ikigai_actors.system.remote.turn import RemoteTurn, TurnEnd

_PAGE = 500
"""The number of messages that are read in one query."""


class CutOff(NamedTuple):
    """An open turn was cut off. Only the host that runs the agent knows whether it will be resumed."""


class PromptedTurn:
    """The turn that a prompt, stored as mail, opens. It is found in the rows of the agent's log."""

    def __init__(self, agent: str, mail: int, nobody: Callable[[], IkigaiError | None] = lambda: None) -> None:
        """Make the object; nothing is read yet.

        Args:
            agent: the agent of the turn, by uuid.
            mail: the number of the prompt.
            nobody: returns the error that no process answers the prompt; None while one may.
        """
        self._agent, self._mail, self._nobody = agent, mail, nobody
        self._opening = 0

    def current_end(self, tx: Transaction) -> TurnEnd | IkigaiError | CutOff | None:
        """Return the end of the turn, or `CutOff` if it was cut off; None while the turn waits or goes on.

        Raises `Withdrawn`, and `TurnInterrupted` where the history has nothing of the turn. Returns `NoHost` if no
        process runs the agents.
        """
        record = registry.get(tx, self._agent)
        if not self._opening:
            times = prompt_times(tx, self._agent, self._mail)
            if times is None:
                raise Withdrawn("The prompt was withdrawn.", self._agent)
            if times.read_at is None:
                return self._nobody() if record.living else _dead(record)
            self._opening = self._found(tx, record, times)
        if record.turn != self._opening:
            return self._end(tx, record)
        if record.cut_off:
            return CutOff()
        return self._nobody()

    def _found(self, tx: Transaction, record: AgentRecord, times: PromptTimes) -> int:
        """Return the id of the message that was made of the prompt. Raises `TurnInterrupted` if there is none."""
        end = heads_of(tx, [record.uuid])[0].position
        while end > record.fork_message_id:
            start = max(record.fork_message_id, end - _PAGE)
            part = section(tx, record.uuid, start, end)
            for message in reversed(part):
                if message.kind == Kind.USER and message.data.get("mail") == self._mail:
                    return message.id
            if not part or part[0].created_at < times.created_at - CLOCK_MARGIN:
                break
            end = start
        raise TurnInterrupted(f"Nothing is left of the turn of prompt {self._mail} of {record.short}.", record.uuid)

    def _end(self, tx: Transaction, record: AgentRecord) -> TurnEnd:
        messages: list[Message] = []
        undone, is_over, place = False, False, self._opening
        while part := section(tx, record.uuid, place, place + _PAGE):
            for message in part:
                is_over = is_over or message.kind == Kind.USER
                undone = undone or self._undoes(message)
                messages += [] if is_over else [message]
            place = part[-1].id
        died = [] if record.living else [Died(record.uuid, record.exit_cause or "", record.exit_reason or "")]
        news = News(messages, died, {record.uuid: record.turn}, ())
        end = RemoteTurn(record.uuid, turn=self._opening).follow(news) or _dead(record)
        if undone and isinstance(end, Reply):
            return TurnInterrupted(f"The turn was undone: {record.short} went back to before it.", record.uuid)
        return end

    def _undoes(self, message: Message) -> bool:
        """Whether a message, such as an undo, removes the turn from the history."""
        if message.kind != Kind.REWIND:
            return False
        to = message.data.get("before", message.data.get("mark"))
        return isinstance(to, int) and to <= self._opening


def end_of_turn(tx: Transaction, turn: AskedTurn) -> dict[str, Any]:
    """Return the end of the turn of a stored prompt as JSON data."""
    try:
        end = PromptedTurn(turn.agent, turn.prompt).current_end(tx)
    except StoreError:
        raise
    except IkigaiError as error:
        end = error
    match end:
        case Reply():
            fields = {"text": end.text, "stop_reason": end.stop_reason}
            return fields if end.output is None else {**fields, "output": end.output}
        case IkigaiError():
            return {"error": str(end)}
    return {"error": "The turn had ended, and somebody goes on with it."}


def _dead(record: AgentRecord) -> AgentDead:
    return AgentDead(f"Agent {record.short} is dead: {record.exit_reason or 'no reason is known'}.", record.uuid)
