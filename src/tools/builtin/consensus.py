"""``consensus``: one question to several models in parallel, then one synthesis of their answers."""

import asyncio
from collections.abc import Sequence
from typing import Final

from ...providers import AttachedFile
from ..completions import ModelQuestion, OmittedContent, expand_folders, read_files, read_images, with_earlier_turns
from ..continued_work import continued
from ..conversation import Turn
from ..tool import ToolOutput, tool
from ..tool_context import ToolContext
from .consensus_models import (
    CALLER,
    MODELS_SHARE,
    ConsensusArguments,
    Outcome,
    Participant,
    ask_outcome,
    combined_error,
    require_models,
    synthesize,
)
from .consensus_steps import ask_next_model

TIMEOUT_S: Final = 660.0
"""Two answers in sequence, each from a model that may take 300 s."""


@tool("consensus", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def consensus(arguments: ConsensusArguments, context: ToolContext) -> ToolOutput:
    """Ask several models the same question in parallel, optionally with a stance for or against, then synthesize.

    The text is the synthesis. `structured` has all `answers` and the models that `failed`; the call succeeds if at
    least one model answers. Makes one completion per model, plus one. With step_number, each call asks only one model.
    """
    expanded = await expand_folders(arguments.files, context)
    if expanded.folders:
        arguments = arguments.model_copy(update={"files": list(expanded.paths)})
    if arguments.step_number is None:
        return expanded.reported_in(await _ask_at_once(arguments, context))
    return expanded.reported_in(await ask_next_model(arguments, arguments.step_number, context))


async def _ask_at_once(arguments: ConsensusArguments, context: ToolContext) -> ToolOutput:
    """Asks all models in this call."""
    require_models(arguments, context, least=2)
    files = await read_files(arguments.files, context)
    images = await read_images(arguments.images, context)
    async with continued(arguments.continuation_id, context) as conversation:
        question = ModelQuestion(
            arguments.prompt,
            files=files,
            images=images,
            thinking=arguments.thinking,
            cache_key=conversation.id,
        )
        question, unread = await with_earlier_turns(question, conversation.turns, context)
        outcomes = await _ask_all(question, arguments.participants, unread, context)
        answered = [outcome for outcome in outcomes if outcome.result is not None]
        failed = [outcome for outcome in outcomes if outcome.error is not None]
        if not answered:
            raise combined_error(failed)
        rows = [outcome.row() for outcome in answered]
        views = [AttachedFile(outcome.title, outcome.result.text) for outcome in answered if outcome.result]
        if arguments.findings:
            views.append(AttachedFile(CALLER, arguments.findings))
        synthesis = await synthesize(arguments.prompt, arguments.synthesis_model, views, rows, context)
        names = tuple(file.name for file in files)
        conversation.add(Turn("user", arguments.prompt, tool="consensus", files=names))
        conversation.add(Turn("assistant", synthesis.text, tool="consensus", model=synthesis.completion.model))
    data = {
        **synthesis.with_text(),
        "answers": rows,
        "failed": [outcome.row() for outcome in failed],
        "continuation_id": conversation.id,
    }
    return ToolOutput(synthesis.text, data)


async def _ask_all(
    question: ModelQuestion,
    participants: Sequence[Participant],
    unread: Sequence[OmittedContent],
    context: ToolContext,
) -> list[Outcome]:
    """Asks all models at once. Returns the outcomes in the order of ``participants``."""
    time_s = context.remaining() * MODELS_SHARE
    ended = 0

    async def ask_one(participant: Participant) -> Outcome:
        nonlocal ended
        outcome = await ask_outcome(question, participant, unread, context, time_s)
        ended += 1
        state = "answered" if outcome.result else f"failed ({outcome.error.code.value})" if outcome.error else ""
        context.progress(f"{outcome.title} {state}", ended, len(participants) + 1)
        return outcome

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask_one(participant)) for participant in participants]
    return [task.result() for task in tasks]
