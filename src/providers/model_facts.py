"""Known facts about a configured provider's model: from the operator, the vendor's list or the catalog. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import translate
from typing import Any, Final

from .model import Effort, Modality, Model, ModelKind, ModelPrice, Structured, Thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Fields of ``Model``; None for unknown ones."""

    kind: ModelKind | None = None
    context_window: int | None = None
    max_output: int | None = None
    inputs: tuple[Modality, ...] | None = None
    thinking: Thinking | None = None
    efforts: tuple[Effort, ...] | None = None
    tools: bool | None = None
    structured: Structured | None = None
    price: ModelPrice | None = None
    timeout_s: float | None = None

    def applied_to(self, model: Model) -> Model:
        """Returns a copy of the model in which the stated fields replace its own."""
        return replace(model, **{name: value for name, value in self._stated().items() if value is not None})

    def overridden_by(self, other: "ModelFacts") -> "ModelFacts":
        """Returns these facts, overridden by every value that ``other`` states."""
        return replace(self, **{name: value for name, value in other._stated().items() if value is not None})

    def agreeing_with(self, other: "ModelFacts") -> "ModelFacts":
        """Returns the values on which both agree; for numbers of tokens, the smaller one."""
        mine, theirs = self._stated(), other._stated()
        same = {name: value if value == theirs[name] else None for name, value in mine.items()}
        for name in ("context_window", "max_output"):
            if mine[name] is not None and theirs[name] is not None:
                same[name] = min(mine[name], theirs[name])
        return ModelFacts(**same)

    def _stated(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class ListedModel:
    """An entry of a vendor's list of models."""

    id: str
    """The vendor's name of the model."""
    facts: ModelFacts = ModelFacts()


class ModelGlobs:
    """The models of a provider that the operator allows. A model is allowed if it matches no excluded glob and, if
    there are included globs, at least one of them. ``*`` matches any text, including ``/``.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include, self._exclude = tuple(include), tuple(exclude)
        # Compiled once: a list has up to 5,000 names.
        self._included = [re.compile(translate(glob)) for glob in self._include]
        self._excluded = [re.compile(translate(glob)) for glob in self._exclude]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelGlobs):
            return NotImplemented
        return (self._include, self._exclude) == (other._include, other._exclude)

    def __hash__(self) -> int:
        return hash((self._include, self._exclude))

    def __str__(self) -> str:
        parts = [
            f"{kind} {', '.join(globs)}"
            for kind, globs in (("include", self._include), ("exclude", self._exclude))
            if globs
        ]
        return "; ".join(parts) or "all"

    def allows(self, vendor_id: str) -> bool:
        included = not self._included or any(glob.match(vendor_id) for glob in self._included)
        return included and not any(glob.match(vendor_id) for glob in self._excluded)


ALL_MODELS: Final = ModelGlobs()
