"""``consensus``: the same question to several models side by side, then one synthesis of what they said."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from ...protocol.error_codes import CallError, CallTimeoutError, InvalidArgumentsError, ProviderError
from ...providers import AttachedFile, Depth, tagged
from ..completions import AUTO, ModelQuestion, QuestionResult, ask, read_files, read_images
from ..conversation import Turn
from ..tool import Answer, Arguments, tool
from ..tool_context import ToolContext
from .chat import MAX_FILES, MAX_IMAGES

TIMEOUT_S: Final = 660.0
"""Two answers, one after the other, of models that may take 300 s each."""
MODELS_SHARE: Final = 0.6
"""Of the call's time; a model that has not answered then is reported as failed, and there is time for the synthesis."""

Stance = Literal["for", "against", "neutral"]

_STANCES: Final[dict[Stance, str]] = {
    "for": (
        "Argue for what is proposed: make the strongest honest case for it, and say how its difficulties can be met. "
        "If it is harmful or cannot work at all, say so instead."
    ),
    "against": (
        "Argue against what is proposed: make the strongest honest case against it, the weightiest risk first, and say "
        "what would be better. If it is plainly right, say so instead."
    ),
    "neutral": "Weigh both sides by what they are worth, and decide; balance is not a value in itself.",
}
_ANSWER: Final = (
    "Several models are asked this side by side, and their answers will be compared. Give your own judgement, with its "
    "reasons and how sure you are of them. Say what your judgement rests on and what would change it."
)
_SYNTHESIS: Final = """\
Several models were asked the same question. Their answers are attached, each under its model's name; some were told \
to argue for or against. Write the synthesis:

1. what they agree on;
2. where they differ, and which side has the better reasons, whoever and however many hold it;
3. what all of them overlooked, if anything;
4. the recommendation that follows, and the next steps.

Name the models where it matters who said it. Where one argues as it was told to, weigh its reasons, not its verdict."""


class Participant(Arguments):
    """One of the models."""

    model: str = Field(min_length=1, description="A model's id or alias, or auto.")
    stance: Stance = Field(default="neutral", description="Which side to argue.")


class ConsensusArguments(Arguments):
    """A question, and whom to ask."""

    prompt: str = Field(min_length=1, description="The question, or the proposal to judge.")
    models: Annotated[list[str | Participant], Field(min_length=2, max_length=8)] = Field(
        description="Two to eight: ids or aliases, or objects with a stance."
    )
    synthesis_model: str | None = Field(default=None, description="Who writes the synthesis; else the default model.")
    files: list[str] = Field(default=[], max_length=MAX_FILES, description="Paths of text files below the workspace.")
    images: list[str] = Field(default=[], max_length=MAX_IMAGES, description="Paths below the workspace, or URLs.")
    thinking: bool | Depth | None = Field(default=None, description="Whether to reason first, or how deeply.")
    continuation_id: str | None = Field(default=None, description="Goes on with the conversation of this id.")

    @property
    def participants(self) -> tuple[Participant, ...]:
        return tuple(Participant(model=one) if isinstance(one, str) else one for one in self.models)


@dataclass(frozen=True, slots=True)
class _Said:
    """What came of asking one of the models."""

    participant: Participant
    asked: QuestionResult | None = None
    error: CallError | None = None

    @property
    def title(self) -> str:
        stance = self.participant.stance
        model = self.asked.model.id if self.asked else self.participant.model
        return model if stance == "neutral" else f"{model} (told to argue {stance})"

    def row(self) -> dict[str, Any]:
        """What ``structured`` says of it."""
        row: dict[str, Any] = {"asked": self.participant.model, "stance": self.participant.stance}
        if self.asked is not None:
            row |= self.asked.with_text()
        if self.error is not None:
            row |= {"code": self.error.code.value, "message": self.error.message}
        return row


@tool("consensus", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def consensus(arguments: ConsensusArguments, context: ToolContext) -> Answer:
    """Ask several models the same question side by side, some for or against if told so, then write one synthesis.

    The text is the synthesis; `structured` has each `answers`, and which models `failed`, which is no error as long as
    one answers. It makes one completion a model, and one more.
    """
    _require_different(arguments.participants, context)
    if arguments.synthesis_model is not None:
        _require_known(arguments.synthesis_model, "synthesis_model", context)
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
        said = await _ask_all(question, arguments.participants, context)
        answered = [one for one in said if one.asked is not None]
        failed = [one for one in said if one.error is not None]
        if not answered:
            raise _all_failed(failed)
        synthesis = await _synthesis(arguments, answered, context)
        names = tuple(file.name for file in files)
        conversation.add(Turn("user", arguments.prompt, tool="consensus", files=names))
        conversation.add(Turn("assistant", synthesis.text, tool="consensus", model=synthesis.completion.model))
    data = {
        **synthesis.with_text(),
        "answers": [one.row() for one in answered],
        "failed": [one.row() for one in failed],
        "continuation_id": conversation.id,
    }
    return Answer(synthesis.text, data)


def _require_different(participants: Sequence[Participant], context: ToolContext) -> None:
    """Two names of one model are one model, which would be paid for twice and told to agree with itself."""
    seen = set()
    for index, one in enumerate(participants):
        field = f"models.{index}"
        model = _require_known(one.model, field, context)
        if (model, one.stance) in seen:
            what = f"{model} stands there already with the same stance"
            raise InvalidArgumentsError(f"{field}: {what}.", details={"fields": {field: what}})
        seen.add((model, one.stance))


def _require_known(name: str, field: str, context: ToolContext) -> str:
    """The model's id. A wrong name is the caller's mistake, told before anybody is asked and paid for."""
    if name.strip().lower() == AUTO:
        return AUTO
    try:
        return context.daemon.catalog.resolve(name).id
    except InvalidArgumentsError as error:
        hint = error.message
        details = {**(error.details or {}), "fields": {field: hint}}
        raise InvalidArgumentsError(f"{field}: {hint}", details=details) from error


async def _ask_all(question: ModelQuestion, participants: Sequence[Participant], context: ToolContext) -> list[_Said]:
    """Ask all at once; how each ended, in their order."""
    time_s = context.remaining() * MODELS_SHARE
    ended = 0

    async def ask_one(participant: Participant) -> _Said:
        nonlocal ended
        said = await _ask_one(question, participant, context, time_s)
        ended += 1
        outcome = "answered" if said.asked else f"failed ({said.error.code.value})" if said.error else ""
        context.progress(f"{said.title} {outcome}", ended, len(participants) + 1)
        return said

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask_one(participant)) for participant in participants]
    return [task.result() for task in tasks]


async def _ask_one(question: ModelQuestion, participant: Participant, context: ToolContext, time_s: float) -> _Said:
    system = f"{_ANSWER}\n\n{_STANCES[participant.stance]}"
    try:
        async with asyncio.timeout(time_s):
            asked = await ask(replace(question, model=participant.model, system=system), context, stream=False)
    except TimeoutError:
        return _Said(participant, error=CallTimeoutError(f"{participant.model} did not answer within {time_s:.0f} s."))
    except CallError as error:
        return _Said(participant, error=error)
    return _Said(participant, asked)


async def _synthesis(arguments: ConsensusArguments, answered: Sequence[_Said], context: ToolContext) -> QuestionResult:
    # As files, so that what does not fit into the window is left out whole, and named.
    answers = tuple(AttachedFile(one.title, one.asked.text) for one in answered if one.asked)
    question = ModelQuestion(
        f"The question was:\n\n{tagged('question', arguments.prompt)}",
        system=_SYNTHESIS,
        model=arguments.synthesis_model,
        files=answers,
    )
    try:
        return await ask(question, context)
    except CallError as error:
        # They were paid for.
        details = {**(error.details or {}), "answers": [one.row() for one in answered]}
        raise type(error)(
            f"The models answered (details.answers), but the synthesis failed: {error.message}",
            executed="maybe" if error.executed == "no" else error.executed,
            transient=error.transient,
            retry_after_ms=error.retry_after_ms,
            details=details,
        ) from error


def _all_failed(failed: Sequence[_Said]) -> CallError:
    """One error for all: of the kind that they have in common, if they do."""
    errors = [one.error for one in failed if one.error is not None]
    kind = type(errors[0]) if len({type(error) for error in errors}) == 1 else ProviderError
    told = "; ".join(f"{one.title}: {one.error.message}" for one in failed if one.error)
    return kind(
        f"No model answered. {told}",
        executed="no" if all(error.executed == "no" for error in errors) else "maybe",
        transient=all(error.transient for error in errors),
        retry_after_ms=max((error.retry_after_ms or 0 for error in errors), default=0) or None,
        details={"failed": [one.row() for one in failed]},
    )
