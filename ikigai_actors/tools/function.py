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

A call that has not ended by its time-out is over, but its thread runs on, since Python cannot end it. So set a time-out
for everything in a tool that blocks. `SystemStatistics.abandoned` counts such threads.

Every failure becomes a result that helps the model to correct itself: arguments that do not fit, an exception, a
time-out, output over the limit. None of them crashes the agent. A tool says deliberately that it failed by raising
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
"""The default time-out of a tool, in seconds."""

LIMIT = 50_000
"""The most characters of a result. A longer one is cut, and says so."""

BY_KEY = "by_key"
"""The value of ``idempotent`` for a tool that passes the key of `current_call` to a service."""

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""The pattern of a tool's name, which every service takes."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool call: the text that the model reads, attachments, and whether it is an error."""

    content: str
    is_error: bool = False
    attached: tuple[Attachment, ...] = ()
    """Pictures, PDFs and sounds for the model, in addition to the text; see `attachment`."""
    connect: Mapping[str, Any] | None = None
    """The account without which the call did not run: a person is asked to connect it, and the call begins again."""


class ToolError(Exception):
    """An error that a tool raises deliberately. The model reads its text unchanged.

    @tool
    def price(of: str) -> float:
        if of not in prices:
            raise ToolError(f"We sell no {of}. Ask for one of: {', '.join(prices)}.")
    """


class Tool(Protocol):
    """A tool that models may call, and that runs outside of the agent's actor."""

    @property
    def name(self) -> str:
        """The name by which the model calls the tool."""

    @property
    def timeout(self) -> float:
        """The seconds that a call may take."""

    @property
    def traits(self) -> ToolTraits:
        """The traits of the tool, which decide whether and how it may run."""

    @property
    def is_async(self) -> bool:
        """Whether the runtime runs the tool by `call_async`, on the event loop; otherwise by `call`, on a thread."""

    def describe(self) -> Mapping[str, Any]:
        """Return the name, description and schema, as a Messages-API dict."""

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Run the tool on the calling thread; never raises."""

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Run the tool on the event loop; raises nothing but `asyncio.CancelledError`."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTool:
    """A Python function as a tool. The decorator `tool` makes it."""

    name: str
    """The name by which the model calls the tool."""
    description: str
    """The description for the model."""
    function: Callable[..., Any]
    """The function that a call runs."""
    signature: "types.Signature"
    """The parameters of the function."""
    timeout: float
    """The seconds that a call may take."""
    traits: ToolTraits
    """The traits that must be known before the tool runs, such as its policy."""

    @property
    def is_async(self) -> bool:
        """Whether the function is ``async``, and runs on the event loop."""
        return inspect.iscoroutinefunction(self.function)

    def describe(self) -> Mapping[str, Any]:
        """Return the name, description and schema, as a Messages-API dict."""
        return {"name": self.name, "description": self.description, "input_schema": self.signature.schema}

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Run a plain function on the calling thread; never raises."""
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
        from ikigai_actors.tools.signature import WrongArguments  # already imported

        if isinstance(error, WrongArguments):
            return Result(cut(f"The arguments do not fit the schema of {self.name}: {error}."), True)
        if any(deliberate(cause) is None for cause in causes(error)):
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
        description: the description for the model; the text of the docstring when None.
        timeout: seconds that a call may take.
        idempotent: whether two runs have the same effect as one. If a crash cuts such a tool off, it is run again.
            ``"by_key"`` says that this holds because the tool passes ``current_call().key`` to a service that acts once
            for each key.
        read_only: whether the tool changes nothing outside. Such a tool may run in experiments
            (`ikigai_actors.behaviour`), and counts as idempotent.
        alone: whether the tool must not run at the same time as other calls of the same reply.
        policy: ``allow``; ``ask``, so that a person approves each call; or ``deny``. An agent's settings can override
            it.
        defer: whether a model must find the tool with ``find_tools`` before its requests have the description; see the
            setting ``defer``.

    Raises:
        BadInput: no schema can be made of the signature, the name is not allowed, or an argument cannot be used.
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
    """Convert a function's return value to a result: text unchanged, None as empty text, anything else as JSON.

    Raises `TypeError` for values that JSON cannot represent, such as bytes or a generator.
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
    """Return a value without a JSON type as text. Raises `TypeError`, which says what a tool should return instead."""
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
    """Check that a tool has returned a `Result`, and return it. Raises `TypeError`."""
    if isinstance(value, Result) and isinstance(value.content, str) and isinstance(value.is_error, bool):
        return _with_attachments(value)
    raise TypeError(f"Expected a Result with text and a bool, got {value!r} (type={type(value).__name__}).")


def _with_attachments(result: Result) -> Result:
    """Return the result if its attachments are allowed, else a result without them that says why.

    Raises `TypeError`.
    """
    if result.attached == ():
        return result
    if not isinstance(result.attached, tuple | list) or not all(
        isinstance(attachment, Attachment) for attachment in result.attached
    ):
        raise TypeError(f"Expected the attachments of a Result as a tuple of attachment(...), got {result.attached!r}.")
    try:
        check_sum(tuple(result.attached))
    except BadInput as error:
        return Result(cut(f"{result.content}\n[nothing is attached: {error}]"), result.is_error)
    return replace(result, attached=tuple(result.attached))


def cut(text: str) -> str:
    """Make a text storable, and cut it to `LIMIT` characters. A cut text says so."""
    text = storable(text)
    if len(text) <= LIMIT:
        return text
    return f"{text[:LIMIT]}\n[cut: {len(text) - LIMIT} more characters; ask for less at a time]"


def timed_out(tool: Tool) -> Result:
    """Return the error result of a call that took too long."""
    return Result(f"{tool.name} did not finish within {tool.timeout:g} s. Its effects so far may remain.", True)


def not_begun(tool: Tool, busy: str) -> Result:
    """Return the error result of a call that found no free thread in time.

    ``busy`` names the calls that use the threads.
    """
    return Result(
        f"{tool.name} did not begin within {tool.timeout:g} s, and nothing of it was done: other calls have all the "
        f"threads for tools ({busy}). Call it again later.",
        True,
    )


def deliberate(error: BaseException) -> str | None:
    """Return the text of an error that a tool raises deliberately; None for any other error.

    Deliberate are `ToolError`, and the error of the same name in the package ``anthropic``.
    """
    if isinstance(error, ToolError):
        return str(error)
    theirs = sys.modules.get("anthropic.lib.tools")  # who raises its error has imported it
    return _text_of(error.content) if theirs is not None and isinstance(error, theirs.ToolError) else None


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list | tuple) else [content]
    return "\n".join(str(block.get("text", block)) if isinstance(block, Mapping) else str(block) for block in blocks)


def _runs_again(idempotent: object) -> bool:
    """Return whether the runtime may repeat a call that was cut off, by the value of ``idempotent``."""
    if isinstance(idempotent, str):
        return bool(check_choice(idempotent, "idempotent", (BY_KEY,)))
    return check_flag(idempotent, "idempotent")


def _policy(text: str) -> Policy:
    try:
        return Policy(text)
    except ValueError as error:
        raise BadInput(f"Expected policy to be one of {', '.join(Policy)}; got {shown(text)}.") from error
