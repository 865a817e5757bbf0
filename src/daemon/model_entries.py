"""Creates the server of OpenAI's API, and lists its models for ``GET /v1/models``."""

from functools import partial

from ..protocol.authorization import Authenticate
from ..protocol.openai.model_entry import ModelEntry
from ..providers import Model
from ..tools import DaemonView, available_models
from .dispatch import Router
from .transports.http_intake import HttpIntake
from .transports.openai import OpenAIServer


def openai_server(
    router: Router, intake: HttpIntake, daemon: DaemonView, origins: tuple[str, ...], authenticate: Authenticate
) -> OpenAIServer:
    """Serves ``/v1``."""
    return OpenAIServer(
        router,
        intake,
        origins=origins,
        authenticate=authenticate,
        models=partial(model_entries, daemon),
        find_model=partial(find_model_entry, daemon),
    )


def model_entries(daemon: DaemonView) -> list[ModelEntry]:
    """The models that calls can use now: those of the catalog, and those that configured providers list."""
    configured = [model for holder in daemon.catalog.open_providers.values() for model in holder.models]
    usable = (*available_models(daemon), *available_models(daemon, kind="embedding"))
    return list(dict.fromkeys(_entry(model) for model in (*usable, *configured)))


def find_model_entry(daemon: DaemonView, name: str) -> ModelEntry:
    """The model with this name, as calls resolve it.

    Raises:
        InvalidArgumentsError: it is unknown; similar names are suggested.
    """
    return _entry(daemon.catalog.resolve(name))


def _entry(model: Model) -> ModelEntry:
    return ModelEntry(model.id, model.provider)
