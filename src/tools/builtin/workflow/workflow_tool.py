"""Runs a workflow tool: reads the files, updates the conversation, and makes the expert call in the last step."""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from ....protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError, ProviderError
from ....protocol.tool_call import Annotations
from ....providers import AttachedFile, JsonFormat
from ...completions import (
    AUTO,
    ModelQuestion,
    OmittedContent,
    QuestionResult,
    ask,
    expand_folders,
    read_files,
    read_images,
    with_earlier_turns,
)
from ...continued_work import check_continued, continued
from ...conversation import Turn
from ...tool import ToolOutput
from ...tool_context import ToolContext
from ...tool_definition import Tool
from ..chat import MAX_IMAGES
from .expert_prompt import earlier_turns, expert_instructions, expert_prompt, step_text
from .step_answer import concluded_answer, expert_answer, in_progress_answer
from .step_arguments import DATA_URL, StepArguments, arguments_model, report_of
from .step_engine import AskUser, Conclude, Continue, add_step, next_action, next_number
from .step_guidance import argument_value
from .workflow_definition import WorkflowDefinition
from .workflow_result import result_fields, result_schema
from .workflow_run import WorkflowRun, stored_run, with_run

_FIELD: Final = "relevant_files"
_UNREADABLE: Final = (InvalidArgumentsError, NotFoundError, PermissionDeniedError)
_ANNOTATIONS: Final = Annotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)


def workflow_tool(definition: WorkflowDefinition, *, source: str = "toold") -> Tool:
    """Returns the tool for a definition."""

    async def run_step(arguments: StepArguments, context: ToolContext) -> ToolOutput:
        expanded = await expand_folders(arguments.relevant_files, context, field=_FIELD)
        if not expanded.folders:
            return await _run_step(definition, arguments, context)
        arguments = arguments.model_copy(update={_FIELD: list(expanded.paths)})
        return expanded.reported_in(await _run_step(definition, arguments, context))

    return Tool(
        definition.name,
        definition.description,
        arguments_model(definition),
        run_step,
        _ANNOTATIONS,
        timeout_s=definition.deadline_s,
        source=source,
        prompt=True,
    )


async def _run_step(definition: WorkflowDefinition, arguments: StepArguments, context: ToolContext) -> ToolOutput:
    # Checked in every step, so that a wrong model or path is reported in the step that names it.
    if arguments.model:
        _supports_json(arguments.model, context)
    files = await read_files(arguments.relevant_files, context, field=_FIELD, numbered=True)
    read = dict(zip(arguments.relevant_files, files, strict=True))
    for argument in definition.file_arguments:
        paths = getattr(arguments, argument)
        read |= zip(paths, await read_files(paths, context, field=argument, numbered=True), strict=True)
    images = dict(zip(arguments.images, await read_images(arguments.images, context), strict=True))
    name = definition.name
    async with continued(arguments.continuation_id, context) as conversation:
        previous = stored_run(conversation.state, name)
        number = arguments.step_number or next_number(previous)
        check_continued(number, arguments.continuation_id, context)
        report = report_of(definition, arguments, number)
        run = add_step(definition, previous, report)
        # The conversation is stored only if the call succeeds: a failed expert call leaves the steps unchanged.
        conversation.state = with_run(conversation.state, name, run)
        history = earlier_turns(conversation.turns, name)
        conversation.add(Turn("user", step_text(report.step), tool=name, files=tuple(file.name for file in files)))
        match next_action(definition, run):
            case Continue():
                return in_progress_answer(definition, run, number, conversation.id, omitted=_not_kept(arguments))
            case AskUser() as question:
                omitted = _not_kept(arguments)
                return in_progress_answer(definition, run, number, conversation.id, question, omitted)
            case Conclude(reason):
                answer = concluded_answer(definition, run, number, conversation.id, reason)
                conversation.add(Turn("assistant", answer.text or "", tool=name))
                return answer
        attached, unreadable = await _attached(definition, run, read, images, context)
        expert = _question(definition, run, attached, context)
        expert, unread = await with_earlier_turns(expert, history, context, numbered=True)
        reply = await _consult(expert, context)
        answer = expert_answer(definition, run, number, conversation.id, reply, (*unreadable, *unread))
        conversation.add(Turn("assistant", answer.text or "", tool=name, model=reply.model.id))
        return answer


class _Attached(NamedTuple):
    files: tuple[AttachedFile, ...]
    images: tuple[str, ...]


async def _attached(
    definition: WorkflowDefinition,
    run: WorkflowRun,
    read: Mapping[str, AttachedFile],
    read_images_of_call: Mapping[str, str],
    context: ToolContext,
) -> tuple[_Attached, list[OmittedContent]]:
    """The files and images of all steps. Files of the last call are already read; the others are read in their current
    version.

    Unreadable files, and images beyond ``MAX_IMAGES``, are reported as omitted.
    """
    files: dict[str, AttachedFile] = {}
    unreadable: list[OmittedContent] = []
    own = (path for name in definition.file_arguments for path in _paths(definition, run, name))
    for path in dict.fromkeys((*run.relevant_files, *own)):
        try:
            file = read.get(path) or (await read_files([path], context, field=_FIELD, numbered=True))[0]
            files.setdefault(file.name, file)
        except _UNREADABLE as error:
            unreadable.append(OmittedContent(path, error.message.removeprefix(f"{_FIELD}.0: ")))
    images = dict(read_images_of_call)
    for image in run.images:
        if image in images:
            continue
        if len(images) == MAX_IMAGES:
            unreadable.append(OmittedContent(image, f"the expert gets {MAX_IMAGES} images at most"))
            continue
        try:
            images |= {image: (await read_images([image], context))[0]}
        except _UNREADABLE as error:
            unreadable.append(OmittedContent(image, error.message.removeprefix("images.0: ")))
    return _Attached(tuple(files.values()), tuple(images.values())), unreadable


def _paths(definition: WorkflowDefinition, run: WorkflowRun, argument: str) -> list[str]:
    paths = argument_value(definition, run, argument)
    return paths if isinstance(paths, list) else []


def _not_kept(arguments: StepArguments) -> list[OmittedContent]:
    """The images of a step before the last that later steps will not have."""
    reason = "a data: URL is not stored; send it in the last step, or send a path or an https: URL"
    return [
        OmittedContent(f"images.{index}", reason)
        for index, image in enumerate(arguments.images)
        if image.startswith(DATA_URL)
    ]


def _question(
    definition: WorkflowDefinition, run: WorkflowRun, attached: _Attached, context: ToolContext
) -> ModelQuestion:
    """The question of the expert call."""
    model = run.values.get("model")
    json_format = JsonFormat(result_schema(result_fields(definition)), name="result")
    system, enforced = expert_instructions(definition), _supports_json(model, context)
    if not enforced:
        schema = json.dumps(json_format.schema)
        system += f"\n\nAnswer with one JSON object that fits this JSON Schema, and nothing else:\n{schema}"
    return ModelQuestion(
        expert_prompt(definition, run),
        system=system,
        model=model,
        files=attached.files,
        images=attached.images,
        thinking=run.values.get("thinking"),
        temperature=run.values.get("temperature"),
        web_search=bool(run.values.get("web_search")),
        response_format=json_format if enforced else None,
    )


async def _consult(question: ModelQuestion, context: ToolContext) -> QuestionResult:
    """Makes the expert call.

    Raises:
        CallError: as raised by ``ask``; ProviderError if the model returns no text.
    """
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
