"""Tools: Python functions that a model may call.

    @tool
    def count_lines(path: str) -> int:
        '''Count the lines of a text file.

        Args:
            path: the file, relative to the working directory.
        '''
        return len(Path(path).read_text().splitlines())

    @tool(timeout=5, idempotent=True)
    async def weather(city: str) -> str: ...

    ActorSystem.open(tools=[count_lines, weather])

The signature gives the schema and the docstring the texts (anthropic's function-tool decorators do that). A plain
function runs on a tool thread, an ``async`` one on the runtime's event loop, where it must not block. So many plain
tools run at once, besides those that wait for agents (``ref.wait``, ``ref.prompt(...).get()``). What a function returns
is what the model reads: text as it is, anything else as JSON.

Whatever goes wrong is a result that helps the model to correct itself: arguments that do not fit, an exception, a
time-out, output over the limit. Nothing of it crashes the agent. A tool says deliberately that it failed by raising
anthropic's ``ToolError``.
"""  # noqa: D214 - the section belongs to the example

import asyncio
import inspect
import json
import logging
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, overload

from ikigai_actors.errors import BadInput
from ikigai_actors.text import described, storable
from ikigai_actors.tools.policy import Policy, ToolTraits

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaAsyncFunctionTool, BetaFunctionTool

logger = logging.getLogger(__name__)

TIMEOUT = 120.0
"""Seconds that a tool may take, unless it says otherwise."""

LIMIT = 50_000
"""Characters of a result; the rest is cut, and the result says so."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call."""

    content: str
    is_error: bool = False


class Tool(Protocol):
    """A tool that models may call, and that runs outside of the agent."""

    @property
    def name(self) -> str:
        """The name by which the model calls it."""

    @property
    def timeout(self) -> float:
        """Seconds that a call may take."""

    @property
    def traits(self) -> ToolTraits:
        """What the machine must know of it before it runs."""

    @property
    def is_async(self) -> bool:
        """Whether `call_async` runs it, on the event loop; else `call` does, on a thread."""

    def describe(self) -> Mapping[str, Any]:
        """Its name, description and schema, as a Messages-API dict."""

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Run it on the calling thread; never raises."""

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Run it on the event loop; raises nothing but `asyncio.CancelledError`."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTool:
    """A Python function as a tool. Made by `tool`."""

    function: "BetaFunctionTool[Any] | BetaAsyncFunctionTool[Any]"
    """The function as anthropic describes it."""
    timeout: float
    """Seconds that a call may take."""
    traits: ToolTraits
    """What the machine must know of it before it runs."""

    @property
    def name(self) -> str:
        """The name by which the model calls it."""
        return self.function.name

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop."""
        return inspect.iscoroutinefunction(self.function.func)

    def describe(self) -> Mapping[str, Any]:
        """Its name, description and schema, as a Messages-API dict."""
        return dict(self.function.to_dict())

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Run a plain function, on the calling thread; never raises."""
        try:
            return result_of(self.function.call(dict(arguments)))
        except BaseException as error:  # SystemExit too: it must not end the thread that runs others' tools
            return self._failure(error)

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Run an ``async`` function; raises nothing but `asyncio.CancelledError`."""
        try:
            return result_of(await self.function.call(dict(arguments)))  # type: ignore[misc]  # an async tool's is awaitable
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return self._failure(error)

    def _failure(self, error: BaseException) -> Result:
        """The text about an exception that the model reads."""
        from anthropic.lib.tools import ToolError
        from pydantic import ValidationError

        if isinstance(error, ToolError):
            return Result(cut(_text_of(error.content)), True)
        cause = error.__cause__
        if isinstance(cause, ValidationError) and not self._had_begun(error):
            if not self._had_begun(cause):
                faults = cause.errors(include_url=False, include_input=False, include_context=False)
                told = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
                return Result(cut(f"The arguments do not fit the schema of {self.name}: {told}."), True)
            error = cause  # the function's own: anthropic takes every such error for one of the arguments
        logger.info("Tool %s failed", self.name, exc_info=error)
        return Result(cut(described(error)), True)

    def _had_begun(self, error: BaseException) -> bool:
        """Whether the function itself was running when the error was raised."""
        code = self.function.func.__code__
        return any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = TIMEOUT,
    idempotent: bool = False,
    alone: bool = False,
    policy: str = Policy.ALLOW,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = TIMEOUT,
    idempotent: bool = False,
    alone: bool = False,
    policy: str = Policy.ALLOW,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function; a decorator, with or without arguments.

    Args:
        function: the function, plain or ``async``. Every parameter has a name and an annotation.
        name: the name by which the model calls it; the function's name when None.
        description: what it is for; the docstring's text when None.
        timeout: seconds that a call may take.
        idempotent: whether running it twice does what running it once does: after a crash it is simply run again.
        alone: whether it never runs beside other calls of the same reply.
        policy: ``allow``; ``ask``, so that a person approves each call; or ``deny``. An agent's settings may say
            otherwise.

    Raises:
        BadInput: the signature gives no schema, or the name is not allowed.
    """

    def make(plain: Callable[..., Any]) -> FunctionTool:
        from anthropic import beta_async_tool, beta_tool  # 1.4 s: only who defines tools pays it

        _check_signature(plain)
        decorate: Any = beta_async_tool if inspect.iscoroutinefunction(plain) else beta_tool
        try:
            described = decorate(plain, name=name, description=description)
        except Exception as error:  # pydantic's, or of an annotation that does not resolve
            raise BadInput(f"{plain.__name__} cannot be a tool: no schema can be made of it. {error}") from error
        if _NAME.fullmatch(described.name) is None:
            raise BadInput(f"A tool's name is 1 to 128 of a-z A-Z 0-9 _ -, got {described.name!r}; give it another.")
        if timeout <= 0:
            raise BadInput(f"Expected a timeout in seconds above 0, got {timeout!r}.")
        return FunctionTool(described, timeout, ToolTraits(idempotent, alone, _policy(policy)))

    return make if function is None else make(function)


def result_of(value: object) -> Result:
    """A function's return value as the model reads it: text unchanged, None as empty text, anything else as JSON."""
    if isinstance(value, Result):
        return replace(value, content=cut(value.content))
    if value is None:
        return Result("")
    if inspect.iscoroutine(value):
        value.close()
        return Result("This tool is broken: it returned a coroutine. Declare its function with `async def`.", True)
    if isinstance(value, str):
        return Result(cut(value))
    return Result(cut(json.dumps(value, ensure_ascii=False, default=str)))


def checked_result(value: object) -> Result:
    """A tool's result, if it is one. Raises `TypeError`."""
    if isinstance(value, Result) and isinstance(value.content, str) and isinstance(value.is_error, bool):
        return value
    raise TypeError(f"Expected a Result with text and a bool, got {value!r} (type={type(value).__name__}).")


def cut(text: str) -> str:
    """Text that can be stored, of `LIMIT` characters at most. Cut text says so."""
    text = storable(text)
    if len(text) <= LIMIT:
        return text
    return f"{text[:LIMIT]}\n[cut: {len(text) - LIMIT} more characters; ask for less at a time]"


def timed_out(tool: Tool) -> Result:
    """The result of a call that took too long."""
    return Result(f"{tool.name} did not finish within {tool.timeout:g} s. What it did so far may stand.", True)


def _text_of(content: object) -> str:
    """The text of a deliberate error, which may be blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list | tuple) else [content]
    return "\n".join(str(block.get("text", block)) if isinstance(block, Mapping) else str(block) for block in blocks)


def _policy(text: str) -> Policy:
    try:
        return Policy(text)
    except ValueError as error:
        raise BadInput(f"Expected policy to be one of {', '.join(Policy)}; got {text!r}.") from error


def _check_signature(function: Callable[..., Any]) -> None:
    """Refuse a signature with arguments without names: it gives no usable schema. Raises `BadInput`."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise BadInput(f"Expected a function as a tool, got {function!r}. Write one that calls it.")
    parameter = inspect.Parameter
    for one in inspect.signature(function).parameters.values():
        if one.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise BadInput(
                f"{function.__name__} cannot be a tool: {one} has no name that a model could give. "
                "Use named parameters."
            )
