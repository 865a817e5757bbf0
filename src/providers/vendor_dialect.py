"""The differences between the vendors' forms of the OpenAI API, as data. Pure.

The sources are the pages in docs/providers.md, read on 2026-11-23. Responses are read in all known forms, in any
dialect (``completion_parsing``, ``vendor_errors``, ``retry_delay``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from .model import Depth, Effort, Model, Structured

Fields = Mapping[str, Any]
"""Fields of a request's body."""

_EFFORTS: Final[Mapping[Effort, str]] = {"low": "low", "medium": "medium", "high": "high"}
_EFFORTS_TO_XHIGH: Final[Mapping[Effort, str]] = {**_EFFORTS, "max": "xhigh"}
_OFF: Final = {"reasoning_effort": "none"}
_ON: Final = {"reasoning_effort": "medium"}


def _reasoning_effort(word: str) -> Fields:
    return {"reasoning_effort": word}


def _reasoning_object(word: str) -> Fields:
    return {"reasoning": {"effort": word}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A vendor's form of the OpenAI API."""

    limit_field: str = "max_tokens"
    """The field for the maximum tokens of the answer."""
    efforts: Mapping[Effort, str] = field(default_factory=lambda: MappingProxyType(_EFFORTS))
    """The vendor's word for each thinking depth that it distinguishes."""
    effort: Callable[[str], Fields] = _reasoning_effort
    """The fields that request a depth."""
    thinking_on: Fields = field(default_factory=lambda: MappingProxyType(_ON))
    """The fields that request thinking, also with a depth."""
    thinking_off: Fields = field(default_factory=lambda: MappingProxyType(_OFF))
    structured: Structured = "schema"
    """The output format that the vendor enforces for models of which nothing else is known."""
    json_object: bool = True
    """Whether JSON can be requested without a schema."""
    stream_usage: bool = True
    """Whether a stream has the usage only if ``stream_options`` requests it."""
    reasoning_field: str | None = None
    """The field in which the reasoning of an earlier message is sent back; None: it is not sent."""
    extra_content: bool = False
    """Whether extra content of earlier tool calls is sent back. Other vendors reject unknown fields."""
    cache_field: str | None = None
    """The field for ``CompletionRequest.cache_key``."""
    token_inputs: bool = True
    """Whether embeddings accept lists of tokens."""
    base64_vectors: bool = False
    """Whether ``encoding_format`` can request embeddings in base64."""
    details: Literal["ollama", "litellm"] | None = None
    """The kind of the server's interface for model details (``model_details``)."""
    cost_in_usage: bool = False
    """Whether ``usage.cost`` is the cost in dollars."""
    cost_header: str | None = None
    """The header with the cost in dollars, in a response that is not streamed."""

    def thinking(self, model: Model, requested: bool | Depth | None) -> dict[str, Any]:
        """Returns the fields that request thinking; empty if the vendor's default is requested."""
        if requested is None or model.thinking == "none":
            return {}
        if requested is False or requested == "minimal":
            return dict(self.thinking_off)
        word = None if requested is True else self.efforts.get(requested)
        return {**self.thinking_on, **({} if word is None else self.effort(word))}


COMPATIBLE: Final = Dialect(extra_content=True)
"""Any other server with this API."""

DIALECTS: Final[Mapping[str, Dialect]] = {
    # Reasoning models reject max_tokens.
    "openai": Dialect(
        limit_field="max_completion_tokens",
        efforts=_EFFORTS_TO_XHIGH,
        cache_field="prompt_cache_key",
        base64_vectors=True,
    ),
    # response_format and reasoning_effort are ignored; models before Claude 4.6 know only a budget of tokens.
    "anthropic": Dialect(
        efforts={},
        thinking_on={"thinking": {"type": "adaptive"}},
        thinking_off={"thinking": {"type": "disabled"}},
        structured="none",
    ),
    "gemini": Dialect(extra_content=True, token_inputs=False),
    # Its thinking models require the reasoning with the results of their tool calls.
    "deepseek": Dialect(
        efforts={"low": "low", "high": "high", "max": "max"},
        thinking_on={"thinking": {"type": "enabled"}},
        thinking_off={"thinking": {"type": "disabled"}},
        structured="object",
        reasoning_field="reasoning_content",
    ),
    # The usage is in every response; stream_options has no effect.
    "openrouter": Dialect(
        efforts={**_EFFORTS, "max": "max"},
        effort=_reasoning_object,
        thinking_on={"reasoning": {"enabled": True}},
        thinking_off={"reasoning": {"effort": "none"}},
        stream_usage=False,
        reasoning_field="reasoning",
        extra_content=True,
        base64_vectors=True,
        cost_in_usage=True,
    ),
    "xai": Dialect(),
    # A stream's last chunk always has the usage.
    "mistral": Dialect(thinking_on={"reasoning_effort": "high"}, stream_usage=False, token_inputs=False),
    # Without reasoning_format the reasoning is part of the text.
    "groq": Dialect(limit_field="max_completion_tokens", thinking_on={"reasoning_format": "parsed"}),
    "litellm": Dialect(
        reasoning_field="reasoning_content",
        extra_content=True,
        details="litellm",
        cost_in_usage=True,
        cost_header="x-litellm-response-cost",
    ),
    "ollama": Dialect(token_inputs=False, base64_vectors=True, details="ollama"),
    # Efforts are for gpt-oss and others; the switch of most models is an argument of their chat template.
    "vllm": Dialect(
        thinking_on={"chat_template_kwargs": {"enable_thinking": True}},
        thinking_off={"chat_template_kwargs": {"enable_thinking": False}},
    ),
    "lmstudio": Dialect(efforts=_EFFORTS_TO_XHIGH, json_object=False),
}
"""The dialects by preset."""


def dialect_of(preset: str, *, own_base_url: bool) -> Dialect:
    """Returns the preset's dialect. ``openai`` with another base URL (``own_base_url``) means any other server."""
    return COMPATIBLE if preset == "openai" and own_base_url else DIALECTS.get(preset, COMPATIBLE)
