"""What the results of all experiments have in common."""

from contextlib import suppress
from dataclasses import dataclass

from ikigai_actors.behaviour.experiment import Experiment
from ikigai_actors.behaviour.forecasts import Forecast
from ikigai_actors.errors import AgentDead


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExperimentResult:
    """What came of an experiment."""

    experiment: Experiment
    """The experiment: an agent, whose children the trials are."""

    def __repr__(self) -> str:
        """A line: lists of trials may be long."""
        return f"<{type(self).__name__} of {self.experiment.agent.uuid}: {len(self.experiment.book.judged):,} judged>"

    @property
    def resumed(self) -> bool:
        """Whether it was begun before."""
        return self.experiment.resumed

    @property
    def ended(self) -> str:
        """Why it has ended before all was tried: ``budget``, ``stopped`` or ``dry run``; empty when it has not."""
        return self.experiment.ended

    @property
    def forecast(self) -> Forecast:
        """What was still to be asked before the first request of this call."""
        return self.experiment.forecast

    def end(self) -> None:
        """End the experiment and all its trials, if it lives. Their histories can be read until they are pruned."""
        with suppress(AgentDead):
            self.experiment.agent.kill(cascade=True, reason="the experiment was ended")
