"""The programs of a system: the tools that carry out acts, and the unwinding of functions whose turns are over."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ikigai_actors.actors.futures import current_acting_agent
from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.agent.turn.ahead import Ahead
from ikigai_actors.errors import BadInput
from ikigai_actors.programs.provider import Program
from ikigai_actors.programs.records import STEP_AGAIN, STEP_BY_KEY, STEP_ONCE, ActOutcome, as_recorded
from ikigai_actors.text import described, storable
from ikigai_actors.tools.effect_keys import acting_call, current_call, effect_key
from ikigai_actors.tools.function import Result, Tool
from ikigai_actors.tools.policy import ToolTraits

LONGEST_ACT = 7 * 24 * 3600.0
"""The most seconds that a step may take."""


class Programs(Instrument):
    """The programs of a system, by name, as the toolbox uses them."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self._programs = programs
        again = ToolTraits(idempotent=True)
        self.traits: Mapping[str, ToolTraits] = {STEP_ONCE: ToolTraits(), STEP_AGAIN: again, STEP_BY_KEY: again}

    def __contains__(self, model: object) -> bool:
        return model in self._programs

    def tool(self, model: str, name: str) -> Tool:
        """Return the tool with this name for agents whose ``model`` is this program."""
        return StepTool(name, self.traits[name], partial(_do_step, self._programs[model]))

    def went_ahead(self, model: str, agent: str, call: str) -> Ahead | None:
        """Return what an agent's program did with the result of a call before its commit; None if nothing."""
        return self._programs[model].went_ahead(agent, call)

    def replay(self, model: str, me: Any) -> str:
        """Replay the function of an agent while its calls are in progress.

        Return the reason why the function does not fit the log; empty if it fits.
        """
        try:
            self._programs[model].replay(me)
        except Exception as error:
            return str(error)
        return ""

    def drop(self, agent: str) -> None:
        """Unwind the function of an agent. When the agent goes on, the function begins again."""
        for program in self._programs.values():
            program.drop(agent)

    def state_changes(self, agent: Tally, state: str, turn: int) -> None:
        """Unwind the functions of turns that are over."""
        for program in self._programs.values():
            program.drop(agent.uuid, turn)


def _do_step(program: Program, arguments: Mapping[str, Any]) -> str:
    me, call = current_acting_agent(), current_call()
    frame = program.live(me, call.id)
    act = frame.acts[call.id]
    if act.run is None:
        raise BadInput(f"{call.id} is no step.")
    key = effect_key(me.uuid, frame.turn, call.id)
    acting_call.set(type(call)(key, call.attempt, call.agent, call.id, call.reply, call.own_files))
    result = as_recorded(act.run())
    frame.go_ahead(call.id, ActOutcome(storable(result), False, at=me.system._clock.now_ms()))
    return result


class StepTool:
    """A tool that carries out acts of programs. Its results are not shortened."""

    is_async = False
    timeout = math.inf

    def __init__(self, name: str, traits: ToolTraits, run: Callable[[Mapping[str, Any]], str]) -> None:
        self.name, self.traits, self._run = name, traits, run

    def describe(self) -> Mapping[str, Any]:
        """Return the tool's name as a Messages-API dict. No model is shown this tool."""
        return {"name": self.name, "description": "An act of a program.", "input_schema": {"type": "object"}}

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Carry out the act on the calling thread. Never raises: an error is a result, too."""
        try:
            return Result(self._run(arguments))
        except BaseException as error:  # SystemExit too: it must not end the thread that runs others' tools
            return Result(described(error), True)

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Satisfy the interface of a tool; the runtime uses `call` alone."""
        return self.call(arguments)
