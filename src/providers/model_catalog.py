"""The model catalog: the properties of each model from ``models.toml``, with their source and date.

A context window is never assumed: a model without a source for it is not in the catalog. A name is never silently
replaced: an unknown name is an error with suggestions, and a retired model can still be named.
"""

import datetime as dt
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, get_args

import msgspec

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.name_suggestions import close_names, did_you_mean
from ..protocol.tool_call import Cost, Usage

Modality = Literal["text", "image", "video", "file"]
Thinking = Literal["none", "switch", "always"]
"""Whether a model thinks before it answers: never, optionally, or always."""
Effort = Literal["low", "medium", "high", "max"]
Depth = Literal["minimal", "low", "medium", "high", "max"]
"""The thinking depth; ``minimal`` means no thinking."""
Currency = Literal["USD", "CNY"]
"""The currency of the vendors' prices."""
Structured = Literal["none", "object", "schema"]
"""The output format that a vendor can enforce: none, a JSON object, or a JSON Schema."""


_USD_PER: Final[Mapping[str, float]] = {"USD": 1.0, "CNY": 0.14}
"""Used only to rank prices in different currencies; no converted amount is ever reported."""


class ModelCatalogError(ValueError):
    """``models.toml`` is invalid; the message names the model and the field."""


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The vendor's list price per million tokens."""

    currency: Currency
    input: float
    output: float
    cached_input: float | None = None
    """None: the same price as other input."""

    def dollars(self, input_tokens: int, output_tokens: int) -> float:
        """The price of so many tokens in millionths of a dollar, only to rank models."""
        return (input_tokens * self.input + output_tokens * self.output) * _USD_PER[self.currency]


@dataclass(frozen=True, slots=True)
class Model:
    """A model, as its vendor documents it."""

    id: str
    provider: str
    """The name of its vendor (``VendorInfo.name``)."""
    context_window: int
    """Tokens of prompt and answer together."""
    source: str
    """The page with these figures."""
    date: dt.date
    """The date on which the page was read."""
    max_output: int | None = None
    """Maximum tokens of the answer, thinking included; None if only the window limits it."""
    inputs: tuple[Modality, ...] = ("text",)
    image_urls: bool = True
    """Whether images may be ``https:`` URLs; if not, only image data."""
    thinking: Thinking = "none"
    tools: bool = True
    """Whether it can call functions."""
    fixed_temperature: bool = False
    """Whether the vendor rejects any temperature other than its default."""
    efforts: tuple[Effort, ...] = ()
    """The supported reasoning efforts, lowest first; empty if it has no such setting."""
    web_search: bool = False
    """Whether it supports its vendor's web search as a tool."""
    search_excludes_thinking: bool = False
    """Whether it cannot think in a request with web search."""
    structured: Structured = "none"
    capability_source: str = ""
    """The page with ``efforts``, ``web_search`` and ``structured``."""
    price: ModelPrice | None = None
    price_source: str = ""
    """The page with the price, if not ``source``."""
    aliases: tuple[str, ...] = ()
    timeout_s: float | None = None
    """The timeout of one attempt in seconds, if its vendor's default is too short."""
    default: bool = False
    """Whether it is its provider's default model; exactly one per provider."""
    retired: dt.date | None = None
    """The date of its past or future retirement. It can still be named; the vendor decides."""
    note: str = ""

    @property
    def depths(self) -> tuple[Depth, ...]:
        """The supported thinking depths. A model with only a switch has ``minimal`` and ``max``."""
        least: tuple[Depth, ...] = () if self.thinking == "always" else ("minimal",)
        if self.thinking == "none":
            return least
        return (*least, *(self.efforts or ("max",)))

    def nearest_depth(self, requested: Depth) -> Depth | None:
        """Returns the supported depth nearest to the requested one, the deeper of two equally near ones.

        ``minimal`` means no thinking, so it is never exchanged with another depth. Returns None if no depth remains.
        """
        if requested in self.depths:
            return requested
        order = get_args(Depth)
        near = [depth for depth in self.depths if "minimal" not in {depth, requested}]
        return min(reversed(near), key=lambda depth: abs(order.index(depth) - order.index(requested)), default=None)

    def cost(self, usage: Usage) -> Cost | None:
        """Returns the cost of ``usage`` by the list price, or None if the price is unknown."""
        if self.price is None:
            return None
        cached_price = self.price.input if self.price.cached_input is None else self.price.cached_input
        amount = (
            (usage.input_tokens - usage.cached_tokens) * self.price.input
            + usage.cached_tokens * cached_price
            + usage.output_tokens * self.price.output
        )
        return Cost(round(amount / 1_000_000, 9), self.price.currency)


class ModelCatalog:
    """The models by name. ``refused`` are models that the operator does not allow.

    Raises:
        ModelCatalogError: two models share a name, or a provider does not have exactly one default.
    """

    def __init__(self, models: Iterable[Model], refused: Iterable[Model] = ()) -> None:
        self.models: tuple[Model, ...] = tuple(models)
        """In the order of the file."""
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
        return cls(_model(table) for table in document.get("model", []))

    def resolve(self, name: str) -> Model:
        """Returns the model with this id or alias, ignoring case.

        Raises:
            InvalidArgumentsError: the name is unknown, and similar names are suggested; or the operator does not allow
                the model, and the allowed ones of its provider are named.
        """
        key = name.strip().lower()
        model = self._by_name.get(key)
        if model is None:
            refused = self._refused.get(key)
            raise _unknown_model(name, self._by_name) if refused is None else self._not_allowed(refused)
        return model

    def _not_allowed(self, model: Model) -> InvalidArgumentsError:
        names = [other.id for other in self.models if other.provider == model.provider]
        problem = (
            f"the operator does not allow {model.id}; the allowed models of {model.provider} are {', '.join(names)}"
        )
        return InvalidArgumentsError(f"model: {problem}.", details={"fields": {"model": problem}, "models": names})

    def default(self, provider: str) -> Model:
        """Returns the provider's default model.

        Raises:
            InvalidArgumentsError: the provider is unknown.
        """
        if provider not in self._defaults:
            raise unknown_provider(provider, self._defaults)
        return self._defaults[provider]


def _model(table: Mapping[str, Any]) -> Model:
    """Converts one ``[[model]]`` table, strictly."""
    where = f"models.toml, model {table.get('id', '(without id)')!r}"
    _refuse_unknown_keys(table, Model, where)
    _refuse_unknown_keys(table.get("price", {}), ModelPrice, f"{where}, price")
    try:
        model = msgspec.convert(table, Model)
    except msgspec.ValidationError as error:
        raise ModelCatalogError(f"{where}: {error}") from error
    for field, tokens in (("context_window", model.context_window), ("max_output", model.max_output)):
        if tokens is not None and tokens <= 0:
            raise ModelCatalogError(f"{where}: {field} must be a positive number of tokens, not {tokens}")
    if model.efforts and model.thinking == "none":
        raise ModelCatalogError(f'{where}: it has efforts, but thinking = "none"')
    if (model.efforts or model.web_search or model.structured != "none") and not model.capability_source:
        raise ModelCatalogError(f"{where}: efforts, web_search and structured need a capability_source")
    return model


def _refuse_unknown_keys(table: Mapping[str, Any], cls: type[Model | ModelPrice], where: str) -> None:
    known = {field.name for field in fields(cls)}
    for key in table:
        if key not in known:
            hint = did_you_mean(close_names(key, known, n=1)) or f"known: {', '.join(sorted(known))}"
            raise ModelCatalogError(f"{where}: unknown key {key!r}; {hint}")


def unknown_provider(name: str, known: Iterable[str]) -> InvalidArgumentsError:
    """The error for a provider that is not among the ``known`` ones; a similar name is suggested."""
    names = sorted(known)
    close = close_names(name.strip(), names, n=1)
    hint = did_you_mean(close) or f"known: {', '.join(names)}"
    return InvalidArgumentsError(
        f"Unknown provider {name[:100]!r}; {hint.rstrip('.')}.",
        details={"fields": {"provider": f"unknown; {hint}"}, "suggestions": list(close)},
    )


def _unknown_model(name: str, by_name: Mapping[str, Model]) -> InvalidArgumentsError:
    close = close_names(name.strip(), by_name, n=8)  # may include several aliases of one model
    suggestions = list(dict.fromkeys(by_name[match].id for match in close))[:3]
    hint = did_you_mean(suggestions) or "`listmodels` lists the models."
    return InvalidArgumentsError(
        f"Unknown model {name[:100]!r}; {hint}",
        details={"fields": {"model": f"unknown; {hint}"}, "suggestions": suggestions},
    )
