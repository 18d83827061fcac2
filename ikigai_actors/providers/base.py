"""The interface of a model: one method that takes a request and returns a reply, with deltas meanwhile.

A provider is written against these types alone. It keeps no agent's state: the request holds all that the model may
know.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol

from ikigai_actors.errors import BadInput
from ikigai_actors.providers.blocks import ModelMessage
from ikigai_actors.providers.conversation import MessageForms
from ikigai_actors.providers.messages_form import read_messages

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    O_co = TypeVar("O_co", default=Any, covariant=True)
else:
    from typing import TypeVar

    O_co = TypeVar("O_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that a model makes in its reply."""

    name: str
    """The tool's name."""
    input: Mapping[str, Any] = field(default_factory=dict)
    """The arguments: a JSON object."""
    id: str = ""
    """The provider's id of the call; empty if the provider gives none."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The numbers of tokens of a request, by kind, as the service has reported them."""

    input_tokens: int = 0
    """Tokens of the request that no cache served."""
    output_tokens: int = 0
    """Tokens of the reply, thinking included."""
    cache_creation_input_tokens: int = 0
    """Tokens of the request that were written to the provider's cache."""
    cache_read_input_tokens: int = 0
    """Tokens of the request that the provider's cache served."""
    cache_creation_1h_input_tokens: int = 0
    """The part of the tokens written to the cache that is kept for an hour, at a higher price."""

    @property
    def all_tokens(self) -> int:
        """The sum of the tokens of all four kinds."""
        return self.input_tokens + self.output_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
            self.cache_creation_1h_input_tokens + other.cache_creation_1h_input_tokens,
        )


NO_TOKENS = Usage()


FIND_TOOLS = "find_tools"
"""The tool by which a model searches for further tools (see `ikigai_actors.agent.turn.found_tools`)."""


REFUSAL = "refusal"
"""The stop reason of a reply in which the model refuses to answer."""


CUT_BY_BUDGET = "budget"
"""The stop reason of a reply that was cut to the rest of a strict budget."""


_NO_VALUE: Any = None


@dataclass(frozen=True, slots=True)
class Reply(Generic[O_co]):
    """A finished reply of a model. ``Reply[Invoice]`` is one whose `output` is an ``Invoice``."""

    text: str = ""
    """The text blocks, joined."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The requested tool calls, in order."""
    stop_reason: str = "end_turn"
    """Why the model stopped, in the provider's word: mostly ``end_turn`` or ``tool_use``; ``max_tokens`` for a reply
    that was cut, `CUT_BY_BUDGET` where a strict budget had no more left for it, and `REFUSAL` where the model does not
    want to answer. It is stored and shown; whether the turn goes on depends on ``tool_calls`` alone.
    """
    usage: Usage | None = None
    """The tokens used; None if the provider does not report them."""
    blocks: tuple[Mapping[str, Any], ...] = ()
    """The provider's own content blocks, unaltered, which are sent back to the same provider; empty if it has none."""
    model: str = ""
    """The name of the model, as the provider reports it."""
    output: O_co = _NO_VALUE
    """The value that the turn was asked for, in a turn that was asked for one: of the type that was asked for, or as
    JSON has it where the type is not known. A provider may give it in a reply without calls: a value of the type, or as
    JSON has it.
    """
    batched: bool = False
    """Whether the reply came from a batch, at the price of batches."""


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A reference to a reply that its service generates and stores, whether or not anybody reads it."""

    id: str
    """The name of it at the service."""
    after: int = 0
    """The number of the event after which it is read."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model. Valid by construction (see `ikigai_actors.agent.turn.request`)."""

    agent: str
    """The uuid of the agent that asks. For the provider's use, never sent to a model."""
    name: str | None
    """The agent's name; None if it has none. For the provider's use, never sent to a model."""
    model: str
    """The model's name within the provider, empty for the provider's default."""
    system: str
    """The system prompt; empty for none."""
    messages: Sequence[Mapping[str, Any]]
    """The conversation as Messages-API dicts: roles alternate, the first is the user's. Those that are read are made
    then, so the last ones cost the same whatever the history. Where a list is needed, for JSON too, make a list of it.
    """
    tools: Sequence[Mapping[str, Any]] = ()
    """Descriptions of the tools on offer, as Messages-API dicts. Those with ``defer_loading`` are not before the model
    yet: a result of `FIND_TOOLS` refers to them. Only a provider that says so gets such (`Provider`).
    """
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The agent's other settings, e.g. ``max_tokens`` and ``thinking``."""
    shared: int = 0
    """The number of leading blocks of the messages that all siblings share: up to the last reply before the fork. For a
    provider's prompt cache.
    """
    output: Mapping[str, Any] | None = None
    """The tool by which the model is to give the value that the turn was asked for; it is among the tools, too. Where
    a service has a mode of its own for that, a provider may use its ``input_schema`` and leave the tool out: the text
    of the reply is then the arguments of that tool, as JSON. None in other turns.
    """
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """The bytes of the pictures and the like in the conversation, by their hash."""
    once: bool = False
    """Whether the request must be sent only once, since a strict budget has reserved its cost. A client must not retry
    it.
    """
    cut_by_budget: bool = False
    """Whether ``settings["max_tokens"]`` was lowered to the rest of a strict budget."""
    kept: KeptReply | None = None
    """The reply to this request that the service makes already. A provider reads it; where the service has it no more,
    the provider sends the request.
    """

    @property
    def conversation(self) -> Sequence[ModelMessage]:
        """The messages of the request as typed blocks (see `ikigai_actors.providers.blocks`)."""
        return self.messages.conversation if isinstance(self.messages, MessageForms) else read_messages(self.messages)


@dataclass(frozen=True, slots=True)
class Spent:
    """The tokens that a service has counted for a reply so far, and the model that it names."""

    usage: Usage
    """The tokens so far."""
    model: str = ""
    """The name of the model that makes the reply, as the provider reports it."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply that is arriving, or its tokens so far."""

    text: str = ""
    kind: str = "text"
    """``text`` or ``thinking``."""
    spent: Spent | None = None
    """The tokens counted so far; None for a piece of text. The last count is used if the reply breaks off. Subscribers
    do not get such deltas.
    """
    kept: KeptReply | None = None
    """The reply as its service keeps it, said once, where the setting ``background`` asks for that: whoever goes on
    with the turn gets it as `Request.kept`. Subscribers do not get such a delta.
    """


class Exit(Exception):
    """Raised by a code-driven agent to end itself normally. Its supervisor gets the result by mail.

    Args:
        result: a text for the supervisor.

    Raises:
        BadInput: the result is no text.
    """

    def __init__(self, result: str = "") -> None:
        if not isinstance(result, str):
            raise BadInput(
                f"Expected the result of Exit as text, got {result!r} ({type(result).__name__}). Make text of it, "
                "e.g. with json.dumps()."
            )
        super().__init__(result)
        self.result = result


class OnDelta(Protocol):
    """A function that takes deltas as they arrive. It must be quick and thread-safe, and must not block."""

    def __call__(self, delta: Delta, /) -> None:
        """Take one delta. Raises `TypeError` for anything else."""


class Provider(Protocol):
    """A model, or code that answers in its place.

    A provider that is the agent's own code has a true attribute ``own_code``. Its exceptions are crashes of the agent,
    on which the supervisor decides. An error of any other provider ends the turn.

    A provider may have an attribute ``counts``: whether its service bills by tokens, so that the cost of a request can
    be estimated from its size. It is False for code: then only the usage in a reply counts as spent.

    A provider may have an attribute ``attachments``, an `AttachmentLimits`: the limits of its service for pictures and
    other attachments. If there are too many, references replace the older ones. A line of text replaces an attachment
    that is too large.

    A provider may have a method ``load()``, which does slow imports. It is called on a thread that may wait, before
    cut-off turns are resumed and budgets reserve tokens for their requests.

    A provider may have a method ``check_ready()``, which raises `ProviderMissing` if there is no key. An experiment
    calls it before it makes any agents.

    A provider may have a method ``refers_to_tools(model)``: whether its service loads the description of a tool where
    a result refers to it (`ResultBlock.found_tools`), without a change to the cached beginning of the request. Without
    this method, found tools are sent with the others.

    A provider that sends `Delta.kept` has a method ``async give_up(id)``, which ends a reply at the service that nobody
    reads any more. Exceptions of this method are logged.

    A provider may have a method ``window(model)``, which returns the size of a model's window in tokens, 0 if unknown.
    A conversation that comes near that size is summarised.
    """

    name: str
    """The first half of an agent's ``model`` setting: ``name:model``."""

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Answer the request.

        Runs on the runtime's event loop, so it must not block; it is cancelled when the turn is interrupted. Any other
        exception (`SystemExit` too), and an answer that is no `Reply` (see `ikigai_actors.providers.checked`), ends the
        turn as a `ProviderError` does.

        Args:
            request: the request.
            on_delta: takes the pieces of the reply as they come.

        Returns:
            The whole reply.

        Raises:
            ProviderError: there is no answer.
        """

    async def close(self) -> None:
        """Give back connections. Called on the event loop on which `respond` ran.

        If it raises, the system's next ``close()`` calls it again.
        """


def reply_tokens(settings: Mapping[str, Any], usual: int) -> Any:
    """Return the setting ``max_tokens``; if it is not set, ``usual``, more if the model may think for longer."""
    thinking = settings.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    beside = budget if isinstance(budget, int) and budget >= usual else 0
    return settings.get("max_tokens", usual + beside)


OPENING = "(The conversation begins here.)"
"""The user's first message when the history begins with a reply."""


OPEN_PROMPT = "The prompt that was being worked on at this point, verbatim:"
"""The text before a prompt that was open when a summary was made. Always the same."""


SUMMARISE = "Pause here, and write notes for yourself: they will replace what was said so far."
"""The start of the prompt that asks for a summary."""


REPORT = "Pause here, and write notes for the agent from which you were forked."
"""The start of the prompt that asks a fork for a report of its work for another agent."""


GO_ON = "Go on."
"""The user's last message when the history ends with a reply, or is empty."""
