"""Follows a turn, or a steering message, of an agent that another process runs, by that agent's commits. Pure.

    turn = RemoteTurn(uuid, prompt=3)           # the turn that mail 3 of kind ``prompt`` will open
    turn = RemoteTurn(uuid, turn=17)            # the one that message 17 has opened
    outcome = turn.follow(news)                # None while it is not over

The same news may be passed twice. No news may be missing, from the message before the one that opens the turn on.
"""

from ikigai_actors.errors import AgentDead, ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import outcome_of
from ikigai_actors.records.messages.steered import Steered, steered_in
from ikigai_actors.system.remote.follower import News

TurnEnd = Reply | ProviderError | TurnInterrupted | AgentDead
"""The ways in which a turn ends. `AgentDead` means that its agent died before the turn began."""


class RemoteTurn:
    """A turn of an agent that another process runs, followed by the agent's messages."""

    def __init__(self, agent: str, *, prompt: int = 0, turn: int = 0) -> None:
        """Make the object that waits for the end of a turn.

        Args:
            agent: the agent of the turn, by uuid.
            prompt: the number of the mail whose prompt opens the turn; 0 if ``turn`` is given.
            turn: the message that has opened it; 0 when that did not happen yet.
        """
        self.agent, self.prompt, self._turn = agent, prompt, turn
        self._messages: dict[int, Message] = {}
        self._over = False  # another turn has begun

    @property
    def begun(self) -> bool:
        """Whether the turn has begun."""
        return self._turn > 0

    def follow(self, news: News) -> TurnEnd | None:
        """Return the outcome of the turn if these news have it; else None."""
        if self.agent not in news.turns:
            return None
        for message in news.messages:
            if message.agent_uuid == self.agent:
                self._take(message)
        reason = next((death.reason for death in news.died if death.agent_uuid == self.agent), None)
        if reason is None and (not self.begun or news.turns[self.agent] == self._turn):
            return None
        outcome = outcome_of(self._messages[number] for number in sorted(self._messages, reverse=True))
        if isinstance(outcome, Reply) and outcome.stop_reason == "tool_use":
            outcome = None  # its calls were cut off
        if outcome is not None:
            return outcome
        if reason is not None:
            return AgentDead(f"The agent is dead: {reason or 'no reason is known'}.", self.agent)
        return TurnInterrupted("The turn was interrupted.", self.agent)

    def _take(self, message: Message) -> None:
        if message.kind == Kind.USER:
            if self.prompt and message.data.get("mail") == self.prompt:
                self._turn = message.id
            else:
                self._over = self._over or message.id > self._turn > 0
        elif message.id > self._turn > 0 and not self._over:
            self._messages[message.id] = message


class RemoteWord:
    """A steering message to an agent that another process runs, until the message enters the history."""

    def __init__(self, agent: str, mail: int) -> None:
        """Make the object that waits for the steering message in this mail to enter the history."""
        self.agent, self._mail = agent, mail

    def follow(self, news: News) -> Steered | AgentDead | None:
        """Return the position of the steering message in the history, or `AgentDead`; None if the news have neither."""
        for message in news.messages:
            if message.agent_uuid == self.agent and (steered := steered_in(message)) and steered[0] == self._mail:
                return steered[1]
        reason = next((death.reason for death in news.died if death.agent_uuid == self.agent), None)
        if reason is None:
            return None
        return AgentDead(f"The agent is dead: {reason or 'no reason is known'}.", self.agent)
