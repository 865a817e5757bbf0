"""The model of calls that do not name one, and the models that the operator allows. Pure."""

from collections.abc import Collection

from ...providers import Model, ModelCatalog, best_value, price_text
from ...tools import AUTO
from .fallback_settings import FallbackLists
from .model_checks import allowed_by
from .settings import Settings


def configured_vendors(settings: Settings) -> tuple[str, ...]:
    """The vendors that a daemon with these settings can ask."""
    return tuple(vendor.info.name for vendor in settings.vendors if settings.simulated or vendor.api_key is not None)


def allowed_models(settings: Settings, catalog: ModelCatalog) -> ModelCatalog:
    """The catalog with the models that the operator allows, and the providers that the operator prefers."""
    preferring = catalog.with_providers(catalog.open_providers.values(), settings.prefer)
    return allowed_by(preferring, settings.vendors)


def fallback_lists(settings: Settings) -> FallbackLists:
    """The models that the operator has configured as fallbacks."""
    return FallbackLists(
        {name: tool.fallback for name, tool in settings.tools.items() if tool.fallback is not None},
        {vendor.info.name: vendor.fallback for vendor in settings.vendors if vendor.fallback},
    )


def default_model(settings: Settings, catalog: ModelCatalog, available: Collection[str]) -> str | None:
    """The default model; None if there is none. It is the first of these that exists: the operator's choice, which may
    be ``AUTO``; the available model of Kimi and GLM with the best value, or the default of the first available vendor;
    the described model of the configured providers with the best value.
    """
    if settings.default_model is not None and (available or settings.default_model != AUTO):
        return settings.default_model
    best = best_value(model for model in catalog.models if model.provider in available)
    if best is not None:
        return best.id
    for name in (vendor.info.name for vendor in settings.vendors if vendor.info.name in available):
        holder = catalog.open_providers.get(name)
        if holder is None or holder.default_model is not None:
            return catalog.default(name).id
    best = best_value(model for model in catalog.described_models if model.provider in available)
    return None if best is None else best.id


def default_model_text(settings: Settings, chosen: str, catalog: ModelCatalog) -> str:
    """The default model, its price, and why it is the default."""
    if chosen == AUTO:
        return f"{AUTO}: the cheapest suitable model of each call"
    model: Model = catalog.resolve(chosen)
    why = "the best value; default_model sets another"
    if settings.default_model is not None:
        why = "set by default_model"
    elif (holder := catalog.open_providers.get(model.provider)) and holder.default_model == model.sent_id:
        why = f"the default of {model.provider}"
    return f"{model.id}, {price_text(model.price)} ({why})"
