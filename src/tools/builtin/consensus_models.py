"""The models of ``consensus``: its arguments, the question to one model, and the synthesis of the answers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from ...protocol.error_codes import CallError, CallTimeoutError, InvalidArgumentsError, ProviderError
from ...providers import AttachedFile, Depth, tagged
from ..completions import AUTO, ModelQuestion, OmittedContent, QuestionResult, ask
from ..former_arguments import FormerNames
from ..tool import Arguments
from ..tool_context import ToolContext
from .chat import MAX_FILES, MAX_IMAGES

MAX_MODELS: Final = 8
MODELS_SHARE: Final = 0.6
"""The models' share of the call's time; the synthesis gets the rest. A slower model counts as failed."""
CALLER: Final = "the caller"
"""The title of the caller's own view in the synthesis."""
Row = dict[str, Any]
"""A model's answer or error as an item of ``structured``."""

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
    stance_prompt: str | None = Field(default=None, min_length=1, description="Instructions that replace the stance's.")


class ConsensusArguments(Arguments):
    """A question, and the models to ask."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("total_steps", "next_step_required"), "there is one step per model, and the last step has the synthesis"
        ),
        **dict.fromkeys(("current_model_index", "model_responses"), "the daemon keeps the answers"),
        **dict.fromkeys(("model", "use_assistant_model"), "models and synthesis_model say which models are asked"),
    }

    prompt: Annotated[str, FormerNames("step")] = Field(min_length=1, description="The question or proposal to judge.")
    models: Annotated[list[str | Participant], Field(max_length=MAX_MODELS)] = Field(
        default=[], description="Two to eight models: ids or aliases, or objects with a stance."
    )
    step_number: int | None = Field(
        default=None, ge=1, description="Ask one model per call: 1 for the first, together with all models."
    )
    findings: str = Field(default="", description="Your own view, for the synthesis only.")
    synthesis_model: str | None = Field(
        default=None, description="Model that writes the synthesis. Default: the default model."
    )
    files: Annotated[list[str], FormerNames("relevant_files")] = Field(
        default=[], max_length=MAX_FILES, description="Paths of text files or folders in the workspace."
    )
    images: list[str] = Field(default=[], max_length=MAX_IMAGES, description="Paths in the workspace, or URLs.")
    thinking: Annotated[bool | Depth | None, FormerNames("thinking_mode")] = Field(
        default=None, description="Whether to think first, or how deeply."
    )
    continuation_id: str | None = Field(default=None, description="Conversation to continue.")

    @property
    def participants(self) -> tuple[Participant, ...]:
        return tuple(Participant(model=model) if isinstance(model, str) else model for model in self.models)


@dataclass(frozen=True, slots=True)
class Outcome:
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


def require_models(arguments: ConsensusArguments, context: ToolContext, *, least: int) -> None:
    """Rejects too few models, unknown models, and duplicates.

    Raises:
        InvalidArgumentsError: the error names the field.
    """
    if len(arguments.models) < least:
        problem = f"should have at least {least} item{'s' if least > 1 else ''}, not {len(arguments.models)}"
        raise InvalidArgumentsError(f"consensus: models {problem}.", details={"fields": {"models": problem}})
    _require_distinct(arguments.participants, context)
    if arguments.synthesis_model is not None:
        resolve(arguments.synthesis_model, "synthesis_model", context)


def _require_distinct(participants: Sequence[Participant], context: ToolContext) -> None:
    """Rejects a model that is listed twice with the same stance, even under two aliases, because it would cost
    twice.
    """
    seen = set()
    for index, participant in enumerate(participants):
        field = f"models.{index}"
        model = resolve(participant.model, field, context)
        if (model, participant.stance) in seen:
            problem = f"{model} is already listed with the same stance"
            raise InvalidArgumentsError(f"{field}: {problem}.", details={"fields": {field: problem}})
        seen.add((model, participant.stance))


def resolve(name: str, field: str, context: ToolContext) -> str:
    """Returns the model's id. Reports an unknown name before any model is asked and costs money."""
    if name.strip().lower() == AUTO:
        return AUTO
    try:
        return context.daemon.catalog.resolve(name).id
    except InvalidArgumentsError as error:
        hint = error.message
        details = {**(error.details or {}), "fields": {field: hint}}
        raise InvalidArgumentsError(f"{field}: {hint}", details=details) from error


async def ask_outcome(
    question: ModelQuestion,
    participant: Participant,
    unread: Sequence[OmittedContent],
    context: ToolContext,
    time_s: float,
) -> Outcome:
    """Asks one model, within ``time_s``. The outcome includes its error and the files that were not read."""
    system = f"{_ANSWER}\n\n{participant.stance_prompt or _STANCES[participant.stance]}"
    try:
        async with asyncio.timeout(time_s):
            asked = replace(question, model=participant.model, system=system, fallback=())  # no model answers twice
            result = await ask(asked, context, stream=False)
    except TimeoutError:
        return Outcome(
            participant, error=CallTimeoutError(f"{participant.model} did not answer within {time_s:.0f} s.")
        )
    except CallError as error:
        return Outcome(participant, error=error)
    return Outcome(participant, replace(result, omitted=(*result.omitted, *unread)))


async def synthesize(
    question: str, model: str | None, views: Sequence[AttachedFile], answers: Sequence[Row], context: ToolContext
) -> QuestionResult:
    """Asks a model for the synthesis of ``views``, the texts by title.

    Raises:
        CallError: as raised by ``ask``; ``details.answers`` has ``answers``, which have cost money.
    """
    # Answers are attached as files, because a file that does not fit into the window is omitted whole and reported.
    request = ModelQuestion(
        f"The question was:\n\n{tagged('question', question)}", system=_SYNTHESIS, model=model, files=tuple(views)
    )
    try:
        return await ask(request, context)
    except CallError as error:
        details = {**(error.details or {}), "answers": list(answers)}
        raise type(error)(
            f"The models answered (details.answers), but the synthesis failed: {error.message}",
            executed="maybe" if error.executed == "no" else error.executed,
            transient=error.transient,
            retry_after_ms=error.retry_after_ms,
            details=details,
        ) from error


def combined_error(failed: Sequence[Outcome]) -> CallError:
    """Combines the errors into one, of their common type or else a ProviderError."""
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
