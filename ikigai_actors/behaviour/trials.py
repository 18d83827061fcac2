"""The start of a trial, and its outcome for a judge."""

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
    """A further prompt for a trial, sent when the prompt before is answered."""

    prompt: str
    data: Mapping[str, Any] = NO_DATA
    """The data of the prompt."""


class TrialStart(NamedTuple):
    """The start of a trial: the inherited history, the prompts, and the settings."""

    of: str
    """The uuid of the agent whose history the trial inherits."""
    at: int
    """The last inherited position."""
    prompt: str | None
    data: Mapping[str, Any] = NO_DATA
    """The data of the first prompt."""
    settings: Mapping[str, Any] = NO_DATA
    """Settings that differ from those at the inherited position, ``effects`` included."""
    go: bool = False
    """Whether the trial goes on at once from the end of its history, without a prompt."""
    begin: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    """Copies of messages that the trial begins with: see `TrialBirth.begin`."""
    then: tuple[FollowUp, ...] = ()
    """The prompts after the first one. Only the last answer is judged."""
    recorded: Turn | None = None
    """The recorded turn that the trial replays; None for none."""


def started(system: System, of: str, at: int, continuation: Continuation, settings: Mapping[str, Any]) -> TrialStart:
    """Return the start of a trial that continues a position with a prompt, or with `GO` without one.

    Raises `BadInput` if `GO` is given where no prompt or result waits for an answer.
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
    """The agent of the trial."""
    reply: Reply | None
    """The reply; None if the trial's turn failed."""
    error: IkigaiError | None = None
    """The error of the failed turn; None if there is a reply."""
    recorded: Turn | None = None
    """The recorded turn that the trial replays; None for trials that replay none."""

    @property
    def text(self) -> str:
        """Return the text of the reply; empty if there is none."""
        return "" if self.reply is None else self.reply.text

    @property
    def diverged(self) -> bool:
        """Return whether the model made a call that is not in the record."""
        return isinstance(self.error, ReplayDiverged)


Judge = Callable[[TrialRun], Any]
"""A function that returns a number, True or False, a `Verdict`, None for not judged, or a future of one of these."""


class JudgeAsked(NamedTuple):
    """The pending answer of a judge that has asked a model."""

    agent: AgentRef
    """The agent that the judge has asked."""
    verdict: Callable[[], Verdict]
    """A function that returns the verdict, once the asked agent is idle."""


def settled(said: object, of: Callable[[Verdict], Verdict] = lambda verdict: verdict) -> Verdict | JudgeAsked:
    """Return the result of a judge, after waiting if it is a future. Raises `BadInput` for an invalid result.

    ``of`` is applied to the verdict.
    """
    if isinstance(said, JudgeAsked):
        verdict = said.verdict
        return JudgeAsked(said.agent, lambda: of(verdict()))
    if isinstance(said, Future):
        said = said.get()
    elif isinstance(said, concurrent.futures.Future):
        said = said.result()
    return of(verdict_of(said))


OnTrial = Callable[[TrialRun, Verdict], object]
"""A function that is called with each judged trial and its verdict."""
