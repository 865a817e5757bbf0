"""The models of a configured provider: known models, models that its vendor lists, and any model that a caller
names.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.name_suggestions import close_names
from .model import Model
from .model_facts import ALL_MODELS, ListedModel, ModelFacts, ModelGlobs
from .vendor_dialect import COMPATIBLE, Dialect

MAX_LISTED_MODELS: Final = 5_000
"""The maximum number of listed models that are stored per provider. OpenRouter lists some hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTerms:
    """The settings of a provider's models. A reload can replace them."""

    default_model: str | None = None
    """The vendor's name of the model for calls that name only the provider."""
    globs: ModelGlobs = ALL_MODELS
    """The allowed models."""
    stated: Mapping[str, ModelFacts] = field(default_factory=dict)
    """``[models."PROVIDER/ID"]`` by the vendor's name of the model."""
    catalog: Mapping[str, Model] = field(default_factory=dict)
    """The shipped catalog's models of the preset, by the vendor's name."""
    timeout_s: float | None = None
    """The timeout of one attempt; None: the vendor's."""
    dialect: Dialect = COMPATIBLE
    """The vendor's dialect. Its capabilities are assumed for models of which nothing else is known."""


class OpenProvider:
    """A provider of ``[providers.NAME]``.

    A model's properties come from the operator, else from the vendor's list, else from the shipped catalog. A property
    that none of them states is unknown and never assumed.
    """

    def __init__(
        self, name: str, terms: ProviderTerms | None = None, listed: Sequence[ListedModel] | None = None
    ) -> None:
        self.name = name
        self._terms = terms or ProviderTerms()
        self._listed: dict[str, ModelFacts] | None = None
        self._models: dict[str, Model] = {}
        if listed is not None:
            self.note_list(listed)
        self.apply(self._terms)

    def __repr__(self) -> str:
        return f"<OpenProvider {self.name} with {len(self._models)} models>"

    def apply(self, terms: ProviderTerms) -> None:
        """Replaces the terms."""
        self._terms = terms
        names = dict.fromkeys((*terms.catalog, *terms.stated, *(self._listed or ())))
        self._models = {name: self._described(name) for name in names if terms.globs.allows(name)}

    def note_list(self, models: Sequence[ListedModel]) -> None:
        """Stores the vendor's list, up to ``MAX_LISTED_MODELS``."""
        self._listed = {model.id: model.facts for model in models[:MAX_LISTED_MODELS]}
        self.apply(self._terms)

    @property
    def default_model(self) -> str | None:
        """The vendor's name of the default model."""
        return self._terms.default_model

    @property
    def has_list(self) -> bool:
        """Whether the vendor's list was ever received."""
        return self._listed is not None

    @property
    def models(self) -> tuple[Model, ...]:
        """The allowed models: those of the shipped catalog, then those of the settings, then listed ones."""
        return tuple(self._models.values())

    @property
    def described_models(self) -> tuple[Model, ...]:
        """The allowed models whose window and price the shipped catalog or the operator states. toold chooses only
        among these, because a vendor's list may change at any time.
        """
        terms = self._terms
        return tuple(
            model
            for name in dict.fromkeys((*terms.catalog, *terms.stated))
            if (model := self._models.get(name)) and model.context_window is not None and model.price is not None
        )

    def has(self, vendor_id: str) -> bool:
        """Whether the model is known or listed, and allowed."""
        return vendor_id in self._models

    def similar(self, vendor_id: str) -> list[str]:
        """Returns the full names of up to three models with similar names, closest first."""
        return [f"{self.name}/{name}" for name in close_names(vendor_id, self._models)]

    def default(self) -> Model:
        """Returns the provider's default model.

        Raises:
            InvalidArgumentsError: the operator has set no default model, or does not allow it.
        """
        if self.default_model is None:
            problem = f"the provider {self.name} has no default model; name a model, or set default_model in its table"
            raise InvalidArgumentsError(f"model: {problem}.", details={"fields": {"model": problem}})
        return self.model(self.default_model)

    def model(self, vendor_id: str) -> Model:
        """Returns the model with this name at the vendor. It need not be listed, because vendors serve models that they
        do not list.

        Raises:
            InvalidArgumentsError: the operator does not allow the model.
        """
        if (model := self._models.get(vendor_id)) is not None:
            return model
        if not self._terms.globs.allows(vendor_id):
            names = self.similar(vendor_id)
            allowed = f"[providers.{self.name}] models: {self._terms.globs}"
            problem = f"the operator does not allow {self.name}/{vendor_id[:100]} ({allowed})"
            raise InvalidArgumentsError(f"model: {problem}.", details={"fields": {"model": problem}, "models": names})
        return self._described(vendor_id)

    def _described(self, vendor_id: str) -> Model:
        terms = self._terms
        model = terms.catalog.get(vendor_id) or _unknown_model(vendor_id, terms.dialect)
        model = ModelFacts(timeout_s=terms.timeout_s).applied_to(model)
        for facts in ((self._listed or {}).get(vendor_id), terms.stated.get(vendor_id)):
            model = model if facts is None else facts.applied_to(model)
        return model.at(self.name, vendor_id)


def _unknown_model(vendor_id: str, dialect: Dialect) -> Model:
    return Model(
        id=vendor_id,
        provider="",
        context_window=None,
        kind="unknown",
        inputs=("text", "image"),  # the vendor decides, as for the fields below
        thinking="unknown",
        efforts=tuple(dialect.efforts),
        structured=dialect.structured,
        source="",
        date=dt.datetime.now(dt.UTC).date(),
    )
