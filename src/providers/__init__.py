"""Kimi and GLM: the model catalogue, the neutral completion request, and what carries it to the vendors.

The simulator is a room within: ``from ..providers.simulator import Simulator``; a daemon without it need not load it.
"""

from .breaker import Breaker, BreakerState, counts_against_vendor
from .catalogue import Catalogue, CatalogueError, Modality, Model, Price, ProviderName, Thinking
from .completion import (
    AttachedFile,
    Completion,
    CompletionRequest,
    Delta,
    FinishReason,
    FunctionTool,
    ImagePart,
    Message,
    OnDelta,
    Provider,
    TextPart,
    ToolInvocation,
)
from .glm import build_glm
from .kimi import build_kimi
from .vendor import GLM, GLM_BASE_URL, KIMI, KIMI_BASE_URL, Access, GlmSdk, KimiSdk, Vendor

__all__ = [
    "GLM",
    "GLM_BASE_URL",
    "KIMI",
    "KIMI_BASE_URL",
    "Access",
    "AttachedFile",
    "Breaker",
    "BreakerState",
    "Catalogue",
    "CatalogueError",
    "Completion",
    "CompletionRequest",
    "Delta",
    "FinishReason",
    "FunctionTool",
    "GlmSdk",
    "ImagePart",
    "KimiSdk",
    "Message",
    "Modality",
    "Model",
    "OnDelta",
    "Price",
    "Provider",
    "ProviderName",
    "TextPart",
    "Thinking",
    "ToolInvocation",
    "Vendor",
    "build_glm",
    "build_kimi",
    "counts_against_vendor",
]
