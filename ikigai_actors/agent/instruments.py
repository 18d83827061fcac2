"""Instruments: their methods are called when a piece of an agent's work begins and ends, on the thread that does it.

    class Slow(Instrument):
        def request_begins(self, agent: "types.Tally", request: Request) -> None:
            self.began[agent.uuid] = monotonic()

A run has one `Instruments`, which calls for each hook only the instruments that override it. So unused hooks cost
nothing. The counters of agents (`agent.statistics.Counting`) are an instrument, and so is the trace of a simulation. A
hook must not wait, and must not change the run. If a hook fails, the failure is reported, and the run goes on.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ikigai_actors import types  # gives Tally, whose module imports this one
from ikigai_actors.arguments import check_type
from ikigai_actors.errors import IkigaiError
from ikigai_actors.providers.base import Reply, Request, Spent

logger = logging.getLogger(__name__)


class Instrument:
    """Observes the work of one host's agents. Override the hooks that you need.

    Each gets the agent's counters first.
    """

    _is_ours = False
    """Whether it belongs to the runtime: then its failure is one of the actor that calls it."""

    def request_begins(self, agent: "types.Tally", request: Request) -> None:
        """Called when a request is sent to a model."""

    def request_ends(self, agent: "types.Tally", answer: Reply | Exception | None, spent: Spent | None) -> None:
        """Called when the request was answered, failed, or was cancelled.

        ``answer`` is the reply or the error, None for a cancelled request; ``spent`` is the cost.
        """

    def request_runs(self, agent: "types.Tally", turn: int, number: int) -> None:
        """Called in the context in which the request is made: the provider sees context variables that are set here.

        ``turn`` is the position of the message that opened the turn, and ``number`` counts the turn's requests from 1;
        both are 0 outside of a turn.
        """

    def piece_comes(self, agent: "types.Tally", size: int) -> None:
        """Called when a piece of the reply has come; ``size`` is its number of characters."""

    def tool_begins(self, agent: "types.Tally", tool: str, call: str, arguments: Mapping[str, Any]) -> None:
        """Called when a tool begins to run for a call of a model; ``call`` is the id of the call."""

    def tool_runs(self, agent: "types.Tally", turn: int, reply: int, place: int) -> None:
        """Called in the context in which the tool runs: the tool sees context variables that are set here.

        ``turn`` is the position of the message that opened the turn, ``reply`` is the position of the reply with the
        call, and ``place`` is the index of the call in the reply.
        """

    def tool_ends(self, agent: "types.Tally", tool: str, call: str, result: str | None) -> None:
        """Called when a tool has returned the result of a call, or was cancelled (``result`` is None)."""

    def wait_begins(self, agent: "types.Tally", call: str) -> None:
        """Called when a call of a model begins to wait for agents or for mail."""

    def wait_ends(self, agent: "types.Tally", call: str) -> None:
        """Called when the call of the model no longer waits."""

    def commit_begins(self, agent: "types.Tally") -> None:
        """Called when the agent's writes are handed to the journal."""

    def commit_ends(self, agent: "types.Tally", error: IkigaiError | None) -> None:
        """Called when the writes are committed, or have failed with this error."""

    def restart_begins(self, agent: "types.Tally", reason: str) -> None:
        """Called when the agent's own code has failed, or a permanent agent has exited.

        Its supervisor is about to decide.
        """

    def restart_ends(self, agent: "types.Tally") -> None:
        """Called when the restarted agent goes on, with new counters of the same agent."""

    def state_changes(self, agent: "types.Tally", state: str, turn: int) -> None:
        """Called when the agent has another state (as in `AgentStatistics.state`) or another turn; 0 means no turn."""


HOOKS = tuple(name for name in vars(Instrument) if not name.startswith("_"))
"""The names of the hooks."""


class Instruments:
    """The instruments of one run, arranged by hook: ``for hook in instruments.commit_begins: hook(agent)``."""

    __slots__ = HOOKS

    request_begins: tuple[Callable[["types.Tally", Request], None], ...]
    request_ends: tuple[Callable[["types.Tally", Reply | Exception | None, Spent | None], None], ...]
    request_runs: tuple[Callable[["types.Tally", int, int], None], ...]
    piece_comes: tuple[Callable[["types.Tally", int], None], ...]
    tool_begins: tuple[Callable[["types.Tally", str, str, Mapping[str, Any]], None], ...]
    tool_runs: tuple[Callable[["types.Tally", int, int, int], None], ...]
    tool_ends: tuple[Callable[["types.Tally", str, str, str | None], None], ...]
    wait_begins: tuple[Callable[["types.Tally", str], None], ...]
    wait_ends: tuple[Callable[["types.Tally", str], None], ...]
    commit_begins: tuple[Callable[["types.Tally"], None], ...]
    commit_ends: tuple[Callable[["types.Tally", IkigaiError | None], None], ...]
    restart_begins: tuple[Callable[["types.Tally", str], None], ...]
    restart_ends: tuple[Callable[["types.Tally"], None], ...]
    state_changes: tuple[Callable[["types.Tally", str, int], None], ...]

    def __init__(self, *instruments: Instrument) -> None:
        """Collect the hooks that each of these instruments overrides."""
        for name in HOOKS:
            own = [
                instrument
                for instrument in instruments
                if getattr(type(instrument), name) is not getattr(Instrument, name)
            ]
            setattr(self, name, tuple(_called(instrument, name) for instrument in own))


def check_instruments(instruments: object) -> list[Instrument]:
    """Check the instruments that a user has passed, and return them as a list. Raises `BadInput`."""
    instrument_list = instruments if isinstance(instruments, Iterable) else [instruments]
    return [check_type(instrument, Instrument, "instruments", "a list of Instrument") for instrument in instrument_list]


def _called(instrument: Instrument, name: str) -> Callable[..., None]:
    hook: Callable[..., None] = getattr(instrument, name)
    if instrument._is_ours:
        return hook

    def call(*heard: Any) -> None:
        try:
            hook(*heard)
        except Exception:  # other people's code
            logger.exception("An instrument failed")

    return call
