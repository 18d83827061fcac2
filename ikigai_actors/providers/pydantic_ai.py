"""Any model that Pydantic AI knows.

    ActorSystem.open(provider=PydanticAIProvider("google:gemini-3-pro"))
    agent.configure(model="pydantic:mistral:mistral-large-latest")

Needs: ``pip install 'ikigai-actors[pydantic-ai]'``, and the extra of ``pydantic-ai-slim`` for the service. Settings
that it knows: ``max_tokens``, ``temperature``, ``top_p``, ``stop_sequences``. Thinking goes back to the model that had
it.

The clients of services do not retry, if Pydantic AI can switch that off: the agent's turn retries. Under a strict
budget, a request to a model whose client may retry is refused before it is sent.

Pydantic AI does not distinguish a stream that is cut within a text from one that ends there: such a reply counts as
whole. Half a call is an error, and never runs.
"""

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput, ProviderError
from ikigai_actors.providers import blocks
from ikigai_actors.providers.base import Delta, OnDelta, Reply, Request, ToolCall, Usage
from ikigai_actors.providers.extra_options import extra_options
from ikigai_actors.providers.malformed import MalformedStreamError
from ikigai_actors.providers.openai_parts import own_names, sent_name
from ikigai_actors.providers.remedies import garbled
from ikigai_actors.providers.retry_after import refused_until
from ikigai_actors.providers.streamed_reply import HalfACallError, read_arguments

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_MISSING = "The package pydantic_ai is missing: pip install 'ikigai-actors[pydantic-ai]'."
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_call": "tool_use", "content_filter": "refusal"}


class PydanticAIProvider:
    """Answers with a model of Pydantic AI's.

    Args:
        model: The model of agents whose settings name none: its name, as ``"google:gemini-3-pro"``, or the model
            itself.

    Raises:
        BadInput: The model is neither.
    """

    name = "pydantic"

    def __init__(self, model: Any = "") -> None:
        name: object = model if isinstance(model, str) else getattr(model, "model_name", None)
        if not isinstance(name, str):
            raise BadInput(f"Expected model to be a name, as 'google:gemini-3-pro', or a model; got {shown(model)}.")
        self.model = name
        """The model of agents whose settings name none."""
        self._models: dict[str, Any] = {self.model: model}
        self._entered: dict[str, Model] = {}
        self._clients = AsyncExitStack()

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Ask the model and stream its reply. Raises `ProviderError`."""
        try:
            await asyncio.to_thread(_import)  # here it would stop every other agent's stream
            from pydantic_ai import direct, exceptions, messages, models, tools
        except ModuleNotFoundError as error:
            raise ProviderError(_MISSING) from error
        asked, text = request.model or self.model, list[str]()
        known = ("max_tokens", "temperature", "top_p", "stop_sequences")
        settings: Any = {name: request.settings[name] for name in known if name in request.settings}
        settings |= extra_options(request, settings)
        offered = [
            tools.ToolDefinition(
                name=sent_name(tool["name"]),
                parameters_json_schema=tool["input_schema"],
                description=tool.get("description"),
                strict=False,  # where it is not said, Pydantic AI chooses strict mode, which refuses more
            )
            for tool in request.tools
        ]
        try:
            model = self._entered.get(asked)
            if model is None:
                model = models.infer_model(self._models.get(asked, asked))
                self._entered[asked] = await self._clients.enter_async_context(model)
            if request.once:
                _refuse_hidden_attempts(model)
            if "max_retries" not in model.unsupported_settings:
                settings["max_retries"] = 0  # the agent's turn asks again, where people see it wait
            parameters = models.ModelRequestParameters(function_tools=offered)
            async with direct.model_request_stream(
                model, _history(request), model_settings=settings, model_request_parameters=parameters
            ) as stream:
                async for event in stream:
                    part: Any = None
                    if isinstance(event, messages.PartStartEvent | messages.PartDeltaEvent):
                        part = event.part if isinstance(event, messages.PartStartEvent) else event.delta
                    piece = getattr(part, "content", None) or getattr(part, "content_delta", None)
                    if isinstance(part, messages.TextPart | messages.TextPartDelta) and piece:
                        text.append(piece)
                        on_delta(Delta(piece))
                    elif isinstance(part, messages.ThinkingPart | messages.ThinkingPartDelta) and piece:
                        on_delta(Delta(piece, "thinking"))
                response = stream.get()
            return _reply(response, own_names(request.tools))
        except HalfACallError as error:
            raise ProviderError(f"The reply ended in the middle of a call of {error.name!r}.", "".join(text)) from error
        except MalformedStreamError as error:
            raise ProviderError(garbled(error), "".join(text), broke_off=True) from error
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            status = getattr(error, "status_code", None)
            away = isinstance(error, exceptions.ModelAPIError) and (status is None or status >= 500 or status == 429)
            refused = status is not None and not error.in_stream
            again = _retry_after(error, status) if away else None
            raise ProviderError(
                f"Pydantic AI: {error}", "".join(text), unavailable=away, free=refused, retry_after=again
            ) from error

    async def close(self) -> None:
        """Close the connections of the models that were asked. A later request opens new ones."""
        self._entered.clear()
        await self._clients.aclose()


def _import() -> None:
    import pydantic_ai.direct  # noqa: F401 - for its time, which is spent on a thread here


def _refuse_hidden_attempts(model: "Model") -> None:
    """Refuse a model that may ask more than once for one request. Raises `ProviderError`."""
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.wrapper import WrapperModel

    while isinstance(model, WrapperModel):
        model = model.wrapped
    if isinstance(model, FallbackModel):
        several = ", ".join(f"pydantic:{inner.model_id}" for inner in model.models)
        raise ProviderError(
            "A strict budget counts each attempt, and Pydantic AI's FallbackModel hides some: name its models one by "
            f"one in the setting model, as {several!r}.",
            free=True,
        )
    if "max_retries" in model.unsupported_settings:
        raise ProviderError(
            f"A strict budget counts each attempt, and Pydantic AI cannot keep the client of {model.model_id} from "
            "trying again by itself: use another model, or a budget that is not strict.",
            free=True,
        )


def _retry_after(error: Any, status: int | None) -> float:
    """Return the seconds after which an unavailable service may be asked again; 0 if it names none."""
    if status is None or error.in_stream:  # the headers are those of the stream that had begun
        return 0.0
    return refused_until(status, error.headers or {}) or error.retry_after or 0.0


def _history(request: Request) -> list[Any]:
    from pydantic_ai import messages

    made: list[Any] = []
    for message in request.conversation:
        parts: list[Any] = []
        for block in message.blocks:
            match block:
                case blocks.TextBlock() if message.role == "assistant":
                    parts.append(messages.TextPart(block.text))
                case blocks.TextBlock():
                    parts.append(messages.UserPromptPart(block.text))
                case blocks.ThinkingBlock(own={"part": dict() as part}):
                    parts.append(messages.ThinkingPart(**part))
                case blocks.CallBlock():
                    parts.append(messages.ToolCallPart(sent_name(block.name), dict(block.input), block.id))
                case blocks.ResultBlock():
                    outcome: Any = "failed" if block.is_error else "success"
                    parts.append(
                        messages.ToolReturnPart(sent_name(block.name), block.text, block.call_id, outcome=outcome)
                    )
                    parts += [_attached(attachment, request) for attachment in block.attached]
                case blocks.PictureBlock() | blocks.DocumentBlock() | blocks.AudioBlock():
                    parts.append(_attached(block, request))
        if message.role == "assistant":
            made.append(messages.ModelResponse(parts))
        else:
            made.append(messages.ModelRequest(parts, instructions=request.system or None))
    return made


def _attached(block: blocks.Attached, request: Request) -> Any:
    from pydantic_ai import messages

    data = messages.BinaryContent(request.blobs[block.blob.sha256], media_type=block.blob.media)
    return messages.UserPromptPart([data])


def _reply(response: Any, names: Mapping[str, str]) -> Reply:
    """Return a whole reply. ``names`` has the tools' own names by those sent.

    Raises `HalfACallError` and `MalformedStreamError`.
    """
    stored: list[dict[str, Any]] = []
    for part in response.parts:
        match part.part_kind:
            case "text" if part.content:
                stored.append({"type": "text", "text": part.content})
            case "thinking":
                kept = {each.name: getattr(part, each.name) for each in dataclasses.fields(part) if each.init}
                stored.append({"type": "thinking", "thinking": part.content, "part": kept})
            case "tool-call":  # its own reading of arguments takes half of them for whole ones
                text = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
                arguments = read_arguments(part.tool_name, text, cut=response.finish_reason == "length")
                name = names.get(part.tool_name, part.tool_name)
                stored.append({"type": "tool_use", "id": part.tool_call_id, "name": name, "input": arguments})
    calls = tuple(
        ToolCall(block["name"], block["input"], block["id"]) for block in stored if block["type"] == "tool_use"
    )
    used = response.usage
    plain = max(used.input_tokens - used.cache_read_tokens - used.cache_write_tokens, 0)
    reason = _STOP_REASONS.get(response.finish_reason or "stop", str(response.finish_reason))
    return Reply(
        "".join(block["text"] for block in stored if block["type"] == "text"),
        calls,
        "tool_use" if calls else reason,
        Usage(plain, used.output_tokens, used.cache_write_tokens, used.cache_read_tokens),
        tuple(stored),
        response.model_name or "",
    )
