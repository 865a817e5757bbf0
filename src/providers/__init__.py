"""Vendors: the model catalog, the vendor-neutral completion request, and the vendor transports.

The simulator is a separate subpackage (``from ..providers.simulator import Simulator``), loaded only if used.
"""

from .allowed_models import restrict
from .best_value import best_value, price_text
from .call_connections import count_sdk_retries
from .circuit_breaker import BreakerState, CircuitBreaker, counts_against_vendor
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
    ToolChoice,
    ToolInvocation,
    WebSearch,
)
from .embedding import MAX_INPUTS, EmbeddingRequest, Embeddings, Encoding
from .glm import build_glm
from .kimi import build_kimi
from .model import Currency, Depth, Effort, Modality, Model, ModelKind, ModelPrice, Structured, Thinking
from .model_catalog import ModelCatalog, unknown_provider
from .model_facts import ListedModel, ModelFacts, ModelGlobs
from .model_listing import ModelListing
from .model_table import ModelCatalogError
from .open_provider import OpenProvider, ProviderTerms
from .openai_compatible import build_compatible
from .preset_catalog import preset_models
from .prompt_tags import tagged
from .provider_interface import Provider, ProviderCapabilities
from .provider_presets import OPENAI_TYPE, PRESETS, ProviderPreset, preset_dialect
from .token_count import TokenCount, TokenCounter
from .token_estimate import ESTIMATE_ERROR, estimate_text
from .tool_turns import follow_up, functions_wanted, is_builtin
from .vendor_dialect import COMPATIBLE, DIALECTS, Dialect
from .vendor_errors import VendorObjectNotFoundError
from .vendor_files import FileList, FileRules, PurposeRule, RemoteFile, VendorFiles, extracted_text
from .vendor_info import GLM, KIMI, ZAI_BASE_URL, GlmSdk, KimiSdk, SdkPackage, VendorAccess, VendorInfo
from .vendor_provider import VendorProvider
from .vendor_search import ContentSize, SearchAnswer, SearchQuery, VendorSearch

__all__ = [
    "COMPATIBLE",
    "DIALECTS",
    "ESTIMATE_ERROR",
    "GLM",
    "KIMI",
    "MAX_INPUTS",
    "OPENAI_TYPE",
    "PRESETS",
    "ZAI_BASE_URL",
    "AttachedFile",
    "BreakerState",
    "CircuitBreaker",
    "Completion",
    "CompletionRequest",
    "ContentSize",
    "Currency",
    "Delta",
    "Depth",
    "Dialect",
    "Effort",
    "EmbeddingRequest",
    "Embeddings",
    "Encoding",
    "FileList",
    "FileRules",
    "FinishReason",
    "FunctionTool",
    "GlmSdk",
    "ImagePart",
    "JsonFormat",
    "KimiSdk",
    "ListedModel",
    "Message",
    "Modality",
    "Model",
    "ModelCatalog",
    "ModelCatalogError",
    "ModelFacts",
    "ModelGlobs",
    "ModelKind",
    "ModelListing",
    "ModelPrice",
    "OnDelta",
    "OpenProvider",
    "Provider",
    "ProviderCapabilities",
    "ProviderPreset",
    "ProviderTerms",
    "PurposeRule",
    "Recency",
    "RemoteFile",
    "SdkPackage",
    "SearchAnswer",
    "SearchQuery",
    "SearchResult",
    "Structured",
    "TextPart",
    "Thinking",
    "TokenCount",
    "TokenCounter",
    "ToolChoice",
    "ToolInvocation",
    "VendorAccess",
    "VendorFiles",
    "VendorInfo",
    "VendorObjectNotFoundError",
    "VendorProvider",
    "VendorSearch",
    "WebSearch",
    "best_value",
    "build_compatible",
    "build_glm",
    "build_kimi",
    "count_sdk_retries",
    "counts_against_vendor",
    "estimate_text",
    "extracted_text",
    "follow_up",
    "functions_wanted",
    "is_builtin",
    "preset_dialect",
    "preset_models",
    "price_text",
    "restrict",
    "tagged",
    "unknown_provider",
]
