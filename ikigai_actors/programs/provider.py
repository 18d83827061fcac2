"""A program as a provider: the model of an agent that is a function; and the tools by which its acts are done.

What each call of a program leaves, and what a crash makes of it:

    fork, prompt          the row and the result are one unit: never repeated
    wait                  goes on until the same deadline; ends at once where the turns have ended
    step                  at most once: one that was cut off has an error as its result
    step_again            called again; by_key: with the same key

The tools look for the live function: where a crash has dropped it, it is called again up to where it waits.
"""

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from ikigai_actors.actors.futures import current_acting_agent
from ikigai_actors.actors.threads import current_threads, in_thread
from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.arguments import check_callable
from ikigai_actors.errors import BadInput, ProviderError, StepChanged, StepFailed
from ikigai_actors.programs.frames import (
    MOST_RECORDED,
    STEP_AGAIN,
    STEP_BY_KEY,
    STEP_ONCE,
    ActOutcome,
    AskedCalls,
    FunctionAnswer,
    ProgramFrame,
    TurnRecords,
)
from ikigai_actors.providers.base import OnDelta, Reply, Request
from ikigai_actors.providers.shorthand import as_reply
from ikigai_actors.text import described
from ikigai_actors.tools.effect_keys import acting_call, current_call, effect_key
from ikigai_actors.tools.function import FunctionTool, Tool, tool

LONGEST_ACT = 7 * 24 * 3600.0
"""The most seconds of a step."""


def program(function: Callable[[str], Any]) -> "Program":
    """Make a program of a function: an agent whose ``model`` it is runs it for each prompt.

    Args:
        function: takes the text of the prompt; returns what a `FunctionProvider` may return.
    """
    return Program(function)


class Program:
    """A function that is the model of agents."""

    own_code = True
    counts = False

    def __init__(self, function: Callable[[str], Any]) -> None:
        self.function = check_callable(function, "function", "a function of a text")
        if inspect.iscoroutinefunction(function):
            raise BadInput("Expected a plain function as a program; got a coroutine function.")
        self.name: str = function.__name__
        self.version = f"{self.name}@{_fingerprint(function)}"
        self.__doc__ = function.__doc__
        self._frames: dict[str, ProgramFrame] = {}
        self._making = current_threads().lock()

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Let the function go on to what it asks for next, or to its end.

        Raises `ProviderError` for what it raises: the same function would raise it again, so nobody restarts it.
        """
        me = current_acting_agent()
        try:
            reply: Reply = await in_thread(lambda: self._next(me, request), f"program {me.uuid}")
        except BaseException:
            self.drop(me.uuid)
            raise
        return reply

    async def close(self) -> None:
        """Unwind all functions."""
        for uuid in list(self._frames):
            self.drop(uuid)

    def drop(self, agent: str, turn: int | None = None) -> None:
        """Unwind the function of an agent, unless it runs for this turn."""
        frame = self._frames.get(agent)
        if frame is not None and frame.turn != turn:
            self._frames.pop(agent, None)
            frame.drop()

    def live(self, me: Any, call: str) -> ProgramFrame:
        """The frame that waits for a call: where there is none, the function is called again up to there."""
        with self._making:
            frame = self._frames.get(me.uuid)
            if frame is None or call not in frame.acts:
                frame = self._frame(me)
                reached = frame.next()
                if isinstance(reached, BaseException):
                    raise reached
            return frame

    def misfit(self, me: Any) -> str:
        """Why the function does not fit what the log of the open turn holds; empty where it does. It does nothing."""
        with self._making:
            reached = self._frame(me).next()
        self.drop(me.uuid)
        return str(_failure(reached)) if isinstance(reached, BaseException) else ""

    def _frame(self, me: Any) -> ProgramFrame:
        turn = me.record.turn
        self.drop(me.uuid)
        mine = [one for one in me.history() if one.id >= turn]
        file = inspect.getsourcefile(self.function)
        frame = ProgramFrame(me, turn, self.function, mine[0].content, file, TurnRecords(mine, self.version))
        self._frames[me.uuid] = frame
        return frame

    def _next(self, me: Any, request: Request) -> Reply:
        came = _results_in(request)
        with self._making:
            frame = self._frames.get(me.uuid)
            if frame is None or frame.turn != me.record.turn or not frame.takes(came):
                frame = self._frame(me)
        found = frame.next()
        if isinstance(found, AskedCalls):
            return Reply(tool_calls=found.calls, model=self.version, stop_reason="tool_use")
        self._frames.pop(me.uuid, None)
        if isinstance(found, FunctionAnswer):
            return as_reply(found.value)
        raise _failure(found) from found


class Programs(Instrument):
    """The programs of a system, and their tools."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self._programs = programs
        self.tools: Mapping[str, Tool] = {one.name: one for one in _tools(self)}

    def __contains__(self, model: object) -> bool:
        return model in self._programs

    def of(self, me: Any) -> Program:
        """The program of an agent."""
        return self._programs[str(me.context().settings.get("model"))]

    def state_changes(self, agent: Tally, state: str, turn: int) -> None:
        """Unwind functions whose turns are over."""
        for one in self._programs.values():
            one.drop(agent.uuid, turn)


def _tools(programs: Programs) -> list[FunctionTool]:
    def run(function: str, args: list[Any], kwargs: dict[str, Any]) -> str:
        """Call a function of the program."""
        me, call = current_acting_agent(), current_call()
        frame = programs.of(me).live(me, call.id)
        act = frame.acts[call.id]
        if act.run is None:
            raise BadInput(f"{call.id} is no step.")
        key = effect_key(me.uuid, frame.turn, call.id)
        acting_call.set(type(call)(key, call.attempt, call.agent, call.id, call.reply, call.own_files))
        return _recorded(act.run())

    return [
        tool(name=STEP_ONCE, timeout=LONGEST_ACT)(run),
        tool(name=STEP_AGAIN, timeout=LONGEST_ACT, idempotent=True)(run),
        tool(name=STEP_BY_KEY, timeout=LONGEST_ACT, idempotent="by_key")(run),
    ]


def _recorded(value: Any) -> str:
    """A result as the log has it. Raises `BadInput` for one that it cannot have."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"Expected a result that JSON can hold: {error}.") from error
    if len(text) > MOST_RECORDED:
        told = f"Expected a result of at most {MOST_RECORDED:,} characters; got {len(text):,}."
        raise BadInput(f"{told} Store it, and return its place.")
    return text


def _results_in(request: Request) -> dict[str, ActOutcome]:
    """The results with which a request ends."""
    found = {}
    for block in request.messages[-1]["content"]:
        if block.get("type") == "tool_result":
            content = block.get("content") or ""
            text = content if isinstance(content, str) else "".join(one.get("text", "") for one in content)
            found[block["tool_use_id"]] = ActOutcome(text, bool(block.get("is_error")))
    return found


def _failure(error: BaseException) -> Exception:
    if isinstance(error, StepChanged | ProviderError):
        return error
    place = ""
    for frame, line in _frames_of(error):
        place = f" ({frame}, line {line})"
    again = f" [{error.call}]" if isinstance(error, StepFailed) and error.call else ""
    return ProviderError(f"The program has failed: {described(error)}{place}{again}")


def _frames_of(error: BaseException) -> list[tuple[str, int]]:
    found, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "ikigai_actors" not in code.co_filename:
            found.append((code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _fingerprint(function: Callable[..., Any]) -> str:
    """Twelve digits of the hash of the function's syntax tree: comments and layout do not count."""
    try:
        text = ast.dump(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, SyntaxError, TypeError):
        text = repr(function.__code__.co_code)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
