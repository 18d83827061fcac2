"""What a meter of OpenTelemetry gets of requests, calls, commits and restarts."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, FunctionProvider, ProviderError, Reply, Request, ToolCall, Usage, tool
from ikigai_actors.sight import Metering

TIMEOUT = 60


class Kept:
    """Keeps what one instrument of a meter is given."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.values: list[tuple[float, Mapping[str, str]]] = []

    def record(self, value: float, attributes: Mapping[str, str]) -> None:
        self.values.append((value, attributes))

    def add(self, value: float) -> None:
        self.values.append((value, {}))


class KeepingMeter:
    """A meter that exports nothing and keeps everything."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}

    def create_histogram(
        self, name: str, unit: str, description: str, explicit_bucket_boundaries_advisory: Sequence[float]
    ) -> Kept:
        assert description.endswith(".")
        assert list(explicit_bucket_boundaries_advisory) == sorted(explicit_bucket_boundaries_advisory)
        return self.kept.setdefault(name, Kept(unit))

    def create_counter(self, name: str, unit: str, description: str) -> Kept:
        assert description.endswith(".")
        return self.kept.setdefault(name, Kept(unit))


@tool
def look(at: str) -> str:
    """Look."""
    return at


def answer(request: Request) -> Reply:
    match len(request.messages):
        case 1:
            return Reply("", (ToolCall("look", {"at": "a"}, "1"),), usage=Usage(10, 2, 0, 5), model="big-2")
        case 3:
            return Reply("done", usage=Usage(20, 3), model="big-2")
        case _:
            raise ProviderError("The service is closed.")


def meters_of_one_agent() -> dict[str, Kept]:
    meter: Any = KeepingMeter()
    with ActorSystem.open(":memory:", FunctionProvider(answer), tools=[look], instruments=[Metering(meter)]) as system:
        system.root.configure(model="function:big")
        system.root.prompt("go").get(timeout=TIMEOUT)
        with pytest.raises(ProviderError):
            system.root.prompt("again").get(timeout=TIMEOUT)
    return dict(meter.kept)


def test_requests_calls_and_commits_are_measured_by_their_model_and_tool() -> None:
    kept = meters_of_one_agent()
    asked = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "big"}
    answered = {**asked, "gen_ai.response.model": "big-2"}
    durations = kept["gen_ai.client.operation.duration"]
    assert durations.unit == "s"
    assert [facts for _, facts in durations.values] == [
        answered,
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"},
        answered,
        {**asked, "error.type": "provider_error"},
    ]
    assert all(0 <= seconds < TIMEOUT for seconds, _ in durations.values)
    tokens = kept["gen_ai.client.token.usage"]
    assert [(value, facts["gen_ai.token.type"]) for value, facts in tokens.values] == [
        (15, "input"),
        (2, "output"),
        (20, "input"),
        (3, "output"),
    ]
    assert {facts["gen_ai.response.model"] for _, facts in tokens.values} == {"big-2"}
    assert len(kept["ikigai.commit.duration"].values) >= 4
    assert not kept["ikigai.restarts"].values


def test_a_restart_is_counted() -> None:
    meter: Any = KeepingMeter()
    failures = iter([RuntimeError("a fault of the program"), None])

    def fails_once(request: Request) -> Reply:
        if (failure := next(failures)) is not None:
            raise failure
        return Reply("done")

    with ActorSystem.open(":memory:", FunctionProvider(fails_once), instruments=[Metering(meter)]) as system:
        assert system.root.fork("go", name="worker").reply(timeout=TIMEOUT).text == "done"
    assert [value for value, _ in meter.kept["ikigai.restarts"].values] == [1]


def test_what_is_no_meter_is_refused() -> None:
    with pytest.raises(BadInput, match="Expected a meter"):
        Metering("http://localhost:4318")


def test_a_real_meter_takes_them() -> None:
    metrics = pytest.importorskip("opentelemetry.metrics")
    with ActorSystem.open(":memory:", "offline", instruments=[Metering(metrics.get_meter("team"))]) as system:
        assert system.root.prompt("go").get(timeout=TIMEOUT).text
