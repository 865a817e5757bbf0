"""The model catalog: what is known of each model, from ``models.toml``, each figure with its source and date.

A window is never assumed: a model whose window no source gives is not in the catalog. No name is ever silently
replaced by another: an unknown one is an error that suggests, and a retired model stays itself.
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

ProviderName = Literal["kimi", "glm"]
Modality = Literal["text", "image", "video", "file"]
Thinking = Literal["none", "switch", "always"]
"""Whether a model reasons before it answers: never, when it is told to, or always."""
Effort = Literal["low", "medium", "high", "max"]
Depth = Literal["minimal", "low", "medium", "high", "max"]
"""How deeply a model may be asked to reason; ``minimal`` is not at all."""
Currency = Literal["USD", "CNY"]
"""What the vendors' prices are in."""
Structured = Literal["none", "object", "schema"]
"""What a model's vendor can hold its answers to: nothing, any JSON object, a JSON Schema."""

ATTEMPT_TIMEOUT_S: Final[Mapping[ProviderName, float]] = {"kimi": 25.0, "glm": 30.0}
"""Seconds that one attempt may take where the model names no time of its own (docs/architecture.md, Time)."""


class ModelCatalogError(ValueError):
    """``models.toml`` is wrong; the message names the model and the field."""


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The vendor's list price per million tokens."""

    currency: Currency
    input: float
    output: float
    cached_input: float | None = None
    """None: cached input costs what other input does."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model, as its vendor documents it."""

    id: str
    provider: ProviderName
    context_window: int
    """Tokens, the question and the answer together."""
    source: str
    """The page that the figures were read from."""
    date: dt.date
    """When they were read."""
    max_output: int | None = None
    """Tokens of the answer, reasoning included; None where the window alone bounds it."""
    inputs: tuple[Modality, ...] = ("text",)
    thinking: Thinking = "none"
    tools: bool = True
    """Whether it can ask for functions."""
    fixed_temperature: bool = False
    """Whether the vendor refuses every temperature but its own."""
    efforts: tuple[Effort, ...] = ()
    """The efforts that the vendor tells apart for it, least first; empty where it has no such setting."""
    web_search: bool = False
    """Whether its vendor's web search can be one of its tools."""
    structured: Structured = "none"
    ability_source: str = ""
    """The page that ``efforts``, ``web_search`` and ``structured`` were read from."""
    price: ModelPrice | None = None
    price_source: str = ""
    """The page that the price was read from, where that is another than ``source``."""
    aliases: tuple[str, ...] = ()
    timeout_s: float | None = None
    """Seconds of one attempt, where the vendor's usual time-out is too short for it."""
    default: bool = False
    """The one that is meant where the caller names none; one a provider."""
    retired: dt.date | None = None
    """When the vendor switched it off, or will. It can still be named: the vendor decides."""
    note: str = ""

    @property
    def attempt_timeout_s(self) -> float:
        """Seconds that one attempt may take."""
        return self.timeout_s or ATTEMPT_TIMEOUT_S[self.provider]

    @property
    def depths(self) -> tuple[Depth, ...]:
        """How deeply it can be asked to reason. One that has a switch alone does not at all, or as it does."""
        least: tuple[Depth, ...] = () if self.thinking == "always" else ("minimal",)
        if self.thinking == "none":
            return least
        return (*least, *(self.efforts or ("max",)))

    def nearest_depth(self, wanted: Depth) -> Depth | None:
        """The one of its depths that is nearest to the one that is wanted, of two the deeper one.

        ``minimal`` is no depth to be near to: it is not to think, so it stands for nothing else, and nothing for it.
        None where that leaves none.
        """
        if wanted in self.depths:
            return wanted
        order = get_args(Depth)
        near = [depth for depth in self.depths if "minimal" not in {depth, wanted}]
        return min(reversed(near), key=lambda depth: abs(order.index(depth) - order.index(wanted)), default=None)

    @property
    def accepts_image_urls(self) -> bool:
        """Whether an image may be given by its ``https:`` address. Moonshot takes the image itself alone."""
        return self.provider != "kimi"

    @property
    def searches_without_thinking(self) -> bool:
        """Whether it cannot reason where it searches the web: Moonshot wants thinking off for its search."""
        return self.web_search and self.provider == "kimi"

    def cost(self, usage: Usage) -> Cost | None:
        """What ``usage`` costs by the list price; None where the price is not known."""
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
    """The models by their names.

    Raises:
        CatalogError: two models share a name, or a provider has not exactly one default.
    """

    def __init__(self, models: Iterable[Model]) -> None:
        self.models: tuple[Model, ...] = tuple(models)
        """In the file's order."""
        self._by_name: dict[str, Model] = {}
        for model in self.models:
            for name in (model.id, *model.aliases):
                other = self._by_name.setdefault(name.lower(), model)
                if other is not model:
                    raise ModelCatalogError(f"{name!r} names both {other.id} and {model.id}; a name has one model")
        self._defaults = {provider: self._one_default(provider) for provider in {m.provider for m in self.models}}

    def __repr__(self) -> str:
        return f"<ModelCatalog of {len(self.models)} models>"

    def _one_default(self, provider: str) -> Model:
        defaults = [model for model in self.models if model.provider == provider and model.default]
        if len(defaults) != 1:
            named = ", ".join(model.id for model in defaults) or "none"
            raise ModelCatalogError(f"{provider} needs exactly one model with default = true; there is {named}")
        return defaults[0]

    @classmethod
    @cache
    def load(cls) -> "ModelCatalog":
        """The catalog that ships with the package."""
        return cls.parse(files(__package__).joinpath("models.toml").read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, toml: str) -> "ModelCatalog":
        """A catalog from TOML text: one ``[[model]]`` table a model, its keys the fields of ``Model``.

        Raises:
            CatalogError: the text is not TOML, or a table has an unknown key, lacks one, or has a wrong value.
        """
        try:
            document = tomllib.loads(toml)
        except tomllib.TOMLDecodeError as error:
            raise ModelCatalogError(f"models.toml is not TOML: {error}") from error
        if surplus := sorted(document.keys() - {"model"}):
            raise ModelCatalogError(f"models.toml: unknown table {surplus[0]!r}; models are [[model]] tables")
        return cls(_model(table) for table in document.get("model", []))

    def resolve(self, name: str) -> Model:
        """The model of this id or alias, however it is capitalised.

        Raises:
            InvalidArgumentsError: there is none; close names are suggested.
        """
        model = self._by_name.get(name.strip().lower())
        if model is None:
            raise _unknown_model(name, self._by_name)
        return model

    def default(self, provider: str) -> Model:
        """The model that is meant where the caller names none.

        Raises:
            InvalidArgumentsError: no such provider.
        """
        if provider not in self._defaults:
            known = ", ".join(sorted(self._defaults))
            raise InvalidArgumentsError(
                f"{provider!r} is no known provider; there are {known}.", details={"fields": {"provider": "unknown"}}
            )
        return self._defaults[provider]


def _model(table: Mapping[str, Any]) -> Model:
    """One ``[[model]]`` table, judged strictly."""
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
    if (model.efforts or model.web_search or model.structured != "none") and not model.ability_source:
        raise ModelCatalogError(f"{where}: efforts, web_search and structured need an ability_source")
    return model


def _refuse_unknown_keys(table: Mapping[str, Any], cls: type[Model | ModelPrice], where: str) -> None:
    known = {field.name for field in fields(cls)}
    for key in table:
        if key not in known:
            hint = did_you_mean(close_names(key, known, n=1)) or f"there are {', '.join(sorted(known))}"
            raise ModelCatalogError(f"{where}: unknown key {key!r}; {hint}")


def _unknown_model(name: str, by_name: Mapping[str, Model]) -> InvalidArgumentsError:
    close = close_names(name.strip(), by_name, n=8)  # aliases among them, several of one model
    suggestions = list(dict.fromkeys(by_name[match].id for match in close))[:3]
    hint = did_you_mean(suggestions) or "`listmodels` shows those that there are."
    return InvalidArgumentsError(
        f"{name[:100]!r} is no known model; {hint}",
        details={"fields": {"model": f"unknown; {hint}"}, "suggestions": suggestions},
    )
