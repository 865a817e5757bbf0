"""The models of a configured provider: those that its vendor lists, and any other that a caller names in full."""

import datetime as dt
from dataclasses import dataclass
from typing import Final

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.name_suggestions import close_names
from .model import Model
from .vendor_dialect import COMPATIBLE, Dialect

MAX_LISTED_MODELS: Final = 5_000
"""The models of one provider that are kept; OpenRouter lists some hundred."""


@dataclass(slots=True)
class OpenProvider:
    """A provider of ``[providers.NAME]``. Nothing is known of its models but their names."""

    name: str
    default_model: str | None = None
    """The vendor's name of the model for calls that name only the provider."""
    dialect: Dialect = COMPATIBLE
    listed: tuple[str, ...] | None = None
    """The vendor's names of the models in its latest list; None if there is none."""

    def note_list(self, ids: tuple[str, ...]) -> None:
        """Keeps the vendor's list, up to ``MAX_LISTED_MODELS``."""
        self.listed = ids[:MAX_LISTED_MODELS]

    @property
    def models(self) -> tuple[Model, ...]:
        """The listed models."""
        return tuple(map(self.model, self.listed or ()))

    def similar(self, vendor_id: str) -> list[str]:
        """Returns the full names of up to three listed models with similar names, the closest first."""
        return [f"{self.name}/{name}" for name in close_names(vendor_id, self.listed or ())]

    def default(self) -> Model:
        """Returns the provider's default model.

        Raises:
            InvalidArgumentsError: the operator has set none.
        """
        if self.default_model is None:
            problem = f"the provider {self.name} has no default model; name a model, or set default_model in its table"
            raise InvalidArgumentsError(f"model: {problem}.", details={"fields": {"model": problem}})
        return self.model(self.default_model)

    def model(self, vendor_id: str) -> Model:
        """Returns the model with this name at the vendor, listed or not: vendors serve models that they do not list."""
        return Model(
            id=f"{self.name}/{vendor_id}",
            vendor_id=vendor_id,
            provider=self.name,
            context_window=None,
            inputs=("text", "image"),  # the vendor decides, as of what follows
            thinking="unknown",
            efforts=tuple(self.dialect.efforts),
            structured=self.dialect.structured,
            source="",
            date=dt.datetime.now(dt.UTC).date(),
        )
