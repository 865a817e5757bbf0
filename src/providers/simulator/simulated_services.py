"""The simulator's other services: model list, token count and web search."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from ..completion_parsing import SIMULATED
from ..model_catalog import ModelCatalog
from . import vendor_responses
from .directives import Directives, read_directives, without_directives
from .simulated_answer import count_tokens, read_conversation, search_results
from .simulated_dialects import DOLLARS_PER_TOKEN
from .simulator_endpoint import SimulatorRequest
from .vendor_responses import Json, VendorFailure

OPEN_MODELS: Final = ("small-model", "large-model")
"""The models that configured providers list. They accept any model."""
SHOWN_WINDOW: Final = 65_536
"""The window of these models, as stated by Ollama and LiteLLM."""


def list_models(vendor: str, catalog: ModelCatalog) -> Callable[[SimulatorRequest], Response]:
    """``GET …/models``."""
    models = [
        {"id": model.id, "object": "model", "created": vendor_responses.CREATED, "owned_by": "simulator"}
        for model in catalog.models
        if model.provider == vendor
    ] or [{"id": name, "object": "model", "owned_by": "simulator"} for name in OPEN_MODELS]
    return lambda _: JSONResponse({"object": "list", "data": models, SIMULATED: True})


def show_model(incoming: SimulatorRequest) -> Response | VendorFailure:
    """Ollama's ``POST /api/show``."""
    name = incoming.document.get("model")
    if name not in OPEN_MODELS:
        return vendor_responses.unknown_model("ollama", str(name))
    small = name == "small-model"
    return JSONResponse(
        {
            "parameters": f"num_ctx                        {SHOWN_WINDOW // 2}\ntemperature 0.7" if small else "",
            "details": {"family": "sim"},
            "model_info": {"general.architecture": "sim", "sim.context_length": SHOWN_WINDOW},
            "capabilities": ["completion", "tools"] if small else ["completion", "tools", "vision"],
            SIMULATED: True,
        }
    )


def model_info(_: SimulatorRequest) -> Response:
    """LiteLLM's ``GET /model/info``."""
    info = {
        "mode": "chat",
        "max_input_tokens": SHOWN_WINDOW,
        "max_output_tokens": 8_192,
        "input_cost_per_token": DOLLARS_PER_TOKEN,
        "output_cost_per_token": DOLLARS_PER_TOKEN,
        "supports_vision": True,
        "supports_function_calling": True,
    }
    data = [{"model_name": name, "litellm_params": {"model": name}, "model_info": info} for name in OPEN_MODELS]
    return JSONResponse({"data": data, SIMULATED: True})


def count(vendor: str, catalog: ModelCatalog) -> Callable[[SimulatorRequest], Response | VendorFailure]:
    """Kimi's ``POST …/tokenizers/estimate-token-count``, GLM's ``POST …/tokenizer``."""
    known = {model.id for model in catalog.models if model.provider == vendor}

    def answer(incoming: SimulatorRequest) -> Response | VendorFailure:
        body = incoming.document
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            return vendor_responses.failure(vendor, 400)
        if body.get("model") not in known:
            return vendor_responses.unknown_model(vendor, str(body.get("model")))
        return JSONResponse(vendor_responses.count_body(vendor, _tokens(messages, body.get("tools") or ())))

    return answer


def search(incoming: SimulatorRequest) -> Response | VendorFailure:
    """GLM's ``POST …/web_search``."""
    body = incoming.document
    query = without_directives(str(body.get("search_query") or ""))
    if not query or not body.get("search_engine"):
        return vendor_responses.invalid_request("glm", "search_engine:The search_engine cannot both be empty.")
    wanted = body.get("count")
    return JSONResponse(
        vendor_responses.search_body(query, search_results(query, wanted if isinstance(wanted, int) else 10))
    )


def search_directives(incoming: SimulatorRequest) -> Directives:
    """Returns the directives of the query."""
    return read_directives(str(incoming.document.get("search_query") or ""))


def _tokens(messages: Sequence[Mapping[str, Any]], tools: Sequence[Json]) -> int:
    return read_conversation(messages).input_tokens + sum(count_tokens(str(tool)) for tool in tools)
