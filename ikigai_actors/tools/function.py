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

The signature gives the schema and the docstring the texts. A plain function runs on a tool thread, an ``async`` one on
the runtime's event loop, where it must not block. 32 plain tools run at once, besides those that wait for agents
(``ref.wait``, ``ref.prompt(...).get()``); a further call waits for one of them, at most as long as its own time-out.
What a function returns is what the model reads: text as it is, anything else as JSON.

A call that has not ended by its time-out is over, but its thread goes on, since Python cannot end it: give what blocks
in a tool a time-out of its own. `SystemStatistics.abandoned` counts such threads.

Whatever goes wrong is a result that helps the model to correct itself: arguments that do not fit, an exception, a
time-out, output over the limit. Nothing of it crashes the agent. A tool says deliberately that it failed by raising
`ToolError`.
"""  # noqa: D214 - the section belongs to the example

import asyncio
import inspect
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, overload

from ikigai_actors import types
from ikigai_actors.arguments import check_choice, check_flag, check_optional, check_seconds, shown
from ikigai_actors.attachments import Attachment, check_sum, name_and_size
from ikigai_actors.errors import BadInput
from ikigai_actors.text import causes, described, storable
from ikigai_actors.tools.policy import Policy, ToolTraits

logger = logging.getLogger(__name__)

TIMEOUT = 120.0
"""Seconds that a tool may take, unless it says otherwise."""

LIMIT = 50_000
"""Characters of a result; the rest is cut, and the result says so."""

BY_KEY = "by_key"
"""A tool is idempotent, since it hands on the key of `current_call`."""

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""A tool's name, as services take it."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call."""

    content: str
    is_error: bool = False
    attached: tuple[Attachment, ...] = ()
    """Pictures, PDFs and sounds for the model beside the text; see `attachment`."""


class ToolError(Exception):
    """Raised by a tool to say deliberately that it failed: the model reads the text as it is.

    @tool
    def price(of: str) -> float:
        if of not in prices:
            raise ToolError(f"We sell no {of}. Ask for one of: {', '.join(prices)}.")
    """


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
        """The traits, which decide whether and how it may run."""

    @property
    def is_async(self) -> bool:
        """Whether `call_async` runs it, on the event loop; else `call` does, on a thread."""

    def describe(self) -> Mapping[str, Any]:
        """The name, description and schema, as a Messages-API dict."""

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Run it on the calling thread; never raises."""

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Run it on the event loop; raises nothing but `asyncio.CancelledError`."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTool:
    """A Python function as a tool. Made by `tool`."""

    name: str
    """The name by which the model calls it."""
    description: str
    """The purpose, as the model reads it."""
    function: Callable[..., Any]
    """The function that runs."""
    signature: "types.Signature"
    """The parameters."""
    timeout: float
    """Seconds that a call may take."""
    traits: ToolTraits
    """The traits that the machine must know of it before it runs."""

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop."""
        return inspect.iscoroutinefunction(self.function)

    def describe(self) -> Mapping[str, Any]:
        """The name, description and schema, as a Messages-API dict."""
        return {"name": self.name, "description": self.description, "input_schema": self.signature.schema}

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Run a plain function, on the calling thread; never raises."""
        try:
            return result_of(self.signature.call(arguments))
        except BaseException as error:  # SystemExit too: it must not end the thread that runs others' tools
            return self._failure(error)

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Run an ``async`` function; raises nothing but `asyncio.CancelledError`."""
        try:
            return result_of(await self.signature.call_async(arguments))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return self._failure(error)

    def _failure(self, error: BaseException) -> Result:
        """The text about an exception that the model reads."""
        from ikigai_actors.tools.signature import WrongArguments  # already imported

        if isinstance(error, WrongArguments):
            return Result(cut(f"The arguments do not fit the schema of {self.name}: {error}."), True)
        if any(deliberate(one) is None for one in causes(error)):
            logger.info("Tool %s failed", self.name, exc_info=error)
        return Result(cut(described(error, deliberate)), True)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = TIMEOUT,
    idempotent: bool | Literal["by_key"] = False,
    read_only: bool = False,
    alone: bool = False,
    policy: str = Policy.ALLOW,
    defer: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = TIMEOUT,
    idempotent: bool | Literal["by_key"] = False,
    read_only: bool = False,
    alone: bool = False,
    policy: str = Policy.ALLOW,
    defer: bool = False,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function; a decorator, with or without arguments.

    Args:
        function: the function, plain or ``async``. Every parameter has a name and an annotation.
        name: the name by which the model calls it; the function's name when None.
        description: what it is for; the docstring's text when None.
        timeout: seconds that a call may take.
        idempotent: whether running it twice does what running it once does: after a crash it is simply run again.
            ``"by_key"`` says that this holds because the tool hands ``current_call().key`` to a service that acts
            once for each key.
        read_only: whether it changes nothing outside: then it may run in experiments (`ikigai_actors.behaviour`), and
            it is idempotent, too.
        alone: whether it never runs beside other calls of the same reply.
        policy: ``allow``; ``ask``, so that a person approves each call; or ``deny``. An agent's settings may say
            otherwise.
        defer: whether a model has to find it, by ``find_tools``, before its requests have its description; see the
            setting ``defer``.

    Raises:
        BadInput: the signature gives no schema, the name is not allowed, or an argument cannot be used.
    """
    check_optional(name, str, "name", "text")
    check_optional(description, str, "description", "text")
    check_seconds(timeout, "timeout", zero=False)
    reads = check_flag(read_only, "read_only")
    again, deferred = _runs_again(idempotent) or reads, check_flag(defer, "defer")
    traits = ToolTraits(again, reads, check_flag(alone, "alone"), _policy(policy), deferred=deferred)

    def make(plain: Callable[..., Any]) -> FunctionTool:
        from ikigai_actors.tools.signature import Signature  # only who defines tools waits for pydantic

        signature = Signature(plain)
        called = name or plain.__name__
        if NAME.fullmatch(called) is None:
            raise BadInput(f"A tool's name is 1 to 128 of a-z A-Z 0-9 _ -, got {called!r}; give it another.")
        return FunctionTool(called, description or signature.description, plain, signature, timeout, traits)

    return make if function is None else make(function)


def result_of(value: object) -> Result:
    """A function's return value as the model reads it: text unchanged, None as empty text, anything else as JSON.

    Raises `TypeError` for what has no content that could be written, such as bytes or a generator.
    """
    if isinstance(value, Result):
        return replace(value, content=cut(value.content))
    if isinstance(value, Attachment):
        return Result(name_and_size(value.stored()), attached=(value,))
    if value is None:
        return Result("")
    if isinstance(value, str):
        return Result(cut(value))
    return Result(cut(json.dumps(value, ensure_ascii=False, default=_as_text)))


def _as_text(value: object) -> str:
    """A value without a JSON type, as text. Raises `TypeError`, which says what to return instead."""
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("This tool is broken: it returned a coroutine. Declare its function with `async def`.")
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(
            "This tool is broken: it returned bytes. Return text: value.decode(), or base64; "
            "a picture as attachment(value)."
        )
    if isinstance(value, Iterator | AsyncIterator):
        kind = type(value).__name__
        raise TypeError(
            f"This tool is broken: it returned an iterator ({kind}), which a model cannot read. Return a list."
        )
    return str(value)


def checked_result(value: object) -> Result:
    """A tool's result, if it is one. Raises `TypeError`."""
    if isinstance(value, Result) and isinstance(value.content, str) and isinstance(value.is_error, bool):
        return _with_attachments(value)
    raise TypeError(f"Expected a Result with text and a bool, got {value!r} (type={type(value).__name__}).")


def _with_attachments(result: Result) -> Result:
    """The result, if what is attached to it may be; else one that says why not. Raises `TypeError`."""
    if result.attached == ():
        return result
    if not isinstance(result.attached, tuple | list) or not all(isinstance(one, Attachment) for one in result.attached):
        raise TypeError(f"Expected the attachments of a Result as a tuple of attachment(...), got {result.attached!r}.")
    try:
        check_sum(tuple(result.attached))
    except BadInput as error:
        return Result(cut(f"{result.content}\n[nothing is attached: {error}]"), result.is_error)
    return replace(result, attached=tuple(result.attached))


def cut(text: str) -> str:
    """Text that can be stored, of `LIMIT` characters at most. Cut text says so."""
    text = storable(text)
    if len(text) <= LIMIT:
        return text
    return f"{text[:LIMIT]}\n[cut: {len(text) - LIMIT} more characters; ask for less at a time]"


def timed_out(tool: Tool) -> Result:
    """The result of a call that took too long."""
    return Result(f"{tool.name} did not finish within {tool.timeout:g} s. Its effects so far may remain.", True)


def not_begun(tool: Tool, busy: str) -> Result:
    """The result of a call that found no free thread in time; ``busy`` names the calls that have them."""
    return Result(
        f"{tool.name} did not begin within {tool.timeout:g} s, and nothing of it was done: other calls have all the "
        f"threads for tools ({busy}). Call it again later.",
        True,
    )


def deliberate(error: BaseException) -> str | None:
    """The text of an error by which a tool says that it failed: a `ToolError`, ours or anthropic's; None for others."""
    if isinstance(error, ToolError):
        return str(error)
    theirs = sys.modules.get("anthropic.lib.tools")  # who raises its error has imported it
    return _text_of(error.content) if theirs is not None and isinstance(error, theirs.ToolError) else None


def _text_of(content: object) -> str:
    """The text of content that may be blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list | tuple) else [content]
    return "\n".join(str(block.get("text", block)) if isinstance(block, Mapping) else str(block) for block in blocks)


def _runs_again(idempotent: object) -> bool:
    """Whether a call that was cut off is started again."""
    if isinstance(idempotent, str):
        return bool(check_choice(idempotent, "idempotent", (BY_KEY,)))
    return check_flag(idempotent, "idempotent")


def _policy(text: str) -> Policy:
    try:
        return Policy(text)
    except ValueError as error:
        raise BadInput(f"Expected policy to be one of {', '.join(Policy)}; got {shown(text)}.") from error
