"""Runs a workflow tool: reads the files, updates the conversation, and makes the expert call in the last step."""

import json
from collections.abc import Sequence
from typing import Final

from ....protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError, ProviderError
from ....protocol.tool_call import Annotations
from ....providers import AttachedFile, JsonFormat
from ...completions import AUTO, ModelQuestion, OmittedContent, QuestionResult, ask, read_files
from ...conversation import Turn
from ...tool import ToolOutput
from ...tool_context import ToolContext
from ...tool_definition import Tool
from .expert_prompt import earlier_turns, expert_instructions, expert_prompt, step_text
from .step_answer import concluded_answer, expert_answer, in_progress_answer
from .step_arguments import StepArguments, arguments_model, report_of
from .step_engine import Conclude, Continue, add_step, next_action, next_number
from .workflow_definition import WorkflowDefinition
from .workflow_result import result_fields, result_schema
from .workflow_run import WorkflowRun, stored_run, with_run

_FIELD: Final = "relevant_files"
_ANNOTATIONS: Final = Annotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)


def workflow_tool(definition: WorkflowDefinition, *, source: str = "toold") -> Tool:
    """Returns the tool for a definition."""

    async def run_step(arguments: StepArguments, context: ToolContext) -> ToolOutput:
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


async def _run_step(definition: WorkflowDefinition, arguments: StepArguments, context: ToolContext) -> ToolOutput:
    # Checked in every step, so that a wrong model or path is reported in the step that names it.
    if arguments.model:
        _supports_json(arguments.model, context)
    files = await read_files(arguments.relevant_files, context, field=_FIELD, numbered=True)
    name = definition.name
    async with context.conversation(arguments.continuation_id) as conversation:
        previous = stored_run(conversation.state, name)
        number = arguments.step_number or next_number(previous)
        report = report_of(definition, arguments, number)
        run = add_step(definition, previous, report)
        # The conversation is stored only if the call succeeds: a failed expert call leaves the steps unchanged.
        conversation.state = with_run(conversation.state, name, run)
        history = earlier_turns(conversation.turns, name)
        conversation.add(Turn("user", step_text(report.step), tool=name, files=tuple(file.name for file in files)))
        match next_action(definition, run):
            case Continue():
                return in_progress_answer(definition, run, number, conversation.id)
            case Conclude(reason):
                answer = concluded_answer(definition, run, number, conversation.id, reason)
                conversation.add(Turn("assistant", answer.text or "", tool=name))
                return answer
        earlier_files, unreadable = await _earlier_files(run, arguments.relevant_files, context)
        all_files = tuple({file.name: file for file in (*files, *earlier_files)}.values())
        reply = await _consult(definition, run, all_files, history, context)
        answer = expert_answer(definition, run, number, conversation.id, reply, unreadable)
        conversation.add(Turn("assistant", answer.text or "", tool=name, model=reply.model.id))
        return answer


async def _earlier_files(
    run: WorkflowRun, already_read: Sequence[str], context: ToolContext
) -> tuple[list[AttachedFile], list[OmittedContent]]:
    """Reads the files of earlier steps in their current version. Files that cannot be read are reported as omitted."""
    files: list[AttachedFile] = []
    unreadable: list[OmittedContent] = []
    for path in run.relevant_files:
        if path in already_read:
            continue
        try:
            files += await read_files([path], context, field=_FIELD, numbered=True)
        except (InvalidArgumentsError, NotFoundError, PermissionDeniedError) as error:
            unreadable.append(OmittedContent(path, error.message.removeprefix(f"{_FIELD}.0: ")))
    return files, unreadable


async def _consult(
    definition: WorkflowDefinition,
    run: WorkflowRun,
    files: tuple[AttachedFile, ...],
    history: tuple[Turn, ...],
    context: ToolContext,
) -> QuestionResult:
    """Makes the expert call.

    Raises:
        CallError: as raised by ``ask``; ProviderError if the model returns no text.
    """
    model = run.values.get("model")
    json_format = JsonFormat(result_schema(result_fields(definition)), name="result")
    system, enforced = expert_instructions(definition), _supports_json(model, context)
    if not enforced:
        schema = json.dumps(json_format.schema)
        system += f"\n\nAnswer with one JSON object that fits this JSON Schema, and nothing else:\n{schema}"
    question = ModelQuestion(
        expert_prompt(definition, run),
        system=system,
        model=model,
        files=files,
        history=history,
        response_format=json_format if enforced else None,
    )
    reply = await ask(question, context, stream=False)
    if not reply.completion.text.strip():
        reason = "; ".join(reply.notices) or f"finish reason {reply.completion.finish_reason}"
        raise ProviderError(f"{reply.model.id} returned no text: {reason}. Send the last step again.", executed="yes")
    return reply


def _supports_json(model: str | None, context: ToolContext) -> bool:
    """Whether the vendor can enforce JSON output for the model. Otherwise the instructions contain the schema.

    Raises:
        InvalidArgumentsError: the model is unknown.
    """
    name = model or context.daemon.default_model()
    if name.strip().lower() == AUTO:
        return True
    return context.daemon.catalog.resolve(name).structured != "none"
