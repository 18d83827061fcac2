"""Metrics of OpenTelemetry about the agents of this host, measured as they work.

    with ActorSystem.open("team.db", instruments=[Metering(metrics.get_meter("my-team"))]) as system:
        ...

`reach/metrics.py` reads a database; a `Metering` measures one process. So a `Metering` has the durations of requests
and commits, which are not stored. Other hosts report their own with their own meters.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ikigai_actors.actors.clock import Clock, SystemClock
from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.providers.base import Reply, Request, Spent
from ikigai_actors.sight.traces import conventions as name
from ikigai_actors.sight.traces.spans import all_input

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The bounds of histogram buckets that OpenTelemetry's conventions advise for the duration of a request, in seconds."""
_TOKENS = tuple(4**power for power in range(14))
"""The bounds of histogram buckets that OpenTelemetry's conventions advise for the tokens of a request."""


class Metering(Instrument):
    """Measures requests, tokens, calls, commits and restarts of this host's agents by a meter of OpenTelemetry.

    ``gen_ai.client.operation.duration`` (seconds, of requests and of calls of tools) and ``gen_ai.client.token.usage``
    are those of OpenTelemetry's conventions for generative AI. The metrics ``ikigai.commit.duration`` (seconds) and
    ``ikigai.restarts`` are our own.
    """

    def __init__(self, meter: "Meter", clock: Clock | None = None) -> None:
        """Make the instruments of this meter. Raises `BadInput` if it is no meter."""
        if not callable(getattr(meter, "create_histogram", None)):
            raise BadInput(f"Expected a meter, as opentelemetry.metrics.get_meter(…) gives it; got {shown(meter)}.")
        self._clock = clock or SystemClock()
        self._begun: dict[_Work, tuple[float, dict[str, str]]] = {}
        self._operations = _histogram(meter, name.OPERATION_DURATION, "s", "How long a request or a call took.")
        self._tokens = _histogram(meter, name.TOKEN_USAGE, "{token}", "Tokens of a request.")
        self._commits = _histogram(meter, "ikigai.commit.duration", "s", "How long a commit took.")
        self._restarts = meter.create_counter("ikigai.restarts", "{restart}", "Restarts of agents by supervisors.")

    def request_begins(self, agent: Tally, request: Request) -> None:
        model = {name.REQUEST_MODEL: request.model} if request.model else {}
        self._begin((agent.uuid, name.CHAT), {name.OPERATION: name.CHAT, **model})

    def request_ends(self, agent: Tally, answer: Reply | Exception | None, spent: Spent | None) -> None:
        seconds, facts = self._end((agent.uuid, name.CHAT))
        if spent is not None:
            answered = {name.REQUEST_MODEL: spent.model, name.RESPONSE_MODEL: spent.model} if spent.model else {}
            facts = {**answered, **facts}
            self._tokens.record(all_input(spent), {**facts, name.TOKEN_TYPE: "input"})
            self._tokens.record(spent.usage.output_tokens, {**facts, name.TOKEN_TYPE: "output"})
        if not isinstance(answer, Reply):
            facts[name.ERROR_TYPE] = "interrupted" if answer is None else "provider_error"
        self._operations.record(seconds, facts)

    def tool_begins(self, agent: Tally, tool: str, call: str, arguments: Mapping[str, Any]) -> None:
        self._begin((agent.uuid, call), {name.OPERATION: name.EXECUTE_TOOL, name.TOOL_NAME: tool})

    def tool_ends(self, agent: Tally, tool: str, call: str, result: str | None) -> None:
        seconds, facts = self._end((agent.uuid, call))
        self._operations.record(seconds, facts if result is not None else {**facts, name.ERROR_TYPE: "interrupted"})

    def commit_begins(self, agent: Tally) -> None:
        self._begin((agent.uuid, None), {})

    def commit_ends(self, agent: Tally, error: IkigaiError | None) -> None:
        seconds, _ = self._end((agent.uuid, None))
        self._commits.record(seconds, {} if error is None else {name.ERROR_TYPE: type(error).__name__})

    def restart_ends(self, agent: Tally) -> None:
        self._restarts.add(1)

    def _begin(self, work: "_Work", facts: dict[str, str]) -> None:
        self._begun[work] = self._clock.monotonic(), facts

    def _end(self, work: "_Work") -> tuple[float, dict[str, str]]:
        begun, facts = self._begun.pop(work)
        return self._clock.monotonic() - begun, facts


_Work = tuple[str, str | None]
"""The key of work in progress: an agent, and ``chat`` for its request, the id of a call, or None for its commit."""


def _histogram(meter: "Meter", name: str, unit: str, description: str) -> "Histogram":
    bounds = _SECONDS if unit == "s" else _TOKENS
    return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=bounds)
