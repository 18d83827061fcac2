"""Instruments: they hear when something of an agent's work begins and ends, on the thread that does it.

    class Slow(Instrument):
        def request_begins(self, agent: "types.Tally", request: Request) -> None:
            self.began[agent.uuid] = monotonic()

A run has one `Instruments`, which calls for each hook those instruments that have it: what nobody hears costs nothing.
The counters of agents (`agent.statistics.Counting`) are an instrument, and so is the trace of a simulation. A hook must
not wait, nor change anything of the run. One that fails is reported, and the run goes on.
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
    """Hears what agents of one host do. Override the hooks that matter; each gets the agent's counters first."""

    _is_ours = False
    """Whether it belongs to the runtime: then its failure is one of the actor that calls it."""

    def request_begins(self, agent: "types.Tally", request: Request) -> None:
        """A request leaves for a model."""

    def request_ends(self, agent: "types.Tally", answer: Reply | Exception | None, spent: Spent | None) -> None:
        """The request was answered or failed, or was cancelled (``answer`` is None); ``spent`` is its cost."""

    def request_runs(self, agent: "types.Tally", turn: int, number: int) -> None:
        """The request is made now, in this context: what is set here in context variables, the provider sees.

        ``turn`` is the position of the message that opened the turn, and ``number`` counts the turn's requests from 1;
        both are 0 outside of a turn.
        """

    def piece_comes(self, agent: "types.Tally", size: int) -> None:
        """A piece of its reply has come, of this many characters."""

    def tool_begins(self, agent: "types.Tally", tool: str, call: str, arguments: Mapping[str, Any]) -> None:
        """A tool is run for a call of a model, which ``call`` identifies."""

    def tool_runs(self, agent: "types.Tally", turn: int, reply: int, place: int) -> None:
        """The tool runs now, in this context: what is set here in context variables, the tool sees.

        ``turn`` is the position of the message that opened the turn, ``reply`` that of the reply that asks for the
        call, and ``place`` the call's place in the reply from 0.
        """

    def tool_ends(self, agent: "types.Tally", tool: str, call: str, result: str | None) -> None:
        """The call has its result; or it was cancelled, and ``result`` is None."""

    def wait_begins(self, agent: "types.Tally", call: str) -> None:
        """A call of a model begins to wait for agents or for mail."""

    def wait_ends(self, agent: "types.Tally", call: str) -> None:
        """The agent no longer waits."""

    def commit_begins(self, agent: "types.Tally") -> None:
        """The agent's writes are handed to the journal."""

    def commit_ends(self, agent: "types.Tally", error: IkigaiError | None) -> None:
        """The writes are committed; or they failed with this error."""

    def restart_begins(self, agent: "types.Tally", reason: str) -> None:
        """The agent's own code has failed, or it has exited and comes back: its supervisor decides."""

    def restart_ends(self, agent: "types.Tally") -> None:
        """The agent goes on. These are new counters, of the same agent."""

    def state_changes(self, agent: "types.Tally", state: str, turn: int) -> None:
        """The agent is in another state, as `AgentStatistics.state` names it, or in another turn; 0 for none."""


HOOKS = tuple(name for name in vars(Instrument) if not name.startswith("_"))
"""The names of the hooks."""


class Instruments:
    """The instruments of one run, by hook: ``for hook in instruments.commit_begins: hook(agent)``."""

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
        """Find the hooks that each of these has."""
        for name in HOOKS:
            own = [one for one in instruments if getattr(type(one), name) is not getattr(Instrument, name)]
            setattr(self, name, tuple(_called(one, name) for one in own))


def check_instruments(instruments: object) -> list[Instrument]:
    """The instruments of a user. Raises `BadInput` for anything else."""
    found = instruments if isinstance(instruments, Iterable) else [instruments]
    return [check_type(one, Instrument, "instruments", "a list of Instrument") for one in found]


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
