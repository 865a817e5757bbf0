"""Prompts of hosted agents: found inline, at Phoenix, LiteLLM or a registry, or in files, in a configured order.

The daemon's wiring and `toold prompts show` use this package. It implements the tools' `PromptSource`. It must not know
agents, sessions or limits on calls.
"""

from .prompt_chain import KEPT_PROMPTS_DIRECTORY, PromptChain
from .prompt_list import ListedPrompt, PromptListing
from .prompt_settings import PromptSettings, PromptSettingsError, anchored_prompts, read_prompts

__all__ = [
    "KEPT_PROMPTS_DIRECTORY",
    "ListedPrompt",
    "PromptChain",
    "PromptListing",
    "PromptSettings",
    "PromptSettingsError",
    "anchored_prompts",
    "read_prompts",
]
