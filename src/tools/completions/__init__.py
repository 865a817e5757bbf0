"""Completions for tools: model selection, fitting the prompt into the context window, and the request itself.

Most tools need only ``await ask(ModelQuestion("Why?"), context)``. Read files and images first, with ``read_files`` and
``read_images``; a tool that asks several models then reads them only once.
"""

from ..model_question import AUTO, ModelQuestion, OmittedContent, QuestionResult, depth_notice
from .answer_language import messages_in_language
from .attachments import ExpandedPaths, below, errors_of, expand_folders, read_bytes, read_files, read_images
from .completion_loop import CompletionLoop, complete
from .completion_run import (
    ask,
    ask_within,
    available_models,
    prepared,
    select_model,
    unlisted_model,
    with_earlier_turns,
)
from .context_window import ANSWER_TOKENS, max_prompt_tokens
from .failover import MAX_FALLBACKS, asking, attempts_data, first_answer, select_models
from .former_options import supported_question
from .model_selection import ModelChoice, ModelRequirements, either, nearest_thinking, too_long, unsupported
from .prompt_tokens import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    estimate_embeddings,
    estimate_request,
    estimate_tokens,
)

__all__ = [
    "ANSWER_TOKENS",
    "AUTO",
    "IMAGE_TOKENS",
    "MAX_FALLBACKS",
    "MESSAGE_TOKENS",
    "CompletionLoop",
    "ExpandedPaths",
    "ModelChoice",
    "ModelQuestion",
    "ModelRequirements",
    "OmittedContent",
    "QuestionResult",
    "ask",
    "ask_within",
    "asking",
    "attempts_data",
    "available_models",
    "below",
    "complete",
    "depth_notice",
    "either",
    "errors_of",
    "estimate_embeddings",
    "estimate_request",
    "estimate_tokens",
    "expand_folders",
    "first_answer",
    "max_prompt_tokens",
    "messages_in_language",
    "nearest_thinking",
    "prepared",
    "read_bytes",
    "read_files",
    "read_images",
    "select_model",
    "select_models",
    "supported_question",
    "too_long",
    "unlisted_model",
    "unsupported",
    "with_earlier_turns",
]
