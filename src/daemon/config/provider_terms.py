"""The model catalog with the configured providers, from the settings. Pure."""

from collections.abc import Iterable, Mapping

from ...providers import PRESETS, ModelCatalog, OpenProvider, ProviderTerms, preset_models
from .model_settings import ModelSettings
from .provider_settings import ProviderSettings


def provider_terms(
    providers: Mapping[str, ProviderSettings], models: Mapping[str, ModelSettings]
) -> dict[str, ProviderTerms]:
    """The facts in the settings about the models of each configured provider."""
    return {name: _terms(name, table, models) for name, table in providers.items()}


def _terms(name: str, table: ProviderSettings, models: Mapping[str, ModelSettings]) -> ProviderTerms:
    stated = {full.partition("/")[2]: model.facts() for full, model in models.items() if full.partition("/")[0] == name}
    # At another address, a model of the same name may have another window and another price.
    at_vendor = table.url.rstrip("/") == PRESETS[table.type].base_url
    return ProviderTerms(
        default_model=table.default_model,
        globs=table.models.globs(),
        stated=stated,
        catalog=preset_models(table.type) if at_vendor else {},
        timeout_s=table.timeout_s,
        dialect=table.dialect,
    )


def known_models(
    providers: Mapping[str, ProviderSettings], models: Mapping[str, ModelSettings], prefer: Iterable[str]
) -> ModelCatalog:
    """The catalog with the configured providers, without their vendors' lists."""
    terms = provider_terms(providers, models)
    return ModelCatalog.load().with_providers((OpenProvider(name, each) for name, each in terms.items()), prefer)
