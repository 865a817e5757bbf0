"""Details that servers state about their models outside of the list: Ollama's ``/api/show``, LiteLLM's ``/model/info``.

docs.ollama.com/api, Show model details; docs.litellm.ai/docs/proxy/model_management, Get Model Information.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import structlog

from ..protocol.error_codes import CallError, ProviderError
from ..protocol.json_text import InvalidJsonError, parse_json
from .http_transport import HttpTransport
from .model import LongPromptPrice, Modality, ModelKind, ModelPrice
from .model_facts import ListedModel, ModelFacts
from .vendor_info import VendorAccess, VendorInfo
from .vendor_transport import ApiRequest, AttemptPlan

DetailSource = Literal["ollama", "litellm"]
"""The kind of a server's interface for model details."""

MAX_SHOWN: Final = 100
"""The maximum number of models whose details are requested from Ollama, one by one. A machine has some dozen."""
MAX_REFUSED: Final = 3
"""After this many refusals, the server counts as one without ``/api/show``. A single model may just have been
deleted.
"""
MAX_DETAIL_BYTES: Final = 8 * 1024 * 1024
"""The maximum size of an answer. LiteLLM describes all models in one answer, each in about 3 KB."""
_TOKENS: Final = 1_000_000
"""Prices of the catalog are per this many tokens."""
_NUM_CTX: Final = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
_LONG_PROMPTS: Final = (128, 200, 272)
"""The thousands of tokens beyond which LiteLLM's ``…_above_…k_tokens`` prices apply."""

_log = structlog.get_logger(__name__)


class ModelDetails:
    """The details of one server's models. Uses plain HTTP, because its answers can be bounded."""

    def __init__(self, vendor: VendorInfo, access: VendorAccess, source: DetailSource) -> None:
        self._source = source
        root = access.base_url.rstrip("/")
        # Ollama's own interface is next to its OpenAI-compatible one, not below it.
        self._http = HttpTransport(
            vendor, replace(access, base_url=root.removesuffix("/v1") if source == "ollama" else root)
        )

    async def completed(self, models: Sequence[ListedModel], *, timeout_s: float) -> tuple[ListedModel, ...]:
        """Returns all models, with the details that the server returns in time. After a failure, the models have no
        further details.
        """
        details: dict[str, ModelFacts] = {}
        try:
            async with asyncio.timeout(timeout_s):
                if self._source == "litellm":
                    answer = await self._ask(ApiRequest(method="GET", path="/model/info"), timeout_s)
                    details.update(read_model_info(answer))
                else:
                    await self._show(models[:MAX_SHOWN], details, timeout_s)
        except (CallError, InvalidJsonError, TimeoutError) as error:
            _log.info("details of models not available", source=self._source, error=type(error).__name__)
        return tuple(_with_details(model, details.get(model.id)) for model in models)

    async def _show(self, models: Sequence[ListedModel], details: dict[str, ModelFacts], timeout_s: float) -> None:
        """Adds the details of each model to ``details``.

        Raises:
            CallError: the server cannot be reached, or refuses ``MAX_REFUSED`` requests.
        """
        refused = 0
        for model in models:
            request = ApiRequest(method="POST", path="/api/show", body={"model": model.id})
            try:
                details[model.id] = read_show(await self._ask(request, timeout_s))
            except ProviderError:
                refused += 1
                if refused == MAX_REFUSED:
                    raise

    async def _ask(self, request: ApiRequest, timeout_s: float) -> Any:
        answer = await self._http.send(replace(request, max_bytes=MAX_DETAIL_BYTES), AttemptPlan(timeout_s, retries=0))
        return parse_json(answer.content)

    async def close(self) -> None:
        await self._http.close()


def _with_details(model: ListedModel, details: ModelFacts | None) -> ListedModel:
    """Adds details; values from the list take precedence."""
    return model if details is None else ListedModel(model.id, details.overridden_by(model.facts))


def read_show(document: Any) -> ModelFacts:
    """Reads Ollama's details of one model. Its window is the model's ``num_ctx`` if stated; otherwise the model's
    maximum, which the server may still reduce (OLLAMA_CONTEXT_LENGTH).
    """
    answer = _mapping(document)
    lengths = [
        value for name, value in _mapping(answer.get("model_info")).items() if str(name).endswith(".context_length")
    ]
    longest = next(filter(None, map(_count, lengths)), None)
    stated = _NUM_CTX.search(parameters) if isinstance(parameters := answer.get("parameters"), str) else None
    window = min(filter(None, (longest, None if stated is None else int(stated[1]))), default=None)
    abilities = answer.get("capabilities")
    if not isinstance(abilities, list):
        return ModelFacts(context_window=window)
    kind: ModelKind | None = "chat" if "completion" in abilities else "embedding" if "embedding" in abilities else None
    return ModelFacts(
        kind=kind,
        context_window=window,
        inputs=("text", "image") if "vision" in abilities else ("text",),
        tools="tools" in abilities,
        thinking=None if "thinking" in abilities else "none",
    )


def read_model_info(document: Any) -> dict[str, ModelFacts]:
    """Reads LiteLLM's details by the name of the model. If several deployments share a name, values on which
    they differ are unknown, and the smallest window counts.
    """
    entries = _mapping(document).get("data")
    models: dict[str, ModelFacts] = {}
    for entry in entries if isinstance(entries, list) else ():
        name, info = _mapping(entry).get("model_name"), _mapping(_mapping(entry).get("model_info"))
        if isinstance(name, str) and name:
            facts = _deployment(info)
            models[name] = models[name].agreeing_with(facts) if name in models else facts
    return models


def _deployment(info: Mapping[str, Any]) -> ModelFacts:
    mode = info.get("mode")
    kind: ModelKind | None = "embedding" if mode == "embedding" else "chat" if mode in ("chat", "responses") else None
    sees, calls = info.get("supports_vision"), info.get("supports_function_calling")
    inputs: tuple[Modality, ...] | None = None
    if isinstance(sees, bool):
        inputs = ("text", "image") if sees else ("text",)
    return ModelFacts(
        kind=kind,
        context_window=_count(info.get("max_input_tokens")),
        max_output=None if kind == "embedding" else _count(info.get("max_output_tokens")),
        inputs=inputs,
        tools=calls if isinstance(calls, bool) else None,
        price=_price(info, kind),
    )


def _price(info: Mapping[str, Any], kind: ModelKind | None) -> ModelPrice | None:
    """The price, from dollars per token. LiteLLM writes 0 for models whose price it does not know, so 0 counts as
    unknown.
    """
    amounts = _dollars(info, "input_cost_per_token"), _dollars(info, "output_cost_per_token")
    prompt, answer = amounts[0], 0.0 if kind == "embedding" else amounts[1]
    if prompt is None or answer is None or not (prompt or answer):
        return None
    longer = [
        LongPromptPrice(thousands * 1_000, long_prompt, answer if long_answer is None else long_answer)
        for thousands in _LONG_PROMPTS
        if (long_prompt := _dollars(info, f"input_cost_per_token_above_{thousands}k_tokens"))
        for long_answer in [_dollars(info, f"output_cost_per_token_above_{thousands}k_tokens")]
    ]
    cached = _dollars(info, "cache_read_input_token_cost")
    return ModelPrice("USD", prompt, answer, cached, longer[0] if longer else None)


def _dollars(info: Mapping[str, Any], name: str) -> float | None:
    amount = info.get(name)
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 1:
        return None
    return round(amount * _TOKENS, 6)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
