"""Metrics for Prometheus: figures of a database, and of this process if it is the host.

    GET /metrics, with the token    ikigai_hosts{state="runs"} 1 …

Figures of the database are read at one moment, in a few milliseconds, also by an attached observer. Figures of the
journal are available only in the host's own process.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ikigai_actors.agent.statistics import SystemStatistics
from ikigai_actors.providers.prices import MICRO
from ikigai_actors.reach.views import SystemFigures, figures_of
from ikigai_actors.system.handles.ref import System

EXPOSITION = "text/plain; version=0.0.4"
"""The content type of `exposition`."""

GAUGE, COUNTER = "gauge", "counter"

_SILENT = 60.0
"""Seconds without a heartbeat after which a turn is counted as silent."""

_STATES = ("runs", "drains", "silent", "ended")
_STATUSES = ("running", "stopped", "terminating", "dead")


MetricLabels = tuple[tuple[str, str], ...]
"""The labels of a metric's value, each as its name and value."""


class Metric(NamedTuple):
    """A metric for Prometheus: its name, kind and help, and its values by labels."""

    name: str
    kind: str
    help: str
    values: Mapping[MetricLabels, float]


def read_metrics(system: System) -> list[Metric]:
    """Return the metrics of a system now. Raises `StoreError` when the database does not answer."""
    seen = figures_of(system, _SILENT)
    gauges, silent = seen.gauges, seen.silent
    pending = system.approvals.pending()
    waiting = [seen.asked.get((call.agent, call.id), gauges.now) for call in pending]
    for call in pending:
        silent.pop(call.agent, None)
    metrics = [
        *_of_agents(seen),
        *_of_hosts(seen),
        _one("ikigai_asking", GAUGE, "Calls that wait for a decision.", len(waiting)),
        _one(
            "ikigai_asking_oldest_seconds",
            GAUGE,
            "Seconds for which the call has waited that waits longest for a decision.",
            _seconds(gauges.now, min(waiting, default=None)),
        ),
    ]
    metrics += [
        _one("ikigai_turns_silent", GAUGE, f"Turns without a heartbeat for {_SILENT:.0f} s.", len(silent)),
        _one(
            "ikigai_turns_silent_oldest_seconds",
            GAUGE,
            "Seconds since the latest heartbeat of the turn that has given none for longest.",
            max(silent.values(), default=0.0),
        ),
    ]
    statistics = None if system.attached else system.statistics()
    return metrics + (_of_host(statistics) if isinstance(statistics, SystemStatistics) else [])


def exposition(metrics: Iterable[Metric]) -> str:
    """Return the metrics in Prometheus's text format."""
    lines = []
    for metric in metrics:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        for labels, value in metric.values.items():
            pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
            lines.append(f"{metric.name}{'{' + pairs + '}' if pairs else ''} {value:.15g}")
    return "\n".join([*lines, ""])


def _of_agents(seen: SystemFigures) -> list[Metric]:
    gauges = seen.gauges
    agents = _by("status", {status: gauges.agents.get(status, 0) for status in _STATUSES})
    return [
        Metric("ikigai_agents", GAUGE, "Agents, by status.", agents),
        _one("ikigai_turns_open", GAUGE, "Agents whose turn is open.", gauges.turns),
        _one("ikigai_turns_parked", GAUGE, "Turns of programs that only wait, as rows.", gauges.parked),
        _one("ikigai_turns_cut_off", GAUGE, "Turns that were cut off, and with which no host goes on.", gauges.cut_off),
        _one("ikigai_mail_unread", GAUGE, "Mails that nobody has read.", gauges.unread),
        _one("ikigai_tokens_total", COUNTER, "Tokens of requests to models.", gauges.tokens),
        _one("ikigai_cost_dollars_total", COUNTER, "Dollars of requests to models with prices.", gauges.usd / MICRO),
        _one("ikigai_restarts_total", COUNTER, "Restarts of agents by their supervisors.", gauges.restarts),
        _one("ikigai_budget_paused", GAUGE, "Agents whose request waits for a budget.", gauges.paused),
        _one(
            "ikigai_budget_paused_oldest_seconds",
            GAUGE,
            "Seconds for which the request has waited that waits longest for a budget.",
            _seconds(gauges.now, gauges.paused_since),
        ),
        _one("ikigai_prompts_waiting", GAUGE, "Prompts of other processes that no agent has taken up.", gauges.prompts),
    ]


def _of_hosts(seen: SystemFigures) -> list[Metric]:
    hosts = seen.hosts
    states = _by("state", {state: sum(host.state == state for host in hosts) for state in _STATES})
    leased = {host.called: (host.age, host.lease_until - host.now) for host in hosts if host.ended_at is None}
    ages = {host: (age, age + left) for host, (age, left) in leased.items() if age is not None}
    since = _by("host", {host: age / 1000 for host, (age, _) in ages.items()})
    leases = _by("host", {host: lease / 1000 for host, (_, lease) in ages.items()})
    return [
        Metric("ikigai_hosts", GAUGE, "Hosts of the last hour, by state.", states),
        _one("ikigai_tools_differing", GAUGE, "Tools that living hosts do not have alike.", len(seen.differences)),
        Metric("ikigai_host_lease_age_seconds", GAUGE, "Seconds since a host has renewed its lease.", since),
        Metric("ikigai_host_lease_seconds", GAUGE, "Seconds for which a renewed lease lasts.", leases),
    ]


def _of_host(statistics: SystemStatistics) -> list[Metric]:
    journal = statistics.journal
    return [
        _one("ikigai_journal_queued", GAUGE, "Units that wait for their transaction.", journal.queued),
        _one(
            "ikigai_journal_lag_seconds",
            GAUGE,
            "Seconds for which the unit has waited that waits longest for its commit.",
            statistics.journal_lag,
        ),
        _one("ikigai_journal_units_total", COUNTER, "Units that were committed.", journal.units),
        _one("ikigai_journal_retries_total", COUNTER, "Transactions that were tried again.", journal.retries),
        _one("ikigai_turns_total", COUNTER, "Turns that ended on this host.", statistics.turns),
        _one("ikigai_requests_total", COUNTER, "Requests to models by this host.", statistics.steps),
        _one("ikigai_requests_queued", GAUGE, "Requests that wait for the limits of a provider.", statistics.queued),
        _one("ikigai_requests_put_off", GAUGE, "Requests that wait for their service or program.", statistics.put_off),
    ]


def _by(label: str, values: Mapping[str, float]) -> dict[MetricLabels, float]:
    return {((label, text),): value for text, value in values.items()}


def _one(name: str, kind: str, description: str, value: float) -> Metric:
    return Metric(name, kind, description, {(): float(value)})


def _seconds(now: int, since: int | None) -> float:
    return 0.0 if since is None else max(0, now - since) / 1000


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
