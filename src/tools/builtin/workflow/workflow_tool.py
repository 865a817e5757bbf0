"""A workflow tool at work: reads the files, holds the thread, and makes the one call at the end."""

import json
from collections.abc import Sequence
from typing import Final

from ....protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError, ProviderError
from ....protocol.tool_call import Annotations
from ....providers import AttachedFile, JsonFormat
from ...completions import AUTO, ModelQuestion, OmittedContent, QuestionResult, ask, read_files
from ...conversation import Turn
from ...tool import Answer
from ...tool_context import ToolContext
from ...tool_definition import Tool
from .expert_prompt import dossier, earlier, instructions, told
from .step_answer import concluded, consulted, go_on
from .step_arguments import StepArguments, arguments_model, report_of
from .step_engine import Conclude, Continue, decide, next_number, take
from .workflow_definition import WorkflowDefinition
from .workflow_result import result_fields, schema
from .workflow_run import WorkflowRun, kept_run, with_run

_FIELD: Final = "relevant_files"
_ANNOTATIONS: Final = Annotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)


def workflow_tool(definition: WorkflowDefinition, *, source: str = "toold") -> Tool:
    """The tool that this defines."""

    async def run_step(arguments: StepArguments, context: ToolContext) -> Answer:
        return await _run_step(definition, arguments, context)

    return Tool(
        definition.name,
        definition.description,
        arguments_model(definition),
        run_step,
        _ANNOTATIONS,
        timeout_s=definition.deadline_s,
        source=source,
    )


async def _run_step(definition: WorkflowDefinition, arguments: StepArguments, context: ToolContext) -> Answer:
    # At every step, so that a wrong model or path is told to who names it, and not at the end.
    if arguments.model:
        _can_be_held(arguments.model, context)
    files = await read_files(arguments.relevant_files, context, field=_FIELD, numbered=True)
    name = definition.name
    async with context.conversation(arguments.continuation_id) as thread:
        before = kept_run(thread.state, name)
        number = arguments.step_number or next_number(before)
        report = report_of(definition, arguments, number)
        run = take(definition, before, report)
        # What a call adds is stored where it ends well: an expert that fails leaves the steps as they were.
        thread.state = with_run(thread.state, name, run)
        history = earlier(thread.turns, name)
        thread.add(Turn("user", told(report.step), tool=name, files=tuple(file.name for file in files)))
        match decide(definition, run):
            case Continue():
                return go_on(definition, run, number, thread.id)
            case Conclude(why):
                answer = concluded(definition, run, number, thread.id, why)
                thread.add(Turn("assistant", answer.text or "", tool=name))
                return answer
        more, unread = await _earlier_files(run, arguments.relevant_files, context)
        every = tuple({file.name: file for file in (*files, *more)}.values())
        asked = await _consult(definition, run, every, history, context)
        answer = consulted(definition, run, number, thread.id, asked, unread)
        thread.add(Turn("assistant", answer.text or "", tool=name, model=asked.model.id))
        return answer


async def _earlier_files(
    run: WorkflowRun, read_already: Sequence[str], context: ToolContext
) -> tuple[list[AttachedFile], list[OmittedContent]]:
    """The files of earlier steps as they are now. One that cannot be read any more is left out, and told."""
    files: list[AttachedFile] = []
    unread: list[OmittedContent] = []
    for path in run.relevant_files:
        if path in read_already:
            continue
        try:
            files += await read_files([path], context, field=_FIELD, numbered=True)
        except (InvalidArgumentsError, NotFoundError, PermissionDeniedError) as error:
            unread.append(OmittedContent(path, error.message.removeprefix(f"{_FIELD}.0: ")))
    return files, unread


async def _consult(
    definition: WorkflowDefinition,
    run: WorkflowRun,
    files: tuple[AttachedFile, ...],
    history: tuple[Turn, ...],
    context: ToolContext,
) -> QuestionResult:
    """The one expert call.

    Raises:
        CallError: as ``ask``; ProviderError where the model has no words.
    """
    model = run.said.get("model")
    wanted = JsonFormat(schema(result_fields(definition)), name="result")
    system, held = instructions(definition), _can_be_held(model, context)
    if not held:
        system += f"\n\nAnswer with one JSON object and nothing else, by this JSON Schema:\n{json.dumps(wanted.schema)}"
    question = ModelQuestion(
        dossier(definition, run),
        system=system,
        model=model,
        files=files,
        history=history,
        response_format=wanted if held else None,
    )
    asked = await ask(question, context, stream=False)
    if not asked.completion.text.strip():
        why = "; ".join(asked.notices) or f"it ended with {asked.completion.finish_reason}"
        raise ProviderError(f"{asked.model.id} gave no answer: {why}. Send the last step again.", executed="yes")
    return asked


def _can_be_held(model: str | None, context: ToolContext) -> bool:
    """Whether the model can be held to JSON. One that cannot is told the schema in words.

    Raises:
        InvalidArgumentsError: there is no model of this name.
    """
    if model is not None and model.strip().lower() == AUTO:
        return True
    return context.daemon.catalog.resolve(model or context.daemon.default_model()).structured != "none"
