"""Counters of an agent's work and waits.

The agent's actor counts from its start on this host, at a boot or at the agent's fork. The counters are not stored,
except how often the agent was restarted. `SystemStatistics` has the sums for a whole host.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ikigai_actors import types
from ikigai_actors.actors.clock import Clock
from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.errors import IkigaiError
from ikigai_actors.frozen import maker
from ikigai_actors.providers.base import NO_TOKENS, Reply, Request, Spent, Usage
from ikigai_actors.records.hosts.liveness import LATELY, Sign


@dataclass(frozen=True, slots=True)
class AgentStatistics:
    """Counters of one agent: its present state, and its work since its actor was started on this host."""

    state: str
    """``idle``, ``waiting for the model``, ``running tools``, ``waits for`` other agents or a service, or
    ``interrupted``; for an agent that does not run, its status, such as ``stopped``.
    """
    since: int
    """When that state began, in milliseconds since 1970 (UTC); never before the host's boot."""
    inbox: int
    """The number of messages that wait in the inbox, or for the end of the agent's turn."""
    turns: int
    """The number of turns that have ended, in any way."""
    steps: int
    """The number of requests that were sent to a model."""
    tokens: Usage
    """The tokens of the replies that were received, as the providers reported them."""
    waiting_for_model: float
    """The sum of the seconds between each request and its reply or end, including the request in flight."""
    waiting_for_tools: float
    """The sum of the seconds in which calls were carried out, including those in progress."""
    waiting_for_commit: float
    """The sum of the seconds between handing a unit to the journal and its verdict, including the unit in flight."""
    models: Mapping[str, Usage] = field(default_factory=dict)
    """The tokens by model, named as the providers do, so that prices can be applied."""
    restarts: int = 0
    """How many times the agent's supervisor has ever restarted it, on earlier hosts too. The registry keeps this
    count.
    """


_statistics = maker(AgentStatistics)

_CARRYING_OUT = (Phase.RUNNING_TOOLS, Phase.WAITING_FOR_APPROVAL)
"""The states in which calls are carried out."""


SIZE_OF_A_TOKEN = 4
"""The approximate number of characters of one token. Used for a reply in progress, since its token count comes at its
end.
"""


class Tally:
    """The counters of one agent, as its actor counts them. Any thread may read, and may miss the latest change.

    Times are stored as the sum of ends minus the sum of beginnings. For a period that is still open, reading adds the
    present time as its end.
    """

    __slots__ = (
        "_clock",
        "_commit",
        "_commit_since",
        "_model",
        "_model_since",
        "_pieces",
        "_sign",
        "_state",
        "_tools",
        "_tools_since",
        "_turn",
        "models",
        "since",
        "steps",
        "tokens",
        "turns",
        "uuid",
        "waits",
    )

    def __init__(self, uuid: str, clock: Clock, state: str = Phase.IDLE, turn: int = 0) -> None:
        self.uuid, self._clock, self._state, self._turn = uuid, clock, state, turn
        self._model = self._tools = self._commit = 0.0
        self._model_since: float | None = None
        self._tools_since: float | None = None
        self._commit_since: float | None = None
        self._sign = clock.monotonic()
        self._pieces: tuple[tuple[int, int], ...] = ()  # how much came in each of the latest seconds
        self.since = clock.now_ms()
        self.waits = 0
        self.turns = 0
        self.steps = 0
        self.tokens = NO_TOKENS
        self.models: Mapping[str, Usage] = {}

    def became(self, state: str, turn: int) -> None:
        """Note that the agent has another state, or another turn."""
        if self._turn and turn != self._turn:
            self.turns += 1
            self._pieces = ()
        self._turn = turn
        self._sign = now = self._clock.monotonic()
        if state != self._state:
            self._state, self.since = state, self._clock.now_ms()
            if self._tools_since is not None:
                self._tools += now - self._tools_since
            self._tools_since = now if state in _CARRYING_OUT else None

    def lives(self) -> None:
        """Record a heartbeat of the agent."""
        self._sign = self._clock.monotonic()

    def streamed(self, size: int) -> None:
        """Note that a piece of a reply has come, with this many characters."""
        self._sign = self._clock.monotonic()
        second, pieces = int(self._sign), self._pieces
        if pieces and pieces[-1][0] == second:
            self._pieces = (*pieces[:-1], (second, pieces[-1][1] + size))
        else:
            self._pieces = (*pieces[-LATELY:], (second, size))

    def sign(self) -> Sign:
        """The latest heartbeat of the agent, and the counts at that time."""
        now = self._clock.monotonic()
        lately = sum(size for second, size in self._pieces if second + 1 > now - LATELY)
        return Sign(max(0.0, now - self._sign), -(-lately // SIZE_OF_A_TOKEN))

    def asked(self) -> None:
        """Note that a request was sent to a model."""
        self._sign = self._model_since = self._clock.monotonic()
        self.steps += 1

    def answered(self, spent: Spent | None = None) -> None:
        """Note that the request to the model has ended, and its cost. A cancelled request may cost tokens, too."""
        self._model, self._model_since = self._until_now(self._model, self._model_since), None
        if spent is not None:
            self.tokens = self.tokens + spent.usage
            of_model = self.models.get(spent.model, NO_TOKENS)
            self.models = {**self.models, spent.model: of_model + spent.usage}

    def submitted(self) -> None:
        """Note that a unit of writes was handed to the journal."""
        self._commit_since = self._clock.monotonic()

    def settled(self) -> None:
        """Note that the journal has committed or refused the unit."""
        self._sign = now = self._clock.monotonic()
        if self._commit_since is not None:
            self._commit, self._commit_since = self._commit + now - self._commit_since, None

    def report(self, state: str, inbox: int) -> AgentStatistics:
        """Return the counters now, with the state and the inbox size that the actor passes."""
        return _statistics(
            state=state,
            since=self.since,
            inbox=inbox,
            turns=self.turns,
            steps=self.steps,
            tokens=self.tokens,
            waiting_for_model=self._until_now(self._model, self._model_since),
            waiting_for_tools=self._until_now(self._tools, self._tools_since),
            waiting_for_commit=self._until_now(self._commit, self._commit_since),
            models=self.models,
        )

    def commit_age(self) -> float:
        """The seconds for which the agent's unit has waited for the journal's verdict; 0 if none waits."""
        return self._until_now(0.0, self._commit_since)

    def _until_now(self, total: float, since: float | None) -> float:
        return total if since is None else total + self._clock.monotonic() - since


def total(tallies: list[Tally]) -> Usage:
    """Return the sum of the tokens of these agents."""
    tokens = NO_TOKENS
    for tally in tallies:
        if tally.tokens is not NO_TOKENS:
            tokens = tokens + tally.tokens
    return tokens


def total_by_model(tallies: Iterable[Tally]) -> dict[str, Usage]:
    """Return the sums of the tokens of these agents, by model."""
    models: dict[str, Usage] = {}
    for tally in tallies:
        for model, tokens in tally.models.items():
            models[model] = models.get(model, NO_TOKENS) + tokens
    return models


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStatistics:
    """Counters of the agents of a system, as far as this process has seen their work."""

    turns: int
    """The number of turns that have ended."""
    steps: int
    """The number of requests that were sent to models."""
    tokens: Usage
    """The tokens that the providers reported."""
    read_logs: int
    """The number of logs read from the store since the system was opened."""
    waits: int
    """The number of waits for mail or agents in progress."""
    models: Mapping[str, Usage] = field(default_factory=dict)
    """The tokens by model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemStatistics(TurnStatistics):
    """Counters of a host that runs agents, and of the work of its agents."""

    agents: int
    """The number of agents that this host runs, including those that sleep."""
    working: int
    """The number of agents whose turn is in progress."""
    ready: int
    """The number of agents that have work to do and wait for a worker."""
    inbox: int
    """The number of messages that wait, for all agents together."""
    journal: "types.JournalStatistics"
    """The counters of the journal, which writes to the database."""
    pending: int = 0
    """The number of prompts and commands that wait in memory for the end of a turn, or for a stopped agent to go on.
    They are lost if the process ends. Prompts that are kept in the database are not counted.
    """
    kept: int = 0
    """The number of prompts of this process that wait in the database, for a stopped agent to go on or for the end of a
    turn; and of unread steering messages.
    """
    queued: int = 0
    """The number of requests to models that wait for the limits of their provider."""
    put_off: int = 0
    """The number of requests to models that wait until their service accepts them again, or until a process with the
    program opens the database.
    """
    awake: int = 0
    """The number of agents that have an actor in memory."""
    journal_lag: float = 0.0
    """The longest time, in seconds, for which an agent's unit now waits for its commit."""
    abandoned: int = 0
    """The number of threads of plain tools that still run after their calls have ended or timed out."""


class Counting(Instrument):
    """The instrument that counts the work of agents for `AgentStatistics`."""

    _is_ours = True

    def request_begins(self, agent: Tally, request: Request) -> None:
        agent.asked()

    def request_ends(self, agent: Tally, answer: Reply | Exception | None, spent: Spent | None) -> None:
        agent.answered(spent)

    def piece_comes(self, agent: Tally, size: int) -> None:
        agent.streamed(size)

    def tool_begins(self, agent: Tally, tool: str, call: str, arguments: Mapping[str, Any]) -> None:
        agent.lives()

    def tool_ends(self, agent: Tally, tool: str, call: str, result: str | None) -> None:
        agent.lives()

    def wait_begins(self, agent: Tally, call: str) -> None:
        agent.waits += 1

    def wait_ends(self, agent: Tally, call: str) -> None:
        agent.waits -= 1
        agent.lives()

    def commit_begins(self, agent: Tally) -> None:
        agent.submitted()

    def commit_ends(self, agent: Tally, error: IkigaiError | None) -> None:
        agent.settled()

    def state_changes(self, agent: Tally, state: str, turn: int) -> None:
        agent.became(state, turn)
