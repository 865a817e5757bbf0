"""The model catalog: the properties of each model from ``models.toml``, with their source and date.

A context window is never assumed: models without a source for it are not in the catalog. A name is never silently
replaced: an unknown name is an error with suggestions, and a retired model can still be named.
"""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.name_suggestions import MODEL_LIST_HINT, as_sentence, close_names, did_you_mean
from .model import Model
from .model_table import ModelCatalogError, read_model
from .open_provider import OpenProvider
from .provider_presets import PRESETS


class ModelCatalog:
    """The models by name. ``refused`` are models that the operator does not allow; ``open_providers`` are the
    configured providers, whose models are not in ``models``; ``prefer`` names the providers that win if several
    have a model with the same short name.

    Raises:
        ModelCatalogError: two models share a name, or a provider does not have exactly one default.
    """

    def __init__(
        self,
        models: Iterable[Model],
        refused: Iterable[Model] = (),
        open_providers: Iterable[OpenProvider] = (),
        prefer: Iterable[str] = (),
    ) -> None:
        self.prefer = tuple(prefer)
        self.open_providers = {provider.name: provider for provider in open_providers}
        self.models: tuple[Model, ...] = tuple(models)
        """The models in the order of the file."""
        self._by_name: dict[str, Model] = {}
        for model in self.models:
            for name in (model.id, *model.aliases):
                other = self._by_name.setdefault(name.lower(), model)
                if other is not model:
                    raise ModelCatalogError(f"{name!r} names both {other.id} and {model.id}; a name must be unique")
        self._refused = {name.lower(): model for model in refused for name in (model.id, *model.aliases)}
        self._defaults = {provider: self._one_default(provider) for provider in {m.provider for m in self.models}}

    def __repr__(self) -> str:
        return f"<ModelCatalog of {len(self.models)} models>"

    def _one_default(self, provider: str) -> Model:
        defaults = [model for model in self.models if model.provider == provider and model.default]
        if len(defaults) != 1:
            named = ", ".join(model.id for model in defaults) or "none"
            raise ModelCatalogError(f"{provider} needs exactly one model with default = true; found: {named}")
        return defaults[0]

    @classmethod
    @cache
    def load(cls) -> "ModelCatalog":
        """Returns the catalog that ships with the package."""
        return cls.parse(files(__package__).joinpath("models.toml").read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, toml: str) -> "ModelCatalog":
        """Parses TOML text: one ``[[model]]`` table per model, whose keys are the fields of ``Model``.

        Raises:
            ModelCatalogError: the text is not TOML, or a table has an unknown key, a missing key, or an invalid value.
        """
        try:
            document = tomllib.loads(toml)
        except tomllib.TOMLDecodeError as error:
            raise ModelCatalogError(f"models.toml is not TOML: {error}") from error
        if unknown_tables := sorted(document.keys() - {"model"}):
            raise ModelCatalogError(f"models.toml: unknown table {unknown_tables[0]!r}; models are [[model]] tables")
        return cls(read_model(table, "models.toml") for table in document.get("model", []))

    def resolve(self, name: str) -> Model:
        """Returns the model with this id or alias, ignoring case.

        Raises:
            InvalidArgumentsError: the name is unknown (the message suggests similar names), or the operator does not
            allow the model (the message names the provider's allowed models).
        """
        provider, _, vendor_id = name.strip().partition("/")
        if vendor_id and (holder := self.open_providers.get(provider.lower())):
            return holder.model(vendor_id)
        key = name.strip().lower()
        key = self._short_name(key)
        if (model := self._by_name.get(key)) is not None:
            return model
        if (refused := self._refused.get(key)) is not None:
            raise self._not_allowed(refused)
        return self._listed(name)

    def _short_name(self, key: str) -> str:
        """Returns the name without its provider, if this provider has the model: ``glm/glm-5`` becomes ``glm-5``."""
        provider, _, short = key.partition("/")
        model = self._by_name.get(short) or self._refused.get(short)
        return short if model is not None and model.provider == provider else key

    def _listed(self, name: str) -> Model:
        """Returns the model with this short name, of the only configured provider that has it, or of a preferred
        provider.

        The name of a provider stands for its default model, unless a model has this name.

        Raises:
            InvalidArgumentsError: no provider or several have the model (the message has the full names); the list of a
            preferred provider that may have it is not known yet; or the named provider has no default model.
        """
        short = name.strip()
        holders = [holder for holder in self.open_providers.values() if holder.has(short)]
        if not holders and (named := self.open_providers.get(short.lower())) is not None:
            return named.default()
        if not holders:
            known = [model.id for holder in self.open_providers.values() for model in holder.models]
            raise _unknown_model(name, {**{model: model for model in known}, **self._ids_by_name()}, self._providers())
        full_names = [f"{holder.name}/{short}" for holder in holders]
        for preferred in (self.open_providers[other] for other in self.prefer if other in self.open_providers):
            if preferred in holders:
                return preferred.model(short)
            if not preferred.has_list:
                problem = (
                    f"the models of {preferred.name}, which prefer names, are not known yet; name the model in full"
                )
                raise _model_error(f"{problem}: {', '.join(full_names)}", full_names)
        if len(holders) == 1:
            return holders[0].model(short)
        raise _model_error(
            f"several providers have {short!r}; use a full name, or set prefer: {', '.join(full_names)}", full_names
        )

    def _ids_by_name(self) -> dict[str, str]:
        return {name: model.id for name, model in self._by_name.items()}

    def _providers(self) -> list[str]:
        return sorted({*self._defaults, *self.open_providers})

    def with_providers(self, open_providers: Iterable[OpenProvider], prefer: Iterable[str] = ()) -> "ModelCatalog":
        """Returns a catalog with these configured providers."""
        return ModelCatalog(self.models, self._refused.values(), open_providers, prefer)

    @property
    def described_models(self) -> tuple[Model, ...]:
        """The models from which toold may choose, because their window is known: all of ``models``, and those of
        configured providers whose window and price are stated.
        """
        return (*self.models, *(model for holder in self.open_providers.values() for model in holder.described_models))

    def _not_allowed(self, model: Model) -> InvalidArgumentsError:
        names = [other.id for other in self.models if other.provider == model.provider]
        problem = (
            f"the operator does not allow {model.id}; the allowed models of {model.provider} are {', '.join(names)}"
        )
        return _model_error(problem, names)

    def default(self, provider: str) -> Model:
        """Returns the provider's default model.

        Raises:
            InvalidArgumentsError: the provider is unknown, or has no default model.
        """
        if (holder := self.open_providers.get(provider)) is not None:
            return holder.default()
        if provider not in self._defaults:
            raise unknown_provider(provider, self._providers())
        return self._defaults[provider]


def _model_error(problem: str, names: list[str]) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"model: {problem}.", details={"fields": {"model": problem}, "models": names})


def unknown_provider(name: str, known: Iterable[str]) -> InvalidArgumentsError:
    """The error for a provider that is not ``known``. It suggests a similar name."""
    names = sorted(known)
    close = close_names(name.strip(), names, n=1)
    hint = did_you_mean(close) or f"known: {', '.join(names)}"
    if name.strip() in PRESETS:
        hint = f"this vendor is not configured: add [providers.{name.strip()}] with this type to toold.toml"
    return InvalidArgumentsError(
        as_sentence(f"Unknown provider {name[:100]!r}; {hint}"),
        details={"fields": {"provider": f"unknown; {hint}"}, "suggestions": list(close)},
    )


def _unknown_model(name: str, ids_by_name: Mapping[str, str], providers: Iterable[str]) -> InvalidArgumentsError:
    provider, _, vendor_id = name.strip().partition("/")
    close = close_names(name.strip(), ids_by_name, n=8)  # may include several aliases of one model
    suggestions = list(dict.fromkeys(ids_by_name[match] for match in close))[:3]
    if vendor_id and not suggestions and provider not in (known := list(providers)):
        problem = unknown_provider(provider, known).message
        return InvalidArgumentsError(problem, details={"fields": {"model": problem}, "suggestions": []})
    hint = did_you_mean(suggestions) or MODEL_LIST_HINT
    return InvalidArgumentsError(
        f"Unknown model {name[:100]!r}; {hint}",
        details={"fields": {"model": f"unknown; {hint}"}, "suggestions": suggestions},
    )
