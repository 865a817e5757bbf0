"""The names of OpenTelemetry's conventions for generative AI, which are in development and may still change.

https://github.com/open-telemetry/semantic-conventions-genai, v0.1.0. Only this module contains these names.
"""

from collections.abc import Mapping
from typing import Final, Literal

Operation = Literal["execute_tool", "invoke_agent", "chat", "embeddings"]

OPERATION: Final = "gen_ai.operation.name"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_ENCODINGS: Final = "gen_ai.request.encoding_formats"
DIMENSIONS: Final = "gen_ai.embeddings.dimension.count"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"

PROJECT: Final = "openinference.project.name"
"""An attribute of the resource: Phoenix' name for a group of traces."""
FUNCTION_TOOL: Final = "function"
"""``gen_ai.tool.type`` of a tool whose code runs here."""
EXTENSION_TOOL: Final = "extension"
"""``gen_ai.tool.type`` of a tool that calls an API elsewhere."""

_PROVIDERS: Final[Mapping[str, str]] = {
    "kimi": "moonshot_ai",
    "glm": "zhipu_ai",  # not a name of the conventions, which have none
    "gemini": "gcp.gemini",
    "xai": "x_ai",
    "mistral": "mistral_ai",
}


def provider_name(provider: str) -> str:
    """Returns the conventions' name of a provider; toold's name if they have none."""
    return _PROVIDERS.get(provider, provider)
