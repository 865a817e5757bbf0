"""A model and its properties. Pure."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from ..protocol.tool_call import Cost, Usage

ModelKind = Literal["chat", "embedding", "unknown"]
"""What a model makes: completions or embeddings; ``unknown`` leaves it to the vendor."""
Modality = Literal["text", "image", "video", "file"]
Thinking = Literal["none", "switch", "always", "unknown"]
"""Whether a model thinks before it answers: never, optionally or always; ``unknown`` leaves it to the vendor."""
Effort = Literal["low", "medium", "high", "max"]
Depth = Literal["minimal", "low", "medium", "high", "max"]
"""The thinking depth; ``minimal`` means no thinking."""
Currency = Literal["USD", "CNY"]
"""The currency of the vendors' prices."""
Structured = Literal["none", "object", "schema"]
"""The output format that a vendor can enforce: none, a JSON object, or a JSON Schema."""


_USD_PER: Final[Mapping[str, float]] = {"USD": 1.0, "CNY": 0.14}
"""Used only to rank prices in different currencies; no converted amount is ever reported."""


@dataclass(frozen=True, slots=True)
class LongPromptPrice:
    """The list price per million tokens of requests whose prompt has more than ``tokens``."""

    tokens: int
    input: float
    output: float
    cached_input: float | None = None


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The vendor's list price per million tokens."""

    currency: Currency
    input: float
    output: float
    cached_input: float | None = None
    """The price of cached input; None: the same as of other input."""
    long_prompt: LongPromptPrice | None = None
    """The price of the whole request if its prompt is long; None: the same price."""

    def dollars(self, input_tokens: int, output_tokens: int) -> float:
        """The price of this many tokens in millionths of a dollar, only to rank models."""
        return self.amount(Usage(input_tokens, output_tokens)) * _USD_PER[self.currency]

    def amount(self, usage: Usage) -> float:
        """The price of this usage in millionths of the currency."""
        long = self.long_prompt
        rates = self if long is None or usage.input_tokens <= long.tokens else long
        cached = rates.input if rates.cached_input is None else rates.cached_input
        return (
            (usage.input_tokens - usage.cached_tokens) * rates.input
            + usage.cached_tokens * cached
            + usage.output_tokens * rates.output
        )


@dataclass(frozen=True, slots=True)
class Model:
    """A model's properties, as documented by its vendor."""

    id: str
    provider: str
    """The vendor's name (``VendorInfo.name``)."""
    context_window: int | None
    """Maximum tokens of prompt and answer together, or of one text for an embedding; None if unknown."""
    source: str
    """The page with these figures."""
    date: dt.date
    """The date on which the page was read."""
    kind: ModelKind = "chat"
    max_output: int | None = None
    """Maximum tokens of the answer, including thinking; None if only the window limits it."""
    inputs: tuple[Modality, ...] = ("text",)
    image_urls: bool = True
    """Whether images may be ``https:`` URLs. Otherwise only image data is accepted."""
    thinking: Thinking = "none"
    tools: bool = True
    """Whether the model can call functions."""
    fixed_temperature: bool = False
    """Whether the vendor rejects any temperature other than its default."""
    efforts: tuple[Effort, ...] = ()
    """The supported reasoning efforts, lowest first; empty if the model has no such setting."""
    web_search: bool = False
    """Whether the model supports its vendor's web search as a tool."""
    search_excludes_thinking: bool = False
    """Whether the model cannot think in a request with web search."""
    structured: Structured = "none"
    capability_source: str = ""
    """The page with ``efforts``, ``web_search`` and ``structured``."""
    price: ModelPrice | None = None
    price_source: str = ""
    """The page with the price, if it is not ``source``."""
    aliases: tuple[str, ...] = ()
    timeout_s: float | None = None
    """The timeout of one attempt in seconds, if the vendor's default is too short."""
    default: bool = False
    """Whether this is the provider's default model. Each provider has exactly one."""
    retired: dt.date | None = None
    """The date on which the vendor retired or will retire the model. Callers can still request it; the vendor decides
    whether to answer."""
    note: str = ""
    vendor_id: str = ""
    """The vendor's name for the model, if it is not ``id``. Ids of configured providers' models begin with the
    provider.
    """

    @property
    def sent_id(self) -> str:
        """The name in requests to the vendor."""
        return self.vendor_id or self.id

    def at(self, provider: str, vendor_id: str) -> "Model":
        """Returns the model as a model of a configured provider."""
        return replace(self, id=f"{provider}/{vendor_id}", provider=provider, vendor_id=vendor_id)

    def answered(self, vendor_id: str) -> str:
        """Returns the name of the model that answered, as reported by the vendor. For a configured provider, it has the
        form ``NAME/MODEL``.
        """
        return f"{self.provider}/{vendor_id}" if self.vendor_id else vendor_id

    @property
    def setting(self) -> str | None:
        """The table of ``toold.toml`` that can set the model's unknown properties; None for a model of Kimi or GLM."""
        return f'[models."{self.id}"]' if self.vendor_id else None

    @property
    def depths(self) -> tuple[Depth, ...]:
        """The supported thinking depths. A model with only a switch has ``minimal`` and ``max``."""
        least: tuple[Depth, ...] = () if self.thinking == "always" else ("minimal",)
        if self.thinking == "none":
            return least
        return (*least, *(self.efforts or ("max",)))

    def nearest_depth(self, requested: Depth) -> Depth | None:
        """Returns the supported depth that is nearest to the requested one; if two are equally near, the deeper one.

        ``minimal`` means no thinking, so it never replaces another depth, nor the reverse. Returns None if no depth
        remains.
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
        return Cost(round(self.price.amount(usage) / 1_000_000, 9), self.price.currency)
