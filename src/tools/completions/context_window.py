"""Fits a question into its model's context window. Pure.

The rule, in order of priority:

1. System instructions, prompt and images are sent whole, or nothing is sent.
2. A quarter of the remaining space is reserved for the newest turns of the conversation, as far as they need it.
3. Files are sent in order, each whole or not at all. If there are files, at least one is sent, or nothing is sent.
4. Turns are sent newest first, as long as they fit. No turn is sent that is older than an omitted one.

Space is reserved for the answer and for the estimate's error, unless that would omit every file. If the vendor counted
the tokens and all parts fit, nothing is omitted. If the window is unknown, nothing is omitted either.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...providers import ESTIMATE_ERROR, Model
from ..model_question import ModelQuestion, OmittedContent
from .prompt_tokens import IMAGE_TOKENS, MESSAGE_TOKENS, estimate_tokens

ANSWER_TOKENS: Final = 4_096
"""Space for an answer without ``max_tokens``."""
THINKING_TOKENS: Final = 16_384
"""Space for the answer of a model that thinks first."""
TURNS_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class PromptSizes:
    """The sizes of a question's parts in tokens, estimated."""

    base: int
    """System instructions, prompt and images."""
    files: tuple[int, ...]
    turns: tuple[int, ...]
    counted: int | None = None
    """The total, if the vendor counted it; the parts are then scaled estimates."""

    @property
    def total(self) -> int:
        if self.counted is not None:
            return self.counted
        return self.base + sum(self.files) + sum(self.turns)


def prompt_sizes(question: ModelQuestion) -> PromptSizes:
    return PromptSizes(
        estimate_tokens((question.system or "", question.prompt)) + len(question.images) * IMAGE_TOKENS,
        tuple(estimate_tokens((file.text,)) + MESSAGE_TOKENS for file in question.files),
        tuple(estimate_tokens((turn.text,)) + MESSAGE_TOKENS for turn in question.history),
    )


def answer_tokens(model: Model, question: ModelQuestion) -> int:
    """Returns the tokens reserved for the answer: ``max_tokens``, or a usual length up to a quarter of the window."""
    if question.max_tokens is not None:
        return question.max_tokens
    thinks = model.thinking != "none" and question.thinking not in {False, "minimal"}
    usual = THINKING_TOKENS if thinks else ANSWER_TOKENS
    window = usual if model.context_window is None else model.context_window // 4
    return min(usual, model.max_output or usual, window)


def max_prompt_tokens(model: Model, question: ModelQuestion) -> int:
    """Returns the largest estimate at which prompt and answer certainly fit into the window, if that is known."""
    if model.context_window is None:
        return sys.maxsize
    return int((model.context_window - answer_tokens(model, question)) / (1 + ESTIMATE_ERROR))


def fit_to(
    model: Model, question: ModelQuestion, sizes: PromptSizes
) -> tuple[ModelQuestion, tuple[OmittedContent, ...]] | None:
    """Returns the question fitted to the model and the omitted parts, or None if it does not fit at all."""
    if model.context_window is None:
        return question, ()  # the vendor decides what fits
    if sizes.counted is not None and sizes.counted <= model.context_window - answer_tokens(model, question):
        return question, ()
    window = model.context_window - (question.max_tokens or 0)
    if sizes.base > window:
        return None
    fitted = fit(question, sizes, max_prompt_tokens(model, question))
    if len(question.files) > question.optional_files and not fitted[0].files:
        fitted = fit(question, sizes, window)
        if not fitted[0].files:
            return None
    return fitted


def fit(question: ModelQuestion, sizes: PromptSizes, tokens: int) -> tuple[ModelQuestion, tuple[OmittedContent, ...]]:
    """Fits files and history into ``tokens``. Returns the reduced question and the omitted parts."""
    if sizes.total <= tokens:
        return question, ()
    available = max(0, tokens - sizes.base)
    reserved_for_turns = min(sum(sizes.turns), int(available * TURNS_SHARE))
    included, used = _fitting_files(sizes.files, available - reserved_for_turns)
    turns = _fitting_turns(sizes.turns, available - used)
    fitted = replace(
        question,
        files=tuple(file for file, fits in zip(question.files, included, strict=True) if fits),
        history=question.history[len(question.history) - turns :],
    )
    return fitted, tuple(_omitted_parts(question, included, sizes, turns))


def _fitting_files(tokens: Sequence[int], available: int) -> tuple[list[bool], int]:
    """Returns which files fit, and the tokens that they use."""
    included, used = [], 0
    for size in tokens:
        included.append(used + size <= available)
        used += size if included[-1] else 0
    return included, used


def _fitting_turns(tokens: Sequence[int], available: int) -> int:
    """Returns how many of the newest turns fit."""
    used = 0
    for count, size in enumerate(reversed(tokens)):
        used += size
        if used > available:
            return count
    return len(tokens)


def _omitted_parts(
    question: ModelQuestion, included: Sequence[bool], sizes: PromptSizes, turns: int
) -> list[OmittedContent]:
    omitted = [
        OmittedContent(file.name, f"its {tokens:,} tokens do not fit into the model's context window")
        for file, tokens, fits in zip(question.files, sizes.files, included, strict=True)
        if not fits
    ]
    if older := len(question.history) - turns:
        what = "the oldest turn of the conversation" if older == 1 else f"the oldest {older} turns of the conversation"
        tokens = sum(sizes.turns[:older])
        omitted.append(OmittedContent(what, f"{tokens:,} more tokens do not fit into the model's context window"))
    return omitted
