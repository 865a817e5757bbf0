"""``consensus`` in steps: each call asks one model; the last call also writes the synthesis."""

from typing import Any

import msgspec

from ...protocol.error_codes import ProviderError
from ...protocol.tool_call import Json
from ...providers import AttachedFile, Depth
from ..completions import ModelQuestion, QuestionResult, read_files, read_images, with_earlier_turns
from ..continued_work import check_continued, continued
from ..conversation import Conversation, Turn
from ..tool import ToolOutput
from ..tool_context import ToolContext
from .consensus_models import (
    CALLER,
    MODELS_SHARE,
    ConsensusArguments,
    Participant,
    Row,
    ask_outcome,
    require_models,
    synthesize,
)

_STATE = "consensus"


class ConsensusRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """The models of a run, in the order in which they are asked, and their answers so far."""

    question: str
    models: tuple[dict[str, Any], ...]
    rows: tuple[Row, ...] = ()
    """A row for each model that was asked: its answer or its error, with its ``title``."""
    notes: tuple[str, ...] = ()
    """The caller's own view."""
    files: tuple[str, ...] = ()
    """The paths as the caller gave them."""
    names: tuple[str, ...] = ()
    """The names by which later turns read the files again."""
    images: tuple[str, ...] = ()
    thinking: bool | Depth | None = None
    synthesis: Row | None = None

    def answers(self) -> list[Row]:
        return [_public(row) for row in self.rows if "text" in row]

    def failed(self) -> list[Row]:
        return [_public(row) for row in self.rows if "text" not in row]

    def index_of(self, step_number: int) -> int:
        """The index of the model that a step asks: the next model, or the same model if the step is repeated. After the
        last step, the number of models.
        """
        return min(step_number - 1, len(self.rows))


async def ask_next_model(arguments: ConsensusArguments, step_number: int, context: ToolContext) -> ToolOutput:
    """Asks the step's model. Step 1, or a step without a known run, begins a run with ``arguments.models``.

    A step after the last one, which earlier servers used for the synthesis, returns the synthesis again and asks no
    model.

    Raises:
        InvalidArgumentsError: the run begins without models.
        ProviderError: no model of the run answered.
        CallError: the synthesis failed.
    """
    async with continued(arguments.continuation_id, context) as conversation:
        check_continued(step_number, arguments.continuation_id, context)
        run = None if step_number == 1 else _stored(conversation.state)
        if run is None:
            require_models(arguments, context, least=1)
            models = tuple(participant.model_dump() for participant in arguments.participants)
            run = ConsensusRun(arguments.prompt, models)
        run, index = _with_call(run, arguments, step_number), run.index_of(step_number)
        if index < len(run.models):
            run = await _asked(run, index, arguments, conversation, context)
        number = min(index + 1, len(run.models))
        if number == len(run.models) and run.synthesis is None:
            synthesis = await _synthesized(run, arguments, context)
            run = msgspec.structs.replace(run, synthesis=synthesis.with_text())
            conversation.add(Turn("user", run.question, tool=_STATE, files=run.names))
            conversation.add(Turn("assistant", synthesis.text, tool=_STATE, model=synthesis.completion.model))
        state = conversation.state if isinstance(conversation.state, dict) else {}
        conversation.state = {**state, _STATE: msgspec.to_builtins(run)}
        return _answer(run, number, conversation.id)


async def _asked(
    run: ConsensusRun, index: int, arguments: ConsensusArguments, conversation: Conversation, context: ToolContext
) -> ConsensusRun:
    """The run with the answer or the error of one more model. An earlier synthesis is removed."""
    images = await read_images(arguments.images, context)
    earlier = await read_images([image for image in run.images if image not in arguments.images], context)
    files = await read_files(run.files, context)
    question = ModelQuestion(
        run.question,
        files=files,
        images=(*images, *earlier),
        thinking=run.thinking,
        cache_key=conversation.id,
    )
    question, unread = await with_earlier_turns(question, conversation.turns, context)
    share = MODELS_SHARE if index + 1 == len(run.models) else 1
    participant = Participant.model_validate(run.models[index])
    outcome = await ask_outcome(question, participant, unread, context, context.remaining() * share)
    row = {**outcome.row(), "title": outcome.title}
    rows = (*run.rows[:index], row, *run.rows[index + 1 :])
    return msgspec.structs.replace(run, rows=rows, names=tuple(file.name for file in files), synthesis=None)


async def _synthesized(run: ConsensusRun, arguments: ConsensusArguments, context: ToolContext) -> QuestionResult:
    answers, failed = run.answers(), run.failed()
    if not answers:
        reasons = "; ".join(f"{row['title']}: {row['message']}" for row in run.rows)
        raise ProviderError(
            f"No model answered. {reasons.removesuffix('.')}.", executed="maybe", details={"failed": failed}
        )
    views = [AttachedFile(row["title"], row["text"]) for row in run.rows if "text" in row]
    if run.notes:
        views.append(AttachedFile(CALLER, "\n\n".join(run.notes)))
    return await synthesize(run.question, arguments.synthesis_model, views, answers, context)


def _answer(run: ConsensusRun, number: int, continuation_id: str) -> ToolOutput:
    """The answer of the step's model, followed by the synthesis or the name of the next model."""
    is_last = number == len(run.models)
    head = {
        "status": "complete" if is_last else "in_progress",
        "step_number": number,
        "total_steps": len(run.models),
        "next_step_required": not is_last,
        "continuation_id": continuation_id,
    }
    row = run.rows[number - 1]
    said = f"{row['title']}:\n\n" + (row.get("text") or f"failed ({row['code']}): {row['message']}")
    if is_last and run.synthesis is not None:
        data = {**run.synthesis, **head, "answers": run.answers(), "failed": run.failed()}
        return ToolOutput(f"{said}\n\nSynthesis:\n\n{run.synthesis['text']}", data)
    advice = (
        f"Call consensus with step_number {number + 1} and this continuation_id: it asks {run.models[number]['model']}."
    )
    return ToolOutput(f"{said}\n\n{advice}", {**head, "answer": _public(row), "next": [advice]})


def _stored(state: Json) -> ConsensusRun | None:
    stored = state.get(_STATE) if isinstance(state, dict) else None
    return None if stored is None else msgspec.convert(stored, ConsensusRun)


def _with_call(run: ConsensusRun, arguments: ConsensusArguments, step_number: int) -> ConsensusRun:
    """The run with this call's files, settings and notes. The prompt of a later step is a note, not a question."""
    note = arguments.findings or (arguments.prompt if step_number > 1 and arguments.prompt != run.question else "")
    kept = (image for image in arguments.images if not image.startswith("data:"))
    return msgspec.structs.replace(
        run,
        files=tuple(dict.fromkeys((*run.files, *arguments.files))),
        images=tuple(dict.fromkeys((*run.images, *kept))),
        notes=(*run.notes, note) if note else run.notes,
        thinking=run.thinking if arguments.thinking is None else arguments.thinking,
    )


def _public(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "title"}
