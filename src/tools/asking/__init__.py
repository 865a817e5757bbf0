"""What all tools share that ask a model: which model, what fits into its window, one completion, what was left out.

``await ask(Question("Why?"), context)`` is all that most need. Files and images are read first, with ``read_files`` and
``read_images``, so that who asks several models reads them once.
"""

from .ask import ask, ask_within, pick, prepared
from .choosing import Choice, Need, either, nearest, too_long
from .fitting import ANSWER_TOKENS, room
from .material import errors_of, read_bytes, read_files, read_images
from .question import AUTO, Asked, LeftOut, Question, another_depth
from .rounds import Rounds, complete
from .tokens import IMAGE_TOKENS, estimate_request, estimate_tokens

__all__ = [
    "ANSWER_TOKENS",
    "AUTO",
    "IMAGE_TOKENS",
    "Asked",
    "Choice",
    "LeftOut",
    "Need",
    "Question",
    "Rounds",
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
