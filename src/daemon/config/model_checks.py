"""Checks of the settings that name models and providers. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic_core import PydanticCustomError

from ...agent_registry import RegistrySettings
from ...knowledge import CollectionSettings
from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.name_suggestions import close_names, did_you_mean
from ...providers import ModelCatalog, restrict
from ...tools import AUTO
from .fallback_settings import ToolSettings
from .vendor_settings import VendorSettings


def setting_error(setting: str, message: str) -> PydanticCustomError:
    """An error between two settings, reported as an error of ``setting``."""
    return PydanticCustomError("settings", "{message}", {"setting": setting, "message": message})


def check_preferred(prefer: Iterable[str], providers: Sequence[str]) -> None:
    """Checks that each of ``prefer`` is a provider.

    Raises:
        PydanticCustomError: a name is not a provider.
    """
    if wrong := [name for name in prefer if name not in providers]:
        hint = did_you_mean(close_names(wrong[0], providers, n=1))
        raise setting_error("prefer", f"must name providers: {', '.join(providers)}" + (f"; {hint}" if hint else ""))


def check_embedding_models(catalog: ModelCatalog, collections: Mapping[str, CollectionSettings]) -> None:
    """Checks the ``embedding_model`` of each collection.

    Raises:
        PydanticCustomError: a name is unknown, or the model makes completions.
    """
    for name, collection in collections.items():
        if collection.embedding_model is None:
            continue
        try:
            model = catalog.resolve(collection.embedding_model)
        except InvalidArgumentsError as error:
            raise setting_error("knowledge", f"{name}: embedding_model: {error.message.removesuffix('.')}") from None
        if model.kind == "chat":
            raise setting_error("knowledge", f"{name}: embedding_model: {model.id} makes completions, not embeddings")


def check_registry_provider(registry: RegistrySettings | None, configured: Collection[str]) -> None:
    """Checks that the provider of a registry's models is configured.

    Raises:
        PydanticCustomError: the provider is not configured.
    """
    if registry is not None and registry.provider is not None and registry.provider not in configured:
        raise setting_error("registry", f"provider must be one of [providers.NAME]: {', '.join(configured) or 'none'}")


def checked_default_model(name: str, catalog: ModelCatalog, vendors: Iterable[VendorSettings]) -> str:
    """Returns the id of the default model, whose name may be an alias or a short name.

    Raises:
        PydanticCustomError: the name is unknown, or the operator does not allow the model.
    """
    try:
        model = catalog.resolve(name)
    except InvalidArgumentsError as error:
        raise setting_error("default_model", error.message.removesuffix(".")) from None
    vendor = next(vendor for vendor in vendors if vendor.info.name == model.provider)
    if vendor.allowed_models and model.id not in vendor.allowed_models:
        allowed = f"{vendor.setting('allowed_models')} ({', '.join(vendor.allowed_models)})"
        raise setting_error("default_model", f"must be in {allowed}, but is {model.id}")
    return model.id


def check_fallbacks(
    catalog: ModelCatalog, vendors: Sequence[VendorSettings], tools: Mapping[str, ToolSettings]
) -> None:
    """Checks the models of each ``fallback``, of providers and of tools.

    Raises:
        PydanticCustomError: a name is unknown, not allowed or repeated, or is a model of the provider itself.
    """
    allowed = allowed_by(catalog, vendors)
    for vendor in vendors:
        if problem := fallback_problem(vendor.fallback, allowed, provider=vendor.info.name):
            setting, _, table = vendor.setting("fallback").partition(".")
            place = f"[providers.{table.rpartition('.')[0]}] fallback " if table else ""
            raise setting_error(setting, f"{place}{problem}")
    for name, settings in tools.items():
        if problem := fallback_problem(settings.fallback or (), allowed):
            raise setting_error("tools", f"[tools.{name}] fallback {problem}")


def allowed_by(catalog: ModelCatalog, vendors: Iterable[VendorSettings]) -> ModelCatalog:
    """The catalog with the models that the operator allows."""
    return restrict(catalog, {vendor.info.name: vendor.allowed_models for vendor in vendors})


def fallback_problem(names: Iterable[str], catalog: ModelCatalog, *, provider: str | None = None) -> str | None:
    """Returns the problem of a list of fallback models; None if it is valid.

    ``provider`` is the provider that has the list.
    """
    ids: set[str] = set()
    for name in names:
        if name.lower() == AUTO:
            return "must name models; auto may be the one that has failed"
        try:
            model = catalog.resolve(name)
        except InvalidArgumentsError as error:
            return f"has an invalid name: {error.message.removesuffix('.')}"
        if model.id in ids:
            return f"names {model.id} twice"
        if model.provider == provider:
            return f"names {model.id}, a model of {provider} itself; name models to ask if {provider} fails"
        ids.add(model.id)
    return None
