"""The simulator's other services: model list, token count and web search."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse, Response

from ..completion_parsing import SIMULATED
from ..model_catalog import ModelCatalog
from . import vendor_responses
from .directives import Directives, read_directives, without_directives
from .simulated_answer import count_tokens, read_conversation, search_results
from .simulator_endpoint import SimulatorRequest
from .vendor_responses import Json, VendorFailure


def list_models(vendor: str, catalog: ModelCatalog) -> Callable[[SimulatorRequest], Response]:
    """``GET …/models``."""
    models = [
        {"id": model.id, "object": "model", "created": vendor_responses.CREATED, "owned_by": "simulator"}
        for model in catalog.models
        if model.provider == vendor
    ] or [{"id": f"{name}-model", "object": "model", "owned_by": "simulator"} for name in ("small", "large")]
    return lambda _: JSONResponse({"object": "list", "data": models, SIMULATED: True})


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
