"""Counters of what an agent has done and waited for.

Its actor counts from its start on this host: the boot that brought the agent back, or the agent's fork. Nothing of it
is stored, except how often the agent was restarted. `SystemStatistics` sums it up for a whole host.
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
    """Counters of one agent: its present work, and its work since its actor was started on this host."""

    state: str
    """``idle``, ``waiting for the model``, ``running tools``, ``waits for`` other agents or a service, or
    ``interrupted``; of one that does not run its status, as ``stopped``.
    """
    since: int
    """When that state began, in milliseconds since 1970 (UTC); for an agent that came back, not before the boot."""
    inbox: int
    """Messages that wait in the inbox, or for the end of the agent's turn."""
    turns: int
    """Turns that ended, however they did."""
    steps: int
    """Requests that were sent to a model."""
    tokens: Usage
    """Tokens of the replies that were received, as the providers reported them."""
    waiting_for_model: float
    """Seconds between each request and its reply, or its end; the request in flight included."""
    waiting_for_tools: float
    """Seconds in which the calls of replies were carried out; those in progress included."""
    waiting_for_commit: float
    """Seconds between handing a unit to the journal and its verdict; the unit in flight included."""
    models: Mapping[str, Usage] = field(default_factory=dict)
    """The tokens by model, as the providers name the models, so that they can be priced."""
    restarts: int = 0
    """How often its supervisor restarted it, ever, on earlier hosts too: the registry counts."""


_statistics = maker(AgentStatistics)

_CARRYING_OUT = (Phase.RUNNING_TOOLS, Phase.WAITING_FOR_APPROVAL)
"""The states in which calls are carried out."""


SIZE_OF_A_TOKEN = 4
"""Characters of a reply, about: the number of its tokens comes at its end."""


class Tally:
    """The counters of one agent. Its actor counts; any thread may read, and at worst misses what happens this moment.

    Times are sums of ends minus sums of beginnings. A stretch that is not over yet lacks its end: reading adds the
    present moment.
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
        """Begin to count for an agent, in this state and open turn."""
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
        """Count a change of the agent's state, or of its turn."""
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
        """Something has happened that shows that the agent is at work."""
        self._sign = self._clock.monotonic()

    def streamed(self, size: int) -> None:
        """A piece of a reply has come, of this many characters."""
        self._sign = self._clock.monotonic()
        second, pieces = int(self._sign), self._pieces
        if pieces and pieces[-1][0] == second:
            self._pieces = (*pieces[:-1], (second, pieces[-1][1] + size))
        else:
            self._pieces = (*pieces[-LATELY:], (second, size))

    def sign(self) -> Sign:
        """The latest heartbeat."""
        now = self._clock.monotonic()
        lately = sum(size for second, size in self._pieces if second + 1 > now - LATELY)
        return Sign(max(0.0, now - self._sign), -(-lately // SIZE_OF_A_TOKEN))

    def asked(self) -> None:
        """A request was sent."""
        self._sign = self._model_since = self._clock.monotonic()
        self.steps += 1

    def answered(self, spent: Spent | None = None) -> None:
        """The request has its reply, or the agent waits for it no more. Both may have cost tokens."""
        self._model, self._model_since = self._until_now(self._model, self._model_since), None
        if spent is not None:
            self.tokens = self.tokens + spent.usage
            of_model = self.models.get(spent.model, NO_TOKENS)
            self.models = {**self.models, spent.model: of_model + spent.usage}

    def submitted(self) -> None:
        """A unit was handed to the journal."""
        self._commit_since = self._clock.monotonic()

    def settled(self) -> None:
        """The unit has its verdict."""
        self._sign = now = self._clock.monotonic()
        if self._commit_since is not None:
            self._commit, self._commit_since = self._commit + now - self._commit_since, None

    def report(self, state: str, inbox: int) -> AgentStatistics:
        """The counters now, with the state and inbox that the actor gives."""
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
        """Seconds for which its unit waits for the journal's verdict; 0 where none does."""
        return self._until_now(0.0, self._commit_since)

    def _until_now(self, total: float, since: float | None) -> float:
        return total if since is None else total + self._clock.monotonic() - since


def total(tallies: list[Tally]) -> Usage:
    """The tokens of all these agents."""
    tokens = NO_TOKENS
    for tally in tallies:
        if tally.tokens is not NO_TOKENS:
            tokens = tokens + tally.tokens
    return tokens


def total_by_model(tallies: Iterable[Tally]) -> dict[str, Usage]:
    """The tokens of all these agents, by model."""
    models: dict[str, Usage] = {}
    for tally in tallies:
        for model, tokens in tally.models.items():
            models[model] = models.get(model, NO_TOKENS) + tokens
    return models


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStatistics:
    """Counters of the agents of a system, as far as this process has seen them."""

    turns: int
    """Turns that ended, of the agents that this host runs."""
    steps: int
    """Requests that were sent to models."""
    tokens: Usage
    """Tokens that the providers reported."""
    read_logs: int
    """Logs read from the store since open."""
    waits: int
    """Waits for mail or agents that are in progress."""
    models: Mapping[str, Usage] = field(default_factory=dict)
    """The tokens by model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemStatistics(TurnStatistics):
    """Counters of a system that runs agents."""

    agents: int
    """Agents that this host runs, those that sleep too."""
    working: int
    """Agents whose turn is in progress."""
    ready: int
    """Agents that have something to do and wait for a worker."""
    inbox: int
    """Messages that wait, for all agents together."""
    journal: "types.JournalStatistics"
    """The journal, which writes."""
    pending: int = 0
    """Prompts and commands that wait in memory for the end of a turn, or for a stopped agent to go on: lost with the
    process. Prompts that are kept in the database are not counted.
    """
    kept: int = 0
    """Prompts of this process that wait in the database, for a stopped agent to go on or for the end of a turn, and
    unread words to its agents.
    """
    queued: int = 0
    """Requests to models that wait for the limits of their provider."""
    put_off: int = 0
    """Requests to models that wait until their service takes them again."""
    awake: int = 0
    """Agents that have an actor in memory."""
    journal_lag: float = 0.0
    """Seconds for which the unit of an agent has waited that waits longest for its commit."""
    abandoned: int = 0
    """Threads of plain tools that have gone on past the time-out or the end of their calls, and run still."""


class Counting(Instrument):
    """Counts: the figures of `AgentStatistics`."""

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
