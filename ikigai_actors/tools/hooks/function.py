"""Python functions as hooks.

    @hook("before_call", tools="bash", timeout=10)
    def no_force(call: HookedCall) -> HookVerdict | None:
        if "--force" in call.input["command"]:
            return HookVerdict.deny("Never force.")

A hook runs as a tool does, on a thread or on the event loop, with a time-out. If a hook fails (by an error, a time-out,
or a value that is no verdict), the call is denied. With ``on_error="allow"`` it runs.
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
    BEFORE_CALL,
    HOOK_EVENTS,
    HookedCall,
    HookVerdict,
    as_json_verdict,
    stored_verdict,
)
from ikigai_actors.tools.policy import ToolTraits

logger = logging.getLogger(__name__)

HOOK_TIMEOUT = 60.0
"""The default time-out of a hook, in seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """A function that looks at calls. The decorator `hook` makes it."""

    name: str
    """The name of the hook in settings, logs and messages."""
    event: str
    """The event at which the hook runs, one of `HOOK_EVENTS`."""
    function: Callable[[HookedCall], Any]
    tools: tuple[str, ...]
    """The tools for whose calls the hook runs, as names or patterns such as ``mcp_*``; empty for all."""
    timeout: float
    on_error: str
    """``deny`` or ``allow``: what happens to a call when the hook fails."""

    @property
    def command(self) -> str:
        """The command that the hook runs; empty for a function."""
        return str(getattr(self.function, "command", ""))

    def hears_of(self, event: str, tool: str) -> bool:
        """Return whether the hook runs at this event for calls of this tool."""
        return event == self.event and (not self.tools or any(fnmatchcase(tool, each) for each in self.tools))


def hook(
    event: str,
    *,
    tools: str | Sequence[str] = (),
    timeout: float = HOOK_TIMEOUT,
    on_error: str = "deny",
    name: str | None = None,
) -> Callable[[Callable[[HookedCall], Any]], Hook]:
    """Make a hook of a function, plain or ``async``; a decorator.

    Args:
        event: ``before_call`` or ``after_call``. Hooks after the call see the result, and can only add a text.
        tools: the names of the tools, or patterns such as ``mcp_*``; empty for all tools.
        timeout: the seconds that the hook may take.
        on_error: ``deny`` or ``allow``: what happens to the call when the hook fails.
        name: the name of the hook in settings, logs and messages; the function's name when None.

    Raises `BadInput` for an argument that cannot be used.
    """
    check_choice(event, "event", HOOK_EVENTS)
    check_choice(on_error, "on_error", ("deny", "allow"))
    check_seconds(timeout, "timeout", zero=False)
    among = (tools,) if isinstance(tools, str) else tuple(tools)
    if not all(isinstance(each, str) and each for each in among):
        raise BadInput(f"Expected tools to be names of tools; got {shown(tools)}.")

    def make(function: Callable[[HookedCall], Any]) -> Hook:
        if not callable(function):
            raise BadInput(f"Expected a function of a call; got {shown(function)}.")
        called = name or str(getattr(function, "__name__", "hook"))
        return Hook(called, event, function, among, timeout, on_error)

    return make


def check_hooks(hooks: object) -> tuple[Hook, ...]:
    """Check that the values are hooks, and that their names differ. Return them as a tuple. Raises `BadInput`."""
    if isinstance(hooks, str) or not isinstance(hooks, Iterable):
        raise BadInput(f"Expected hooks to be a list of hooks; got {shown(hooks)}.")
    given = tuple(hooks)
    for one in given:
        if not isinstance(one, Hook):
            raise BadInput(f"Expected each of hooks to be a function with @hook(...); got {shown(one)}.")
    names = [one.name for one in given]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"Expected hooks with different names; two are called {twice[0]!r}.")
    return given


@dataclass(frozen=True, slots=True)
class HookRun:
    """One question to a hook, in the form of a tool that runs once."""

    hook: Hook
    asked: HookedCall

    @property
    def traits(self) -> ToolTraits:
        """The traits of a tool without rules."""
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
        """Ask a plain function; never raises."""
        try:
            return _as_result(self.hook.function(self.asked))
        except BaseException as error:
            return self._failure(error)

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Ask an ``async`` function; raises nothing but `asyncio.CancelledError`."""
        try:
            return _as_result(await self.hook.function(self.asked))
        except Exception as error:
            return self._failure(error)

    def _failure(self, error: BaseException) -> Result:
        logger.info("Hook %s failed", self.hook.name, exc_info=error)
        return Result(storable(described(error)), True)


def verdict_from(hook_: Hook, result: Result) -> HookVerdict:
    """Return the verdict of a run. A failed run denies the call, unless the hook has ``on_error="allow"``."""
    if not result.is_error:
        said = stored_verdict(json.loads(result.content))
        return said if hook_.event == BEFORE_CALL else HookVerdict.add(said.context)
    if hook_.event != BEFORE_CALL or hook_.on_error == "allow":
        return HookVerdict()
    return HookVerdict.deny(f"the hook failed: {result.content}")


def _as_result(said: object) -> Result:
    if inspect.iscoroutine(said):
        said.close()
        raise TypeError("expected a HookVerdict of a plain function; declare the hook with `async def`")
    return Result(json.dumps(as_json_verdict(said)))
