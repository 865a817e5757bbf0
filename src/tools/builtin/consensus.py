"""``consensus``: one question to several models in parallel, then one synthesis of their answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from ...protocol.error_codes import CallError, CallTimeoutError, InvalidArgumentsError, ProviderError
from ...providers import AttachedFile, Depth, tagged
from ..completions import AUTO, ModelQuestion, QuestionResult, ask, read_files, read_images
from ..conversation import Turn
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext
from .chat import MAX_FILES, MAX_IMAGES

TIMEOUT_S: Final = 660.0
"""Two answers in sequence, each from a model that may take 300 s."""
MODELS_SHARE: Final = 0.6
"""The models' share of the call's time; the synthesis gets the rest. A model that is slower counts as failed."""

Stance = Literal["for", "against", "neutral"]

_STANCES: Final[dict[Stance, str]] = {
    "for": (
        "Argue for the proposal: make the strongest honest case for it and say how its problems can be solved. "
        "If it is harmful or cannot work at all, say so instead."
    ),
    "against": (
        "Argue against the proposal: make the strongest honest case against it, most serious risk first, and say what "
        "would be better. If it is clearly right, say so instead."
    ),
    "neutral": "Weigh both sides on their merits and decide. Do not aim for balance.",
}
_ANSWER: Final = (
    "Several models get this question, and their answers will be compared. Give your own judgement, your reasons and "
    "your confidence. State the assumptions behind your judgement and what would change it."
)
_SYNTHESIS: Final = """\
Several models answered the same question. Their answers are attached, each under its model's name; some models were \
instructed to argue for or against. Write a synthesis:

1. points of agreement;
2. points of disagreement, and which side has the better reasons, regardless of how many models hold it;
3. anything that all of them overlooked;
4. the resulting recommendation and next steps.

Name a model if it matters who made a point. For a model with an assigned stance, weigh its reasons, not its verdict."""


class Participant(Arguments):
    """One model to ask, and its stance."""

    model: str = Field(min_length=1, description="Model id or alias, or auto.")
    stance: Stance = Field(default="neutral", description="Side to argue.")


class ConsensusArguments(Arguments):
    """A question, and the models to ask."""

    prompt: str = Field(min_length=1, description="The question or proposal to judge.")
    models: Annotated[list[str | Participant], Field(min_length=2, max_length=8)] = Field(
        description="Two to eight models: ids or aliases, or objects with a stance."
    )
    synthesis_model: str | None = Field(
        default=None, description="Model that writes the synthesis. Default: the default model."
    )
    files: list[str] = Field(default=[], max_length=MAX_FILES, description="Paths of text files in the workspace.")
    images: list[str] = Field(default=[], max_length=MAX_IMAGES, description="Paths in the workspace, or URLs.")
    thinking: bool | Depth | None = Field(default=None, description="Whether to think first, or how deeply.")
    continuation_id: str | None = Field(default=None, description="Conversation to continue.")

    @property
    def participants(self) -> tuple[Participant, ...]:
        return tuple(Participant(model=model) if isinstance(model, str) else model for model in self.models)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result or the error of one model."""

    participant: Participant
    result: QuestionResult | None = None
    error: CallError | None = None

    @property
    def title(self) -> str:
        stance = self.participant.stance
        model = self.result.model.id if self.result else self.participant.model
        return model if stance == "neutral" else f"{model} (assigned stance: {stance})"

    def row(self) -> dict[str, Any]:
        """The outcome as an item of ``structured``."""
        row: dict[str, Any] = {"requested_model": self.participant.model, "stance": self.participant.stance}
        if self.result is not None:
            row |= self.result.with_text()
        if self.error is not None:
            row |= {"code": self.error.code.value, "message": self.error.message}
        return row


@tool("consensus", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def consensus(arguments: ConsensusArguments, context: ToolContext) -> ToolOutput:
    """Ask several models the same question in parallel, optionally with a stance for or against, then synthesize.

    The text is the synthesis. `structured` has all `answers` and the models that `failed`; the call succeeds if at
    least one model answers. Makes one completion per model, plus one.
    """
    _require_distinct(arguments.participants, context)
    if arguments.synthesis_model is not None:
        _resolve(arguments.synthesis_model, "synthesis_model", context)
    files = await read_files(arguments.files, context)
    images = await read_images(arguments.images, context)
    async with context.conversation(arguments.continuation_id) as conversation:
        question = ModelQuestion(
            arguments.prompt,
            files=files,
            images=images,
            history=tuple(conversation.turns),
            thinking=arguments.thinking,
            cache_key=conversation.id,
        )
        outcomes = await _ask_all(question, arguments.participants, context)
        answered = [outcome for outcome in outcomes if outcome.result is not None]
        failed = [outcome for outcome in outcomes if outcome.error is not None]
        if not answered:
            raise _combined_error(failed)
        synthesis = await _synthesis(arguments, answered, context)
        names = tuple(file.name for file in files)
        conversation.add(Turn("user", arguments.prompt, tool="consensus", files=names))
        conversation.add(Turn("assistant", synthesis.text, tool="consensus", model=synthesis.completion.model))
    data = {
        **synthesis.with_text(),
        "answers": [outcome.row() for outcome in answered],
        "failed": [outcome.row() for outcome in failed],
        "continuation_id": conversation.id,
    }
    return ToolOutput(synthesis.text, data)


def _require_distinct(participants: Sequence[Participant], context: ToolContext) -> None:
    """Rejects a model listed twice with the same stance, even under two aliases: it would be paid for twice."""
    seen = set()
    for index, participant in enumerate(participants):
        field = f"models.{index}"
        model = _resolve(participant.model, field, context)
        if (model, participant.stance) in seen:
            problem = f"{model} is already listed with the same stance"
            raise InvalidArgumentsError(f"{field}: {problem}.", details={"fields": {field: problem}})
        seen.add((model, participant.stance))


def _resolve(name: str, field: str, context: ToolContext) -> str:
    """Returns the model's id. An unknown name is reported before any model is asked and paid for."""
    if name.strip().lower() == AUTO:
        return AUTO
    try:
        return context.daemon.catalog.resolve(name).id
    except InvalidArgumentsError as error:
        hint = error.message
        details = {**(error.details or {}), "fields": {field: hint}}
        raise InvalidArgumentsError(f"{field}: {hint}", details=details) from error


async def _ask_all(
    question: ModelQuestion, participants: Sequence[Participant], context: ToolContext
) -> list[_Outcome]:
    """Asks all models at once. Returns the outcomes in the order of ``participants``."""
    time_s = context.remaining() * MODELS_SHARE
    ended = 0

    async def ask_one(participant: Participant) -> _Outcome:
        nonlocal ended
        outcome = await _ask_one(question, participant, context, time_s)
        ended += 1
        state = "answered" if outcome.result else f"failed ({outcome.error.code.value})" if outcome.error else ""
        context.progress(f"{outcome.title} {state}", ended, len(participants) + 1)
        return outcome

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask_one(participant)) for participant in participants]
    return [task.result() for task in tasks]


async def _ask_one(question: ModelQuestion, participant: Participant, context: ToolContext, time_s: float) -> _Outcome:
    system = f"{_ANSWER}\n\n{_STANCES[participant.stance]}"
    try:
        async with asyncio.timeout(time_s):
            result = await ask(replace(question, model=participant.model, system=system), context, stream=False)
    except TimeoutError:
        return _Outcome(
            participant, error=CallTimeoutError(f"{participant.model} did not answer within {time_s:.0f} s.")
        )
    except CallError as error:
        return _Outcome(participant, error=error)
    return _Outcome(participant, result)


async def _synthesis(
    arguments: ConsensusArguments, answered: Sequence[_Outcome], context: ToolContext
) -> QuestionResult:
    # Attached as files: an answer that does not fit into the window is omitted as a whole and reported.
    answers = tuple(AttachedFile(outcome.title, outcome.result.text) for outcome in answered if outcome.result)
    question = ModelQuestion(
        f"The question was:\n\n{tagged('question', arguments.prompt)}",
        system=_SYNTHESIS,
        model=arguments.synthesis_model,
        files=answers,
    )
    try:
        return await ask(question, context)
    except CallError as error:
        # The answers were paid for, so the error carries them.
        details = {**(error.details or {}), "answers": [outcome.row() for outcome in answered]}
        raise type(error)(
            f"The models answered (details.answers), but the synthesis failed: {error.message}",
            executed="maybe" if error.executed == "no" else error.executed,
            transient=error.transient,
            retry_after_ms=error.retry_after_ms,
            details=details,
        ) from error


def _combined_error(failed: Sequence[_Outcome]) -> CallError:
    """Combines the errors into one, of their common type if there is one, else a ProviderError."""
    errors = [outcome.error for outcome in failed if outcome.error is not None]
    kind = type(errors[0]) if len({type(error) for error in errors}) == 1 else ProviderError
    messages = "; ".join(f"{outcome.title}: {outcome.error.message}" for outcome in failed if outcome.error)
    return kind(
        f"No model answered. {messages}",
        executed="no" if all(error.executed == "no" for error in errors) else "maybe",
        transient=all(error.transient for error in errors),
        retry_after_ms=max((error.retry_after_ms or 0 for error in errors), default=0) or None,
        details={"failed": [outcome.row() for outcome in failed]},
    )
