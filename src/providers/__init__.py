"""Kimi and GLM: the model catalogue, the neutral completion request, and what carries it to the vendors."""

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

__all__ = [
    "AttachedFile",
    "Catalogue",
    "CatalogueError",
    "Completion",
    "CompletionRequest",
    "Delta",
    "FinishReason",
    "FunctionTool",
    "ImagePart",
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
]
