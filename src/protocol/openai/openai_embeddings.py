"""``POST /v1/embeddings``: converts OpenAI's request to arguments of the tool ``embed``, and its result back. Pure.

As for chats, the arguments have the names of OpenAI's fields, so the tool's errors name the client's fields.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from ..tool_call import ToolResult
from .openai_body import model_name
from .openai_chat_response import report
from .openai_error import OpenAIProblem, invalid

_IGNORED: Final = frozenset({"user", "safety_identifier", "metadata"})
"""Fields that are accepted but not sent, because they describe the caller to the vendor."""


class EmbeddingsRequest(msgspec.Struct, frozen=True):
    """One parsed request."""

    arguments: dict[str, Any]
    """The arguments of the tool ``embed``."""
    model: str
    """The name that the client sent."""


def parse_embeddings(body: Any) -> EmbeddingsRequest | OpenAIProblem:
    """Parses a decoded body."""
    if not isinstance(body, dict):
        return invalid(None, "The body must be a JSON object with model and input.")
    fields = {name: value for name, value in body.items() if value is not None and name not in _IGNORED}
    model = model_name(fields)
    return model if isinstance(model, OpenAIProblem) else EmbeddingsRequest(fields, model)


def embeddings_answer(result: ToolResult) -> bytes:
    """Encodes the result of ``embed`` as a list of embeddings.

    Raises:
        TypeError, ValueError, RecursionError: the result is not valid JSON data.
    """
    data = cast("Mapping[str, Any]", result.structured)
    usage = result.metadata.usage
    tokens = 0 if usage is None else usage.input_tokens
    return msgspec.json.encode(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": vector}
                for index, vector in enumerate(data["embeddings"])
            ],
            "model": data["model"],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            "toold": report(result),
        }
    )
