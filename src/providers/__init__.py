"""Kimi and GLM: the model catalogue, the neutral completion request, and what carries it to the vendors.

The simulator is a room within: ``from ..providers.simulator import Simulator``; a daemon without it need not load it.
"""

from .abilities import Abilities, Provider
from .breaker import Breaker, BreakerState, counts_against_vendor
from .catalogue import (
    Catalogue,
    CatalogueError,
    Currency,
    Depth,
    Effort,
    Modality,
    Model,
    Price,
    ProviderName,
    Structured,
    Thinking,
)
from .completion import (
    AttachedFile,
    Completion,
    CompletionRequest,
    Delta,
    FinishReason,
    FunctionTool,
    ImagePart,
    JsonFormat,
    Message,
    OnDelta,
    Recency,
    SearchResult,
    TextPart,
    ToolInvocation,
    WebSearch,
)
from .connections import told_of_repeats
from .estimate import ESTIMATE_ERROR, estimate_text
from .files import FileList, FileRules, Files, PurposeRule, RemoteFile, extracted_text
from .glm import build_glm
from .kimi import build_kimi
from .listing import Listing
from .provider import VendorProvider
from .search import ContentSize, Search, SearchAnswer, SearchQuery
from .tags import tagged
from .tokens import TokenCount, Tokens
from .turns import follow_up, functions_wanted
from .vendor import GLM, GLM_BASE_URL, KIMI, KIMI_BASE_URL, Access, GlmSdk, KimiSdk, Vendor

__all__ = [
    "ESTIMATE_ERROR",
    "GLM",
    "GLM_BASE_URL",
    "KIMI",
    "KIMI_BASE_URL",
    "Abilities",
    "Access",
    "AttachedFile",
    "Breaker",
    "BreakerState",
    "Catalogue",
    "CatalogueError",
    "Completion",
    "CompletionRequest",
    "ContentSize",
    "Currency",
    "Delta",
    "Depth",
    "Effort",
    "FileList",
    "FileRules",
    "Files",
    "FinishReason",
    "FunctionTool",
    "GlmSdk",
    "ImagePart",
    "JsonFormat",
    "KimiSdk",
    "Listing",
    "Message",
    "Modality",
    "Model",
    "OnDelta",
    "Price",
    "Provider",
    "ProviderName",
    "PurposeRule",
    "Recency",
    "RemoteFile",
    "Search",
    "SearchAnswer",
    "SearchQuery",
    "SearchResult",
    "Structured",
    "TextPart",
    "Thinking",
    "TokenCount",
    "Tokens",
    "ToolInvocation",
    "Vendor",
    "VendorProvider",
    "WebSearch",
    "build_glm",
    "build_kimi",
    "counts_against_vendor",
    "estimate_text",
    "extracted_text",
    "follow_up",
    "functions_wanted",
    "tagged",
    "told_of_repeats",
]
