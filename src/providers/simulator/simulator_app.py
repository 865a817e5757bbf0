"""The simulator's HTTP routes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from ..model_catalog import ModelCatalog
from .request_log import Operation, RequestLog
from .simulated_chat import SimulatedChat
from .simulated_embeddings import input_directives, make_embeddings
from .simulated_files import FileStorage, upload_directives
from .simulated_services import count, list_models, model_info, search, search_directives, show_model
from .simulator_endpoint import ReadDirectives, SimulatorRequest, SimulatorService, no_directives
from .vendor_responses import VendorFailure

ROOTS: Mapping[str, str] = {"kimi": "/kimi/v1", "glm": "/glm/api/paas/v4"}


def root_of(vendor: str) -> str:
    """Returns the path of the vendor's base URL; for a configured provider ``/NAME/v1``."""
    return ROOTS.get(vendor, f"/{vendor}/v1")


def simulator_app(
    catalog: ModelCatalog, request_log: RequestLog, providers: Mapping[str, str] = MappingProxyType({})
) -> Starlette:
    """Serves ``/kimi/v1``, ``/glm/api/paas/v4``, and the APIs of configured providers in the dialects of their
    presets.
    """
    forms = {**{vendor: vendor for vendor in ROOTS}, **providers}
    return Starlette(
        routes=[route for vendor, form in forms.items() for route in _routes(vendor, form, catalog, request_log)]
    )


def _routes(vendor: str, form: str, catalog: ModelCatalog, request_log: RequestLog) -> list[Route]:
    root = root_of(vendor)

    def route(
        method: str,
        path: str,
        operation: Operation,
        answer: Callable[[SimulatorRequest], Response | VendorFailure],
        read: ReadDirectives = no_directives,
    ) -> Route:
        return Route(
            f"{root}{path}", SimulatorService(vendor, operation, request_log, answer, read, form), methods=[method]
        )

    routes = [
        Route(f"{root}/chat/completions", SimulatedChat(vendor, catalog, request_log, form), methods=["POST"]),
        route("GET", "/models", "models", list_models(vendor, catalog)),
    ]
    if vendor != "kimi":
        routes.append(
            route("POST", "/embeddings", "embeddings", make_embeddings(vendor, form, catalog), input_directives)
        )
    if form == "ollama":
        show = SimulatorService(vendor, "details", request_log, show_model, no_directives, form)
        routes.append(Route(f"{root.removesuffix('/v1')}/api/show", show, methods=["POST"]))
    if form == "litellm":
        routes.append(route("GET", "/model/info", "details", model_info))
    if vendor not in ROOTS:
        return routes
    storage = FileStorage(vendor)
    routes += [
        route("POST", "/files", "files", storage.upload, upload_directives),
        route("GET", "/files", "files", storage.list),
        route("DELETE", "/files/{file_id}", "files", storage.delete),
        route("GET", "/files/{file_id}/content", "files", storage.content),
    ]
    if vendor == "kimi":
        routes.append(route("GET", "/files/{file_id}", "files", storage.info))
        routes.append(route("POST", "/tokenizers/estimate-token-count", "tokens", count(vendor, catalog)))
    else:
        routes.append(route("POST", "/tokenizer", "tokens", count(vendor, catalog)))
        routes.append(route("POST", "/web_search", "search", search, search_directives))
    return routes
