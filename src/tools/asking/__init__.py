"""What all tools share that ask a model: which model, what fits into its window, one completion, what was left out.

``await ask(Question("Why?"), context)`` is all that most need. Files and images are read first, with ``read_files`` and
``read_images``, so that who asks several models reads them once.
"""

from .ask import ask, ask_within
from .material import read_files, read_images
from .question import AUTO, Asked, LeftOut, Question
from .tokens import estimate_tokens

__all__ = [
    "AUTO",
    "Asked",
    "LeftOut",
    "Question",
    "ask",
    "ask_within",
    "estimate_tokens",
    "read_files",
    "read_images",
]
