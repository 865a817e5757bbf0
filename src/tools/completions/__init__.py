"""What all tools share that ask a model: which model, what fits into its window, one completion, what was left out.

``await ask(ModelQuestion("Why?"), context)`` is all that most need. Files and images are read first, with
``read_files`` and ``read_images``, so that who asks several models reads them once.
"""

from .attachments import errors_of, read_bytes, read_files, read_images
from .completion_loop import CompletionLoop, complete
from .completion_run import ask, ask_within, pick, prepared
from .context_window import ANSWER_TOKENS, room
from .model_question import AUTO, ModelQuestion, OmittedContent, QuestionResult, another_depth
from .model_selection import ModelChoice, ModelRequirements, either, nearest, too_long
from .prompt_tokens import IMAGE_TOKENS, estimate_request, estimate_tokens

__all__ = [
    "ANSWER_TOKENS",
    "AUTO",
    "IMAGE_TOKENS",
    "CompletionLoop",
    "ModelChoice",
    "ModelQuestion",
    "ModelRequirements",
    "OmittedContent",
    "QuestionResult",
    "another_depth",
    "ask",
    "ask_within",
    "complete",
    "either",
    "errors_of",
    "estimate_request",
    "estimate_tokens",
    "nearest",
    "pick",
    "prepared",
    "read_bytes",
    "read_files",
    "read_images",
    "room",
    "too_long",
]
