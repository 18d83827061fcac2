"""Where a trial begins, and what comes of it."""

import concurrent.futures
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.actors.futures import Future
from ikigai_actors.behaviour.plans.plan import GO, Continuation, Trial, Verdict, verdict_of
from ikigai_actors.behaviour.turns import Turn
from ikigai_actors.errors import IkigaiError, ReplayDiverged
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.trials import asked_there
from ikigai_actors.system.handles.ref import AgentRef, System


class FollowUp(NamedTuple):
    """A prompt that a trial gets when it has answered the one before."""

    prompt: str
    data: Mapping[str, Any] = NO_DATA
    """As the data of a prompt."""


class TrialStart(NamedTuple):
    """Where a trial begins, and how."""

    of: str
    """The agent whose history it inherits, by uuid."""
    at: int
    """The last position that it inherits."""
    prompt: str | None
    data: Mapping[str, Any] = NO_DATA
    """As the data of a prompt."""
    settings: Mapping[str, Any] = NO_DATA
    """The settings that differ from those at that position; `effects` among them."""
    go: bool = False
    """Whether it goes on at once with what its history ends with, without a prompt."""
    begin: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    """Copies of messages that it begins with: `TrialBirth.begin`."""
    then: tuple[FollowUp, ...] = ()
    """The prompts afterwards. None has a verdict of its own: the last answer is judged."""
    recorded: Turn | None = None
    """As `TrialRun.recorded`."""


def started(system: System, of: str, at: int, continuation: Continuation, settings: Mapping[str, Any]) -> TrialStart:
    """Where a trial begins that goes on from a position: with a prompt, or with `GO` with what the history ends with.

    Raises `BadInput` when that waits for no answer.
    """
    if continuation is not GO:
        return TrialStart(of, at, str(continuation), settings=settings)
    return TrialStart(of, at, None, asked_there(system, of, at), settings, go=True)


@dataclass(frozen=True, slots=True)
class TrialRun:
    """The outcome of a trial, for a judge and for `on_trial`."""

    trial: Trial
    """The trial, as the plan asked for it."""
    agent: AgentRef
    """The agent that it is."""
    reply: Reply | None
    """The reply; None when its turn failed."""
    error: IkigaiError | None = None
    """Why it has none."""
    recorded: Turn | None = None
    """The recorded turn that it replays; None for trials that replay none."""

    @property
    def text(self) -> str:
        """The text of its reply; empty when it has none."""
        return "" if self.reply is None else self.reply.text

    @property
    def diverged(self) -> bool:
        """Whether its model has called what the record does not have."""
        return isinstance(self.error, ReplayDiverged)


Judge = Callable[[TrialRun], Any]
"""Returns a number, True or False, a `Verdict`, None for what it cannot judge, or a future of one of these."""


class JudgeAsked(NamedTuple):
    """The answer of a judge that has asked a model: the driver waits for it, as for a trial."""

    agent: AgentRef
    """The agent that answers."""
    verdict: Callable[[], Verdict]
    """Gives the verdict, when that agent has nothing to do."""


def settled(said: object, of: Callable[[Verdict], Verdict] = lambda verdict: verdict) -> Verdict | JudgeAsked:
    """The answer of a judge, through its future; ``of`` is applied to the verdict. Raises `BadInput`."""
    if isinstance(said, JudgeAsked):
        verdict = said.verdict
        return JudgeAsked(said.agent, lambda: of(verdict()))
    if isinstance(said, Future):
        said = said.get()
    elif isinstance(said, concurrent.futures.Future):
        said = said.result()
    return of(verdict_of(said))


OnTrial = Callable[[TrialRun, Verdict], object]
"""Hears of each trial that was judged."""
