"""Python functions as hooks.

    @hook("before_call", tools="bash", timeout=10)
    def no_force(call: HookedCall) -> HookVerdict | None:
        if "--force" in call.input["command"]:
            return HookVerdict.deny("Never force.")

A hook runs as a tool does, on a thread or on the event loop, with a time limit. A hook that fails denies: it raises an
error, takes too long, or returns no verdict that its event allows. With ``on_error="allow"`` a failure allows. A result
whose filter fails is withheld from the model.
"""

import inspect
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ikigai_actors.arguments import check_choice, check_seconds, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.text import described, storable
from ikigai_actors.tools.function import Result
from ikigai_actors.tools.hooks.verdict import (
    AFTER_CALL,
    BEFORE_CALL,
    FILTER_RESULT,
    GATES,
    HOOK_EVENTS,
    Hooked,
    HookVerdict,
    as_json_verdict,
    stored_verdict,
)
from ikigai_actors.tools.policy import ToolTraits

logger = logging.getLogger(__name__)

HOOK_TIMEOUT = 60.0
"""The default time-out of a hook, in seconds."""
FILTER_TIMEOUT = 1.0
"""The most seconds of a hook for ``filter_result``: meanwhile nobody knows for sure whether the call ran."""
_OF_CALLS = (BEFORE_CALL, FILTER_RESULT, AFTER_CALL)


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """A function that decides on, or looks at, what agents do. The decorator `hook` makes it."""

    name: str
    """The name of the hook in settings, logs and messages."""
    event: str
    """The event at which the hook runs, one of `HOOK_EVENTS`."""
    function: Callable[[Any], Any]
    tools: tuple[str, ...]
    """The tools for whose calls the hook runs, as names or patterns such as ``mcp_*``; empty for all."""
    timeout: float
    on_error: str
    """``deny`` or ``allow``: what happens to a call when the hook fails."""

    @property
    def command(self) -> str:
        """The command that the hook runs; empty for a function."""
        return str(getattr(self.function, "command", ""))

    @property
    def denies_at_failure(self) -> bool:
        """Return whether a failure of the hook denies the call, request or fork."""
        return self.event in GATES and self.on_error == "deny"

    def hears_of(self, event: str, tool: str = "") -> bool:
        """Return whether the hook runs at this event; if it is an event of calls, whether it runs for this tool."""
        return event == self.event and (not self.tools or any(fnmatchcase(tool, each) for each in self.tools))


def hook(
    event: str,
    *,
    tools: str | Sequence[str] = (),
    timeout: float | None = None,
    on_error: str = "deny",
    name: str | None = None,
) -> Callable[[Callable[[Any], Any]], Hook]:
    """Make a hook of a function, plain or ``async``; a decorator.

    Args:
        event: ``before_call``, ``filter_result``, ``after_call``, ``before_request``, ``after_reply``, ``on_fork`` or
            ``on_exit``. The function gets a `HookedCall`, a `HookedRequest`, a `HookedReply` or a `HookedExit`.
        tools: the names of the tools, or patterns such as ``mcp_*``, for the three events of calls; without any, all.
        timeout: the seconds that the hook may take: 60 without it, and 1 for ``filter_result``, which may take no more.
        on_error: the decision on a call, a request or a fork if the hook fails: ``deny``, or ``allow``.
        name: the name of the hook in settings, logs and messages; the function's name when None.

    Raises `BadInput` for an argument that cannot be used.
    """
    check_choice(event, "event", HOOK_EVENTS)
    check_choice(on_error, "on_error", ("deny", "allow"))
    seconds = (FILTER_TIMEOUT if event == FILTER_RESULT else HOOK_TIMEOUT) if timeout is None else timeout
    check_seconds(seconds, "timeout", zero=False)
    if event == FILTER_RESULT and seconds > FILTER_TIMEOUT:
        raise BadInput(f"Expected a filter_result hook to take {FILTER_TIMEOUT:g} second at most; got {seconds:g}.")
    among = (tools,) if isinstance(tools, str) else tuple(tools)
    if not all(isinstance(each, str) and each for each in among):
        raise BadInput(f"Expected tools to be names of tools; got {shown(tools)}.")
    if among and event not in _OF_CALLS:
        raise BadInput(f"Expected no tools for a hook for {event}, which is about no call; got {shown(tools)}.")

    def make(function: Callable[[Any], Any]) -> Hook:
        if not callable(function):
            raise BadInput(f"Expected a function that takes what the hook is asked about; got {shown(function)}.")
        called = name or str(getattr(function, "__name__", "hook"))
        return Hook(called, event, function, among, seconds, on_error)

    return make


def check_hooks(hooks: object) -> tuple[Hook, ...]:
    """Check that the values are hooks, and that their names differ. Return them as a tuple. Raises `BadInput`."""
    if isinstance(hooks, str) or not isinstance(hooks, Iterable):
        raise BadInput(f"Expected hooks to be a list of hooks; got {shown(hooks)}.")
    known = tuple(hooks)
    for each in known:
        if not isinstance(each, Hook):
            raise BadInput(f"Expected each of hooks to be a function with @hook(...); got {shown(each)}.")
    names = [each.name for each in known]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"Expected hooks with different names; two are called {twice[0]!r}.")
    return known


@dataclass(frozen=True, slots=True)
class HookRun:
    """One question to a hook, which is run as a tool that no model calls."""

    hook: Hook
    asked: Hooked

    @property
    def traits(self) -> ToolTraits:
        """The traits of the run as a tool, without rules."""
        return ToolTraits()

    @property
    def name(self) -> str:
        """The name of the hook."""
        return self.hook.name

    @property
    def timeout(self) -> float:
        """The seconds that the hook may take."""
        return self.hook.timeout

    @property
    def is_async(self) -> bool:
        """Whether the hook runs on the event loop."""
        function = self.hook.function
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

    def describe(self) -> Mapping[str, Any]:
        """Satisfy the interface of a tool. No model calls a hook."""
        return {"name": self.hook.name}

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Run the hook, a plain function, on the calling thread; never raises."""
        try:
            return _as_result(self.hook.function(self.asked))
        except BaseException as error:
            return self._failure(error)

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Run the hook, an ``async`` function; raises nothing but `asyncio.CancelledError`."""
        try:
            return _as_result(await self.hook.function(self.asked))
        except Exception as error:
            return self._failure(error)

    def _failure(self, error: BaseException) -> Result:
        logger.info("Hook %s failed", self.hook.name, exc_info=error)
        return Result(storable(described(error)), True)


def verdict_from(hook_: Hook, result: Result) -> HookVerdict:
    """Return the verdict in the result of a hook's run. A failed run denies, unless ``on_error="allow"``."""
    if (failure := failure_of(hook_, result)) is not None:
        return HookVerdict.deny(f"the hook failed: {failure}") if hook_.denies_at_failure else HookVerdict()
    said = stored_verdict(json.loads(result.content))
    return said if hook_.event in GATES else HookVerdict.add(said.context)


def failure_of(hook_: Hook, result: Result) -> str | None:
    """Return the failure in the result of a hook's run, in words; None if the run has not failed.

    A verdict that the event does not take is a failure, too.
    """
    if result.is_error:
        return result.content
    if hook_.event not in GATES:
        return None
    beyond = sorted(stored_verdict(json.loads(result.content)).means - GATES[hook_.event])
    return f"a hook for {hook_.event} cannot {beyond[0]}" if beyond else None


def _as_result(said: object) -> Result:
    if inspect.iscoroutine(said):
        said.close()
        raise TypeError("expected a HookVerdict of a plain function; declare the hook with `async def`")
    return Result(json.dumps(as_json_verdict(said)))
