"""What of a question fits into its model's window. Pure.

The rule, in this order:

1. instructions, question and images go whole, or nothing is sent;
2. the newest turns of the conversation have a quarter of what is left to themselves, as far as they need it;
3. the files, in their order, each whole or not at all; where there are files, one of them goes, or nothing is sent;
4. the turns, the newest first, as long as they fit: no turn goes that is older than one that does not.

Room is kept for the answer and for the error of the estimate; but not where no file would go otherwise. Where the
vendor has counted that all of it fits, all of it goes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...providers import ESTIMATE_ERROR, Model
from .model_question import ModelQuestion, OmittedContent
from .prompt_tokens import IMAGE_TOKENS, MESSAGE_TOKENS, estimate_tokens

ANSWER_TOKENS: Final = 4_096
"""Room for an answer that has no bound."""
THINKING_TOKENS: Final = 16_384
"""The same, where the model reasons before it answers."""
TURNS_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class PromptSizes:
    """A question in tokens, by the estimate."""

    asked: int
    """Instructions, question and images."""
    files: tuple[int, ...]
    turns: tuple[int, ...]
    counted: int | None = None
    """All of it, where the vendor counted it; the parts are then our estimate of how it is shared out."""

    @property
    def all(self) -> int:
        if self.counted is not None:
            return self.counted
        return self.asked + sum(self.files) + sum(self.turns)


def sizes(question: ModelQuestion) -> PromptSizes:
    return PromptSizes(
        estimate_tokens((question.system or "", question.prompt)) + len(question.images) * IMAGE_TOKENS,
        tuple(estimate_tokens((file.text,)) + MESSAGE_TOKENS for file in question.files),
        tuple(estimate_tokens((turn.text,)) + MESSAGE_TOKENS for turn in question.history),
    )


def answer_tokens(model: Model, question: ModelQuestion) -> int:
    """Tokens that are kept free for the answer: its bound, or a usual length, a quarter of a small window at most."""
    if question.max_tokens is not None:
        return question.max_tokens
    thinks = model.thinking != "none" and question.thinking not in {False, "minimal"}
    usual = THINKING_TOKENS if thinks else ANSWER_TOKENS
    return min(usual, model.max_output or usual, model.context_window // 4)


def room(model: Model, question: ModelQuestion) -> int:
    """Tokens that the question may have by the estimate, so that it surely fits beside its answer."""
    return int((model.context_window - answer_tokens(model, question)) / (1 + ESTIMATE_ERROR))


def fit_to(
    model: Model, question: ModelQuestion, size: PromptSizes
) -> tuple[ModelQuestion, tuple[OmittedContent, ...]] | None:
    """The question as it fits the model, and what was left out of it; None where it does not fit at all."""
    if size.counted is not None and size.counted <= model.context_window - answer_tokens(model, question):
        return question, ()
    window = model.context_window - (question.max_tokens or 0)
    if size.asked > window:
        return None
    fitted = fit(question, size, room(model, question))
    if question.files and not fitted[0].files:
        fitted = fit(question, size, window)
        if not fitted[0].files:
            return None
    return fitted


def fit(question: ModelQuestion, size: PromptSizes, tokens: int) -> tuple[ModelQuestion, tuple[OmittedContent, ...]]:
    """The question with as much of files and history as so many ``tokens`` hold, and what was left out of it."""
    if size.all <= tokens:
        return question, ()
    left = max(0, tokens - size.asked)
    kept_for_turns = min(sum(size.turns), int(left * TURNS_SHARE))
    files, used = _fitting_files(size.files, left - kept_for_turns)
    turns = _newest(size.turns, left - used)
    fitted = replace(
        question,
        files=tuple(file for file, goes in zip(question.files, files, strict=True) if goes),
        history=question.history[len(question.history) - turns :],
    )
    return fitted, tuple(_left_out(question, files, size, turns))


def _fitting_files(tokens: Sequence[int], room: int) -> tuple[list[bool], int]:
    goes, used = [], 0
    for size in tokens:
        goes.append(used + size <= room)
        used += size if goes[-1] else 0
    return goes, used


def _newest(tokens: Sequence[int], room: int) -> int:
    """How many of the newest turns fit."""
    used = 0
    for count, size in enumerate(reversed(tokens)):
        used += size
        if used > room:
            return count
    return len(tokens)


def _left_out(question: ModelQuestion, files: Sequence[bool], size: PromptSizes, turns: int) -> list[OmittedContent]:
    missing = [
        OmittedContent(file.name, f"no room in the model's window for its {tokens:,} tokens")
        for file, tokens, goes in zip(question.files, size.files, files, strict=True)
        if not goes
    ]
    if older := len(question.history) - turns:
        what = "the oldest turn of the conversation" if older == 1 else f"the oldest {older} turns of the conversation"
        missing.append(
            OmittedContent(what, f"no room in the model's window for {sum(size.turns[:older]):,} tokens more")
        )
    return missing
