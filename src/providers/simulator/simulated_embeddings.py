"""The simulator's embeddings. They depend only on the text; texts with common words have similar vectors."""

import base64
import hashlib
import math
import re
import struct
from array import array
from collections.abc import Callable
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from ..completion_parsing import SIMULATED
from ..model_catalog import ModelCatalog
from ..vendor_dialect import DIALECTS
from . import vendor_responses
from .directives import Directives, read_directives, without_directives
from .simulated_answer import count_tokens
from .simulator_endpoint import SimulatorRequest
from .vendor_responses import VendorFailure

DIMENSIONS: Final = 256
"""The default number of numbers in a vector."""
MAX_DIMENSIONS: Final = 4_096
"""The maximum number of numbers in a vector: more than the largest current model has."""
_PER_WORD: Final = 8
"""The number of numbers that a word changes."""


def make_embeddings(
    vendor: str, form: str, catalog: ModelCatalog
) -> Callable[[SimulatorRequest], Response | VendorFailure]:
    """``POST …/embeddings``."""
    known = {model.id for model in catalog.models if model.provider == vendor and model.kind == "embedding"}
    every_model = vendor not in {model.provider for model in catalog.models}
    dialect = DIALECTS.get(form)
    takes_tokens = vendor != "glm" if dialect is None else dialect.token_inputs

    def answer(incoming: SimulatorRequest) -> Response | VendorFailure:
        body = incoming.document
        name, inputs = str(body.get("model")), _inputs(body.get("input"))
        if not every_model and name not in known:
            return vendor_responses.unknown_model(form, name)
        if not inputs or not all(inputs) or (not takes_tokens and not all(isinstance(text, str) for text in inputs)):
            return vendor_responses.invalid_request(
                form, "input must be a text, or a list of texts, none of them empty"
            )
        wanted = body.get("dimensions", DIMENSIONS)
        if not isinstance(wanted, int) or not 0 < wanted <= MAX_DIMENSIONS:
            return vendor_responses.invalid_request(form, f"dimensions must be from 1 to {MAX_DIMENSIONS}")
        tokens = sum(count_tokens(text) if isinstance(text, str) else len(text) for text in inputs)
        vectors = [vector_of(text, wanted) for text in inputs]
        packed = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": index, "embedding": _packed(vector) if packed else vector}
            for index, vector in enumerate(vectors)
        ]
        usage: dict[str, Any] = {"prompt_tokens": tokens, "total_tokens": tokens}
        if form == "openrouter":
            usage["cost"] = 0.0
        return JSONResponse({"object": "list", "data": data, "model": name, "usage": usage, SIMULATED: True})

    return answer


def input_directives(incoming: SimulatorRequest) -> Directives:
    """Returns the directives of the first text."""
    texts = _inputs(incoming.document.get("input"))
    return read_directives(texts[0]) if texts and isinstance(texts[0], str) else Directives()


def vector_of(text: str | list[int], dimensions: int) -> list[float]:
    """Returns a vector of length 1, of 32-bit numbers."""
    numbers = [0.0] * dimensions
    for word in _words(text) if isinstance(text, str) else text:
        digest = hashlib.sha256(str(word).encode()).digest()
        for place, sign in struct.iter_unpack("<HH", digest[: 4 * _PER_WORD]):
            numbers[place % dimensions] += 1.0 if sign % 2 else -1.0
    length = math.sqrt(sum(number * number for number in numbers))
    if not length:
        numbers[0] = length = 1.0
    return array("f", [number / length for number in numbers]).tolist()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", without_directives(text).lower())


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _inputs(value: Any) -> list[str] | list[list[int]]:
    """The texts, or the tokens of each; empty if the value is neither."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        return []
    if all(isinstance(item, int) for item in value):
        return [value]
    same = all(isinstance(item, type(value[0])) for item in value) and isinstance(value[0], str | list)
    return value if same else []
