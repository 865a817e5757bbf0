"""The models that the operator allows. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from .best_value import best_value
from .model_catalog import ModelCatalog


def restrict(catalog: ModelCatalog, allowed: Mapping[str, Collection[str]]) -> ModelCatalog:
    """The catalog with only the allowed models, given by provider and id. Providers without an entry are not
    restricted.

    If a provider's default model is not allowed, the best value among its allowed models is the default, else the
    first.
    """
    kept = [model for model in catalog.models if not allowed.get(model.provider) or model.id in allowed[model.provider]]
    refused = [model for model in catalog.models if model not in kept]
    for provider in {model.provider for model in kept}:
        own = [model for model in kept if model.provider == provider]
        if not any(model.default for model in own):
            chosen = (best_value(own) or own[0]).id
            kept = [replace(model, default=True) if model.id == chosen else model for model in kept]
    return ModelCatalog(kept, refused, catalog.open_providers.values(), catalog.prefer) if refused else catalog
