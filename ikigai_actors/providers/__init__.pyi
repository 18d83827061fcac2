# The names that this package hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.providers.anthropic import AnthropicProvider as AnthropicProvider
from ikigai_actors.providers.attachment_limits import AttachmentLimits as AttachmentLimits
from ikigai_actors.providers.base import Delta as Delta
from ikigai_actors.providers.base import Exit as Exit
from ikigai_actors.providers.base import KeptReply as KeptReply
from ikigai_actors.providers.base import OnDelta as OnDelta
from ikigai_actors.providers.base import Provider as Provider
from ikigai_actors.providers.base import Reply as Reply
from ikigai_actors.providers.base import Request as Request
from ikigai_actors.providers.base import Spent as Spent
from ikigai_actors.providers.base import ToolCall as ToolCall
from ikigai_actors.providers.base import Usage as Usage
from ikigai_actors.providers.batches import BatchService as BatchService
from ikigai_actors.providers.blocks import AudioBlock as AudioBlock
from ikigai_actors.providers.blocks import Blob as Blob
from ikigai_actors.providers.blocks import CallBlock as CallBlock
from ikigai_actors.providers.blocks import DocumentBlock as DocumentBlock
from ikigai_actors.providers.blocks import ModelMessage as ModelMessage
from ikigai_actors.providers.blocks import PictureBlock as PictureBlock
from ikigai_actors.providers.blocks import ResultBlock as ResultBlock
from ikigai_actors.providers.blocks import ServiceBlock as ServiceBlock
from ikigai_actors.providers.blocks import TextBlock as TextBlock
from ikigai_actors.providers.blocks import ThinkingBlock as ThinkingBlock
from ikigai_actors.providers.function import FunctionProvider as FunctionProvider
from ikigai_actors.providers.limits import Limits as Limits
from ikigai_actors.providers.offline import OfflineProvider as OfflineProvider
from ikigai_actors.providers.openai import OpenAIProvider as OpenAIProvider
from ikigai_actors.providers.prices import Price as Price
from ikigai_actors.providers.prices import PricedModel as PricedModel
from ikigai_actors.providers.pydantic_ai import PydanticAIProvider as PydanticAIProvider
from ikigai_actors.providers.scripted import ScriptedProvider as ScriptedProvider
from ikigai_actors.providers.scripted import Stream as Stream

__all__: list[str]
