"""Presets of vendors with an OpenAI-compatible API: the base URL and the variable with the key.

Base URLs: developer.4d.com/docs/21-R3/aikit/compatible-openai, and the pages named at the presets (read 2026-11-23).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .vendor_dialect import Dialect, dialect_of


@dataclass(frozen=True, slots=True)
class ProviderPreset:
    """The defaults of ``[providers.NAME]`` by its ``type``."""

    base_url: str
    key_variable: str | None
    """The environment variable that usually has the key; None if no key is needed."""
    own_server: bool = False
    """Whether operators run such servers themselves, at any address, with or without a key."""


OPENAI_TYPE: Final = "openai"

PRESETS: Final[Mapping[str, ProviderPreset]] = {
    OPENAI_TYPE: ProviderPreset("https://api.openai.com/v1", "OPENAI_API_KEY"),
    # docs.anthropic.com/en/api/openai-sdk
    "anthropic": ProviderPreset("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    # ai.google.dev/gemini-api/docs/openai
    "gemini": ProviderPreset("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "deepseek": ProviderPreset("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    # openrouter.ai/deepseek/deepseek-v3.1-base, the example of its API
    "openrouter": ProviderPreset("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "xai": ProviderPreset("https://api.x.ai/v1", "XAI_API_KEY"),
    "groq": ProviderPreset("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    # docs.mistral.ai/api
    "mistral": ProviderPreset("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    # docs.litellm.ai/docs/simple_proxy: the proxy listens on port 4000
    "litellm": ProviderPreset("http://127.0.0.1:4000/v1", "LITELLM_API_KEY", own_server=True),
    # docs.vllm.ai/en/latest/serving/openai_compatible_server.html; the server reads its key from this variable
    "vllm": ProviderPreset("http://127.0.0.1:8000/v1", "VLLM_API_KEY", own_server=True),
    "ollama": ProviderPreset("http://127.0.0.1:11434/v1", None),
    "lmstudio": ProviderPreset("http://127.0.0.1:1234/v1", None),
}
"""The presets by ``type``. For another kind of server, use ``openai`` and its ``base_url``."""


def preset_dialect(kind: str, base_url: str) -> Dialect:
    """Returns the dialect of a provider with this ``type`` at this base URL."""
    return dialect_of(kind, own_base_url=base_url.rstrip("/") != PRESETS[kind].base_url)
