"""The common part of the results of all experiments."""

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from html import escape

from ikigai_actors.behaviour.experiment import Experiment
from ikigai_actors.behaviour.facts import Facts, facts_of
from ikigai_actors.behaviour.forecasts import Forecast
from ikigai_actors.behaviour.pages import ExperimentReport
from ikigai_actors.errors import AgentDead, IkigaiError
from ikigai_actors.reach.trials import end_agent


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExperimentResult(ABC):
    """The outcome of an experiment, of any verb, with its reports."""

    experiment: Experiment
    """The agent that is the experiment; the trials are its children."""

    def text(self) -> str:
        """Return the result as lines of text."""
        return "\n".join(self._report(self._facts()).text)

    def html(self) -> str:
        """Return one self-contained HTML page: the result, the trials, the time, the models and the cost."""
        facts = self._facts()
        return self._report(facts).html(facts.described())

    def _repr_html_(self) -> str | None:
        """Return the page for a notebook, in a frame in which no script runs.

        None if the facts cannot be read from the database; a notebook then shows a line.
        """
        try:
            page = self.html()
        except IkigaiError:
            return None
        return f'<iframe sandbox srcdoc="{escape(page)}" style="width:100%;height:32em;border:0"></iframe>'

    def json(self) -> str:
        """Return the whole result as JSON text."""
        facts = self._facts()
        return self._report(facts).json(facts.as_json())

    def _facts(self) -> Facts:
        return facts_of(self.experiment)

    @abstractmethod
    def _report(self, facts: Facts) -> ExperimentReport:
        """Return the report of the result, which each kind of experiment makes from its trials."""

    def __repr__(self) -> str:
        """Return one line of text, without the list of trials, which may be long."""
        return f"<{type(self).__name__} of {self.experiment.agent.uuid}: {len(self.experiment.book.judged):,} judged>"

    @property
    def resumed(self) -> bool:
        """Return whether the experiment had been begun before this call."""
        return self.experiment.resumed

    @property
    def ended(self) -> str:
        """Return ``budget``, ``stopped`` or ``dry run`` if the experiment ended before all trials were made.

        Return an empty text if the experiment made all trials.
        """
        return self.experiment.ended

    @property
    def forecast(self) -> Forecast:
        """Return the forecast before the first request of this call."""
        return self.experiment.forecast

    def end(self) -> None:
        """Kill the experiment and all its trials, if it lives. The histories can be read until they are pruned."""
        with suppress(AgentDead):
            end_agent(self.experiment.agent, "the experiment was ended", cascade=True)
