"""How many tokens a text has, before it is sent and paid for. Pure."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from ...providers import CompletionRequest, FunctionTool, Message, TextPart, estimate_text

IMAGE_TOKENS: Final = 1_024
"""What an image counts as, since its price in tokens is the vendor's secret."""
MESSAGE_TOKENS: Final = 8
"""What a vendor wraps a message or a file in, about."""

COUNTED_CHARS: Final = 65_536
"""A longer text is counted by samples: all of it would take a tenth of a second a megabyte."""
_SAMPLES: Final = 16


def estimate_tokens(texts: Iterable[str]) -> int:
    """About how many tokens the texts are, within ``ESTIMATE_ERROR``; long ones by samples from all over them."""
    return sum(map(_estimate, texts))


def estimate_request(request: CompletionRequest) -> int:
    """About how many tokens a request is. All its texts count as one, so that it takes some milliseconds at most."""
    images = sum(not isinstance(part, TextPart) for message in request.messages for part in _parts(message))
    wrapped = (len(request.messages) + len(request.files)) * MESSAGE_TOKENS
    return _estimate("\n".join(filter(None, _texts(request)))) + images * IMAGE_TOKENS + wrapped


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
