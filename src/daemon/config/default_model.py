"""The model of calls that name none, and the models that the operator allows. Pure."""

from collections.abc import Collection

from ...providers import Model, ModelCatalog, OpenProvider, best_value, price_text, restrict
from ...tools import AUTO
from .settings import Settings


def configured_vendors(settings: Settings) -> tuple[str, ...]:
    """The vendors that a daemon with these settings can ask."""
    return tuple(vendor.info.name for vendor in settings.vendors if settings.simulated or vendor.api_key is not None)


def known_models(settings: Settings) -> ModelCatalog:
    """The catalog with the configured providers."""
    return ModelCatalog.load().with_providers(
        OpenProvider(name, table.default_model, table.dialect) for name, table in settings.providers.items()
    )


def allowed_models(settings: Settings, catalog: ModelCatalog) -> ModelCatalog:
    """The catalog with the models that the operator allows."""
    return restrict(catalog, {vendor.info.name: vendor.allowed_models for vendor in settings.vendors})


def default_model(settings: Settings, catalog: ModelCatalog, available: Collection[str]) -> str | None:
    """The operator's choice, which may be ``AUTO``; else the best value among the models of the available vendors, or
    the default of the first of them; None without a vendor.
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
    return None


def default_model_text(settings: Settings, chosen: str, catalog: ModelCatalog) -> str:
    """The default model, its price, and why it is the default."""
    if chosen == AUTO:
        return f"{AUTO}: the cheapest suitable model of each call"
    model: Model = catalog.resolve(chosen)
    why = "the best value; default_model sets another"
    if settings.default_model is not None:
        why = "set by default_model"
    elif model.provider in catalog.open_providers:
        why = f"the default of {model.provider}"
    return f"{model.id}, {price_text(model.price)} ({why})"
