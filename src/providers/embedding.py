"""The vendor-neutral request for embeddings, and the embeddings. Pure."""

import base64
import binascii
import math
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ..protocol.tool_call import Cost, Usage
from .completion_parsing import SIMULATED
from .model import Model
from .request_body import Body
from .request_check import refused
from .response_values import InvalidResponseError, as_mapping, as_text
from .token_estimate import ESTIMATE_ERROR, estimate_text
from .usage_parsing import dollars, read_usage
from .vendor_dialect import Dialect

Encoding = Literal["float", "base64"]
"""The encoding of vectors: lists of numbers, or base64 of little-endian 32-bit numbers."""
Vector = Sequence[float] | str

MAX_INPUTS: Final = 2_048
"""The maximum number of texts in one request, from OpenAI
(platform.openai.com/docs/api-reference/embeddings/create).
"""
_FLOAT_BYTES: Final = 4
_LARGEST: Final = 3.4e38
"""About the largest 32-bit float. Comparisons with NaN are false."""


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """One request to one embedding model. None in a field selects the vendor's default."""

    model: Model
    inputs: tuple[str, ...] | tuple[tuple[int, ...], ...]
    """Texts, or their tokens."""
    dimensions: int | None = None
    encoding: Encoding = "float"

    @property
    def has_tokens(self) -> bool:
        """Whether the inputs are tokens."""
        return not isinstance(self.inputs[0], str)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One model's answer."""

    vectors: tuple[Vector, ...]
    """The vectors, in the order of the inputs and in the requested encoding."""
    dimensions: int
    """The number of numbers per vector."""
    model: str
    """The model's name in the vendor's response."""
    usage: Usage | None
    cost: Cost | None = None
    """The cost that the vendor states, or else the cost at list price; None if the price or the usage is unknown."""
    simulated: bool = False
    """Whether the response is marked as the simulator's."""


def embedding_body(request: EmbeddingRequest, dialect: Dialect, label: str) -> Body:
    """Returns the body in OpenAI's format. ``label`` is the vendor's display name.

    Raises:
        InvalidArgumentsError: the model or its vendor does not support the request.
    """
    model = request.model
    if model.kind == "chat":
        raise refused("model", f"{model.id} makes completions, not embeddings; `listmodels` shows models that do.")
    if request.has_tokens and not dialect.token_inputs:
        raise refused("input", f"{label} makes no embeddings of tokens; send texts.")
    _check_lengths(request)
    body: dict[str, Any] = {"model": model.sent_id, "input": list(request.inputs)}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    if dialect.base64_vectors:
        body["encoding_format"] = request.encoding
    return body


def _check_lengths(request: EmbeddingRequest) -> None:
    """Refuses texts that are certainly too long, because some vendors shorten them without an error."""
    window = request.model.context_window
    if window is None:
        return
    for place, text in enumerate(request.inputs):
        if not isinstance(text, str):
            tokens = len(text)
        elif len(text) <= window:  # probably not too long
            continue
        else:
            tokens = math.floor(estimate_text(text) * (1 - ESTIMATE_ERROR))
        if tokens > window:
            about = "" if request.has_tokens else "at least about "
            problem = f"has {about}{tokens:,} tokens; {request.model.id} takes {window:,} per text; split it"
            raise refused(f"input.{place}", f"input[{place}] {problem}.")


def read_embeddings(
    document: Any, request: EmbeddingRequest, dialect: Dialect, headers: Mapping[str, str]
) -> Embeddings:
    """Parses a response in OpenAI's format. Call it in a thread, because many numbers take long.

    Raises:
        InvalidResponseError: the response does not have the documented format, or lacks a vector for an input.
    """
    answer = as_mapping(document, "the response")
    entries = answer.get("data")
    if not isinstance(entries, list) or len(entries) != len(request.inputs):
        count = len(entries) if isinstance(entries, list) else 0
        raise InvalidResponseError(f"it has {count} embeddings for {len(request.inputs)} inputs")
    vectors: dict[int, Vector] = {}
    lengths: set[int] = set()
    for place, entry in enumerate(entries):
        fields = as_mapping(entry, "an embedding")
        index = fields.get("index", place)
        if not isinstance(index, int) or not 0 <= index < len(entries) or index in vectors:
            raise InvalidResponseError("the indexes of its embeddings are not those of the inputs")
        vectors[index], length = _vector(fields.get("embedding"), request.encoding)
        lengths.add(length)
    if len(lengths) != 1:
        raise InvalidResponseError("its embeddings differ in length")
    usage = _usage(answer.get("usage"))
    stated = as_mapping(answer.get("usage") or {}, "usage").get("cost") if dialect.cost_in_usage else None
    cost = dollars(stated) or (dollars(headers.get(dialect.cost_header)) if dialect.cost_header else None)
    return Embeddings(
        tuple(vectors[index] for index in range(len(entries))),
        lengths.pop(),
        request.model.answered(as_text(answer.get("model")) or request.model.sent_id),
        usage,
        request.model.cost(usage) if cost is None and usage is not None else cost,
        answer.get(SIMULATED) is True,
    )


def _usage(usage: Any) -> Usage | None:
    """The usage of the prompt alone. Embeddings have no answer, although some vendors count tokens for one."""
    counted = read_usage(usage)
    return None if counted is None or not counted.input_tokens else Usage(counted.input_tokens, 0)


def _vector(value: Any, encoding: Encoding) -> tuple[Vector, int]:
    """Returns a vector in the requested encoding, and its length. Vendors may answer in the other encoding."""
    if isinstance(value, str):
        try:
            packed = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidResponseError("an embedding is not base64") from None
        if not packed or len(packed) % _FLOAT_BYTES:
            raise InvalidResponseError("an embedding is not base64 of 32-bit numbers")
        numbers = _little_endian(array("f", packed))
        return (value if encoding == "base64" else _checked(numbers.tolist())), len(numbers)
    if not isinstance(value, list) or not value:
        raise InvalidResponseError("an embedding is not a list of numbers")
    floats = _checked(value)
    if encoding == "float":
        return floats, len(floats)
    return base64.b64encode(_little_endian(array("f", floats)).tobytes()).decode(), len(floats)


def _checked(numbers: list[Any]) -> list[float]:
    if not all(type(number) in (float, int) and -_LARGEST <= number <= _LARGEST for number in numbers):
        raise InvalidResponseError("an embedding has values that are not numbers")
    return numbers


def _little_endian(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
