"""What is known of vendors with an OpenAI-compatible API: base URL, variable of the key, name of the answer's limit.

Base URLs: developer.4d.com/docs/21-R3/aikit/compatible-openai, and the pages named at the presets (read 2026-11-23).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ProviderPreset:
    """The defaults of ``[providers.NAME]`` by its ``type``."""

    base_url: str
    key_variable: str | None
    """The environment variable that usually has the key; None if no key is needed."""
    limit_field: str = "max_tokens"
    """The field for the maximum tokens of the answer."""


OPENAI_TYPE: Final = "openai"

PRESETS: Final[Mapping[str, ProviderPreset]] = {
    # Reasoning models reject max_tokens (platform.openai.com/docs/api-reference/chat/create).
    OPENAI_TYPE: ProviderPreset("https://api.openai.com/v1", "OPENAI_API_KEY", limit_field="max_completion_tokens"),
    # docs.anthropic.com/en/api/openai-sdk
    "anthropic": ProviderPreset("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    # ai.google.dev/gemini-api/docs/openai
    "gemini": ProviderPreset("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "deepseek": ProviderPreset("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    # openrouter.ai/deepseek/deepseek-v3.1-base, the example of its API
    "openrouter": ProviderPreset("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "xai": ProviderPreset("https://api.x.ai/v1", "XAI_API_KEY"),
    "groq": ProviderPreset("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "ollama": ProviderPreset("http://127.0.0.1:11434/v1", None),
    "lmstudio": ProviderPreset("http://127.0.0.1:1234/v1", None),
}
"""A server of another kind is ``openai`` with its ``base_url``."""


def limit_field(kind: str, base_url: str) -> str:
    """Returns the field for the maximum tokens of the answer. Servers other than OpenAI's know ``max_tokens``."""
    preset = PRESETS[kind]
    return preset.limit_field if base_url.rstrip("/") == preset.base_url else "max_tokens"
