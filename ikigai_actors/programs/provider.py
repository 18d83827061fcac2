"""A program as a provider: the model of an agent that is a function.

The acts of a program, and the treatment of each after a crash:

    fork, prompt          one unit has the row and the result: never repeated
    send, remind, grant, kill, merge, document_write    the same
    signal, steer, set_rule, note, configure            the same
    wait                  goes on until the same deadline; ends at once if the awaited turns have ended
    ask_person            the question stays open; the person is asked once
    step                  runs at most once: a step that was cut off has an error as its result
    step_again            its function is called again; by_key: with the same key

When a turn that was cut off goes on, the function first replays up to the acts for which it waits. Calls that were cut
off are settled only if the function has asked for all acts in the log. Otherwise the turn ends with `StepChanged`, and
nothing is done.
"""

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, TypeVar, overload

from ikigai_actors.actors.futures import current_acting_agent
from ikigai_actors.actors.threads import current_threads, in_thread
from ikigai_actors.agent.turn.ahead import Ahead
from ikigai_actors.arguments import check_callable
from ikigai_actors.errors import ProviderError, StepChanged, StepFailed
from ikigai_actors.frozen import replace
from ikigai_actors.programs.changes import BEGINS_AGAIN, FAIL, RESTART, check_on_change, since_restart, way_of_turn
from ikigai_actors.programs.frames import AskedCalls, FunctionAnswer, ProgramFrame, Reached
from ikigai_actors.programs.records import TurnRecords, latest_calls, latest_results
from ikigai_actors.providers.base import OnDelta, Reply, Request
from ikigai_actors.providers.shorthand import as_reply
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.text import described

T = TypeVar("T")


@overload
def program(function: Callable[[str], Any], *, on_change: str = FAIL) -> "Program": ...


@overload
def program(*, on_change: str = FAIL) -> "Callable[[Callable[[str], Any]], Program]": ...


def program(function: Callable[[str], Any] | None = None, *, on_change: str = FAIL) -> Any:
    """Make a program of a function. An agent that has the program as its ``model`` runs the function for each prompt.

    Args:
        function: takes the text of the prompt; returns what a `FunctionProvider` may return. A coroutine function has
            no thread while it waits; it awaits acts, and nothing else. None returns a decorator.
        on_change: what happens when the function asks for other acts than the log of its turn has: ``fail`` ends the
            turn with `StepChanged`; ``go_on`` does the new act, and ignores recorded acts that the function does not
            ask for any more; ``restart`` begins the function again, and effects may repeat. See `AgentRef.resume`.
    """
    way = check_on_change(on_change)
    return (lambda made: Program(made, way)) if function is None else Program(function, way)


class Program:
    """A function that is the model of agents, and runs for each of their prompts. Made by `program`."""

    own_code = True
    counts = False

    def __init__(self, function: Callable[[str], Any], on_change: str = FAIL) -> None:
        self.on_change = on_change
        self.function = check_callable(function, "function", "a function of a text")
        self.name: str = function.__name__
        self.__name__ = self.name
        self.version = f"{self.name}@{_fingerprint(function)}"
        self.__doc__ = function.__doc__
        self._file = inspect.getsourcefile(function)
        self._frames: dict[str, ProgramFrame] = {}
        self._making = current_threads().lock()

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Run the function up to the next acts that it waits for, or to its end.

        Raises `ProviderError` for an exception of the function. Supervisors do not restart the agent for it, since the
        function would raise it again.
        """
        me = current_acting_agent()
        try:
            reply: Reply = await in_thread(lambda: self._next(me), f"program {me.uuid}")
        except BaseException:
            self.drop(me.uuid)
            raise
        return reply

    async def close(self) -> None:
        """Unwind the functions of all turns."""
        for uuid in list(self._frames):
            self.drop(uuid)

    def drop(self, agent: str, turn: int | None = None) -> None:
        """Unwind the function of an agent, unless it runs for the turn ``turn``."""
        frame = self._frames.get(agent)
        if frame is not None and frame.turn != turn:
            self._frames.pop(agent, None)
            frame.drop()

    def replay(self, me: Any) -> None:
        """Call the function of an agent up to where it waits, while calls are in progress.

        Does nothing if it waits there already.

        Raises `ProviderError` when the function asks for other acts than the log has, or stops before it reaches the
        calls in progress.
        """
        with self._making:
            frame = self._frames.get(me.uuid)
            if frame is not None and frame.waits_for(self._in_log(me, latest_calls)):
                return
            frame = self._begin(me, is_open=True)
            reached = frame.next()
        if isinstance(reached, StepChanged) and frame.on_change == RESTART:
            self.drop(me.uuid)  # it begins again when its calls are settled
            return
        if not isinstance(reached, AskedCalls):
            self.drop(me.uuid)
            raise _failure(reached if isinstance(reached, BaseException) else StepChanged("It has returned."))

    def live(self, me: Any, call: str) -> ProgramFrame:
        """Return the frame of the function that waits for a call. Raises the errors of `replay`."""
        frame = self._frames.get(me.uuid)
        if frame is None or call not in frame.acts:
            self.replay(me)
            frame = self._frames[me.uuid]
        return frame

    def misfit(self, me: Any) -> str:
        """Return the reason why the function does not fit the log of the open turn; empty if it fits.

        Changes nothing.
        """
        with self._making:
            reached = self._begin(me, is_open=True).next()
        self.drop(me.uuid)
        return str(_failure(reached)) if isinstance(reached, BaseException) else ""

    def _begin(self, me: Any, *, is_open: bool = False, again: bool = False) -> ProgramFrame:
        self.drop(me.uuid)
        mine = messages_of_turn(me)
        records = TurnRecords([] if again else since_restart(mine), self.version, is_open=is_open)
        way = way_of_turn(mine, self.on_change)
        called = ProgramFrame(me, me.record.turn, mine[0], self.function, self._file, records, way)
        self._frames[me.uuid] = called
        return called

    def went_ahead(self, agent: str, call: str) -> Ahead | None:
        """Return what the function of an agent did with the result of a call before its commit; None if nothing."""
        frame = self._frames.get(agent)
        if frame is None or frame.ahead is None or frame.ahead.call != call:
            return None
        reached = frame.ahead.reached
        reply = self._asks(reached) if isinstance(reached, AskedCalls) else None
        return Ahead(frame.ahead.outcome.at, reply)

    def _in_log(self, me: Any, find: Callable[[Iterable[Message]], T]) -> T:
        result: T = me.system._log_cache.find_in(me.uuid, lambda log: find(log.newest_first()))
        return result

    def _next(self, me: Any) -> Reply:
        came = self._in_log(me, latest_results)
        with self._making:
            frame = self._frames.get(me.uuid)
            if frame is None or not frame.takes(came):
                frame = self._begin(me)
        reached = frame.next()
        if isinstance(reached, StepChanged) and frame.on_change == RESTART:
            with self._making:
                frame = self._begin(me, again=True)
            return self._reply(me, frame, frame.next(), BEGINS_AGAIN)
        return self._reply(me, frame, reached)

    def _reply(self, me: Any, frame: ProgramFrame, reached: Reached, text: str = "") -> Reply:
        if isinstance(reached, AskedCalls):
            return self._asks(reached, text)
        if self._frames.get(me.uuid) is frame:
            self._frames.pop(me.uuid, None)
        frame.drop()
        if isinstance(reached, FunctionAnswer):
            reply = as_reply(reached.value)
            return reply if reply.model else replace(reply, model=self.version)
        raise _failure(reached) from reached

    def _asks(self, reached: AskedCalls, text: str = "") -> Reply:
        return Reply(text or reached.note, reached.calls, model=self.version, stop_reason="tool_use")


def messages_of_turn(me: Any) -> list[Message]:
    """Return the messages of the turn in progress, including its prompt, which an agent forked in the turn inherits."""
    turn = me.record.turn

    def since(log: Log) -> list[Message]:
        own = [*takewhile(lambda message: message.id >= turn, log.newest_first())][::-1]
        is_inherited = own[0].kind == Kind.FORK
        prompt = log.latest_prompt(turn) if is_inherited else None
        return own if prompt is None else [*log.between(prompt.id - 1, log.head)]

    messages: list[Message] = me.system._log_cache.find_in(me.uuid, since)
    return messages


def _failure(error: BaseException) -> Exception:
    if isinstance(error, StepChanged | ProviderError):
        return error
    place = ""
    for frame, line in _frames_of(error):
        place = f" ({frame}, line {line})"
    again = f" [{error.call}]" if isinstance(error, StepFailed) and error.call else ""
    return ProviderError(f"The program has failed: {described(error)}{place}{again}")


def _frames_of(error: BaseException) -> list[tuple[str, int]]:
    places, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "ikigai_actors" not in code.co_filename:
            places.append((code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return places


def _fingerprint(function: Callable[..., Any]) -> str:
    """Return twelve digits of the hash of the function's syntax tree, without comments and layout."""
    try:
        text = ast.dump(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, SyntaxError, TypeError):
        text = repr(function.__code__.co_code)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
