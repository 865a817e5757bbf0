"""Token estimates of texts and requests. Pure."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from ...providers import CompletionRequest, EmbeddingRequest, FunctionTool, Message, TextPart, estimate_text

IMAGE_TOKENS: Final = 1_024
"""Assumed tokens per image; the vendors do not document the number."""
MESSAGE_TOKENS: Final = 8
"""Approximate tokens around each message or file."""

COUNTED_CHARS: Final = 65_536
"""Longer texts are sampled, because a full count takes 0.1 s per megabyte."""
_SAMPLES: Final = 16


def estimate_tokens(texts: Iterable[str]) -> int:
    """Estimates the tokens of the texts, within ``ESTIMATE_ERROR``. Samples long texts evenly."""
    return sum(map(_estimate, texts))


def estimate_request(request: CompletionRequest) -> int:
    """Estimates the tokens of a request. Joins its texts before sampling, so it takes a few milliseconds at most."""
    images = sum(not isinstance(part, TextPart) for message in request.messages for part in _parts(message))
    overhead = (len(request.messages) + len(request.files)) * MESSAGE_TOKENS
    return _estimate("\n".join(filter(None, _texts(request)))) + images * IMAGE_TOKENS + overhead


def estimate_embeddings(request: EmbeddingRequest) -> int:
    """Estimates the tokens of a request for embeddings. Inputs that are tokens already are counted."""
    texts = [item for item in request.inputs if isinstance(item, str)]
    return _estimate("\n".join(texts)) if texts else sum(map(len, request.inputs))


def _texts(request: CompletionRequest) -> Iterator[str]:
    for message in request.messages:
        yield from (part.text for part in _parts(message) if isinstance(part, TextPart))
        yield message.reasoning
        yield from (call.arguments for call in message.tool_calls)
    yield from (file.text for file in request.files)
    for tool in request.tools:
        if isinstance(tool, FunctionTool):
            yield f"{tool.name} {tool.description} {json.dumps(tool.parameters)}"
    if request.response_format is not None:
        yield json.dumps(request.response_format.schema)


def _parts(message: Message) -> tuple[object, ...]:
    return (TextPart(message.content),) if isinstance(message.content, str) else message.content


def _estimate(text: str) -> int:
    if len(text) <= COUNTED_CHARS:
        return estimate_text(text)
    size, stride = COUNTED_CHARS // _SAMPLES, len(text) // _SAMPLES
    counted = sum(estimate_text(text[at : at + size]) for at in range(0, stride * _SAMPLES, stride))
    return counted * len(text) // COUNTED_CHARS
