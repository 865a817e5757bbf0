"""The models that a vendor lists for an API key."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from .model import Modality, ModelPrice
from .model_details import ModelDetails
from .model_facts import ListedModel, ModelFacts
from .response_values import InvalidResponseError
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiRequest

_WINDOW_FIELDS: Final = ("max_model_len", "context_length", "context_window", "max_context_length")
"""The fields of vLLM, OpenRouter, Groq and Mistral (docs/providers.md names the pages)."""
_TOKENS: Final = 1_000_000
"""Prices of the catalog are per this many tokens."""


class ModelListing:
    """``GET …/models`` (platform.kimi.ai/docs/api/list-models).

    Zhipu has the same endpoint but does not document it, and does not list all served models, such as those with
    vision. So an unlisted GLM model may be available.
    """

    def __init__(self, exchange: VendorExchange, details: ModelDetails | None = None) -> None:
        self._exchange = exchange
        self._details = details

    async def ids(self, *, timeout_s: float) -> tuple[str, ...]:
        """Returns the models' ids, in the vendor's order.

        Raises:
            CallError: the vendor failed.
        """
        return tuple(model.id for model in await self._listed(timeout_s=timeout_s))

    async def models(self, *, timeout_s: float) -> tuple[ListedModel, ...]:
        """Returns the models in the vendor's order, with the properties that the vendor states.

        Raises:
            CallError: the vendor failed.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        models = await self._listed(timeout_s=timeout_s)
        return models if self._details is None else await self._details.completed(models, timeout_s=deadline - clock())

    async def close(self) -> None:
        """Closes the connections for details."""
        if self._details is not None:
            await self._details.close()

    async def _listed(self, *, timeout_s: float) -> tuple[ListedModel, ...]:
        return await self._exchange.ask(ApiRequest(method="GET", path="/models"), read_models, timeout_s=timeout_s)


def read_models(document: Any) -> tuple[ListedModel, ...]:
    """Raises ``InvalidResponseError`` if the document is not a list of models."""
    models = document.get("data") if isinstance(document, dict) else None
    if not isinstance(models, list):
        raise InvalidResponseError("the list of models is missing")
    return tuple(_listed(model) for model in models if isinstance(model, dict) and model.get("id"))


def _listed(entry: Mapping[str, Any]) -> ListedModel:
    # Gemini lists a model as models/ID, but requests name it ID (ai.google.dev/gemini-api/docs/openai).
    vendor_id = str(entry["id"]).removeprefix("models/")
    provider, capabilities = _mapping(entry.get("top_provider")), _mapping(entry.get("capabilities"))
    facts = ModelFacts(
        context_window=next(filter(None, (_count(entry.get(field)) for field in _WINDOW_FIELDS)), None),
        max_output=_count(provider.get("max_completion_tokens")) or _count(entry.get("max_completion_tokens")),
        inputs=_inputs(entry, capabilities),
        tools=_tools(entry, capabilities),
        price=_price(entry.get("pricing")),
    )
    return ListedModel(vendor_id, facts)


def _inputs(entry: Mapping[str, Any], capabilities: Mapping[str, Any]) -> tuple[Modality, ...] | None:
    """OpenRouter lists the kinds of input, and Mistral whether a model accepts images."""
    listed = _mapping(entry.get("architecture")).get("input_modalities")
    if isinstance(listed, list):
        known: tuple[Modality, ...] = ("text", "image", "video", "file")
        return tuple(kind for kind in known if kind in listed) or None
    sees = capabilities.get("vision")
    return None if not isinstance(sees, bool) else ("text", "image") if sees else ("text",)


def _tools(entry: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bool | None:
    """OpenRouter lists the supported parameters, and Mistral whether a model calls functions."""
    parameters, calls = entry.get("supported_parameters"), capabilities.get("function_calling")
    if isinstance(parameters, list):
        return "tools" in parameters
    return calls if isinstance(calls, bool) else None


def _price(pricing: object) -> ModelPrice | None:
    """OpenRouter's prices: texts of dollars per token. A negative price means that the price varies."""
    amounts = {name: _dollars(text) for name, text in _mapping(pricing).items()}
    prompt, answer, cached = (amounts.get(name) for name in ("prompt", "completion", "input_cache_read"))
    if prompt is None or answer is None:
        return None
    return ModelPrice("USD", prompt, answer, cached)


def _dollars(text: object) -> float | None:
    """Dollars per million tokens."""
    try:
        amount = float(text) if isinstance(text, str) else -1.0
    except ValueError:
        return None
    return round(amount * _TOKENS, 6) if 0 <= amount < 1 else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
