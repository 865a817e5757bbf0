"""Models in OpenAI's format (platform.openai.com/docs/api-reference/models). Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec


class ModelEntry(NamedTuple):
    """A model that may be requested."""

    id: str
    provider: str


def model_list(models: Iterable[ModelEntry]) -> bytes:
    """The answer to ``GET /v1/models``."""
    return msgspec.json.encode({"object": "list", "data": [_fields(model) for model in models]})


def model_answer(model: ModelEntry) -> bytes:
    """The answer to ``GET /v1/models/{id}``."""
    return msgspec.json.encode(_fields(model))


def _fields(model: ModelEntry) -> dict[str, Any]:
    # Clients require the date of creation, which the vendors do not state.
    return {"id": model.id, "object": "model", "created": 0, "owned_by": model.provider}
