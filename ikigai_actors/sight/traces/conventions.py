"""The names that spans and metrics use: the names of `opentelemetry-semantic-conventions` `PINNED`, and our own.

The names are strings, because the package keeps them in a private module and moves them. A test compares them with the
package.
"""

PINNED = "0.66b2"
"""The version of ``opentelemetry-semantic-conventions`` whose names are used."""
SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"

SERVICE_NAME = "service.name"
ERROR_TYPE = "error.type"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_CREATION_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
TOKEN_TYPE = "gen_ai.token.type"

INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"
"""The names of the operations that a span or a metric is about."""

OPERATION_DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"

OWN_AGENT = "ikigai.agent.uuid"
OWN_PARENT = "ikigai.parent.uuid"
OWN_TURN = "ikigai.turn"
"""The position of the message that opened the turn."""
OWN_END = "ikigai.end"
"""The position of the message that ended the turn; 0 if the agent's death ended it."""
OWN_POSITION = "ikigai.position"
"""The position of the message with the result of a request; for a call, the position of the reply that contains it."""
OWN_LINK = "ikigai.link"
"""The reason of a link: ``fork``, ``mail`` or ``merge``."""
