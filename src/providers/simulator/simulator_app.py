"""The simulator's HTTP: which addresses there are, and who answers there."""

from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from ..model_catalog import ModelCatalog, ProviderName
from .request_log import Operation, RequestLog
from .simulated_chat import SimulatedChat
from .simulated_files import FileStorage, upload_wishes
from .simulated_services import count, list_models, search, search_wishes
from .simulator_endpoint import SimulatorRequest, SimulatorService, Wishes, no_wishes
from .vendor_responses import VendorFailure

ROOTS: Mapping[ProviderName, str] = {"kimi": "/kimi/v1", "glm": "/glm/api/paas/v4"}


def simulator_app(catalog: ModelCatalog, census: RequestLog) -> Starlette:
    """Serves ``/kimi/v1`` and ``/glm/api/paas/v4``."""
    return Starlette(routes=[route for vendor in ROOTS for route in _routes(vendor, catalog, census)])


def _routes(vendor: ProviderName, catalog: ModelCatalog, census: RequestLog) -> list[Route]:
    root = ROOTS[vendor]
    shelf = FileStorage(vendor)

    def route(
        method: str,
        path: str,
        operation: Operation,
        answer: Callable[[SimulatorRequest], Response | VendorFailure],
        wishes: Wishes = no_wishes,
    ) -> Route:
        return Route(f"{root}{path}", SimulatorService(vendor, operation, census, answer, wishes), methods=[method])

    routes = [
        Route(f"{root}/chat/completions", SimulatedChat(vendor, catalog, census), methods=["POST"]),
        route("GET", "/models", "models", list_models(vendor, catalog)),
        route("POST", "/files", "files", shelf.upload, upload_wishes),
        route("GET", "/files", "files", shelf.list),
        route("DELETE", "/files/{file_id}", "files", shelf.delete),
        route("GET", "/files/{file_id}/content", "files", shelf.content),
    ]
    if vendor == "kimi":
        routes.append(route("GET", "/files/{file_id}", "files", shelf.info))
        routes.append(route("POST", "/tokenizers/estimate-token-count", "tokens", count(vendor, catalog)))
    else:
        routes.append(route("POST", "/tokenizer", "tokens", count(vendor, catalog)))
        routes.append(route("POST", "/web_search", "search", search, search_wishes))
    return routes
