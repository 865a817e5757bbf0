"""``glm_payload_preview``: the request body of a GLM completion, without sending it."""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from ....providers import Depth
from ...completions import ModelQuestion, depth_notice, expand_folders, prepared, read_files, read_images
from ...former_arguments import FormerNames
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from ..chat import MAX_FILES, MAX_IMAGES
from .function_definitions import FunctionDefinitions, ToolChoiceArgument, offered, searches


class GlmPayloadPreviewArguments(Arguments):
    """A prompt with the arguments of ``chat``."""

    prompt: str = Field(min_length=1, description="The prompt.")
    system: Annotated[str | None, FormerNames("system_prompt")] = Field(
        default=None, description="System instructions."
    )
    model: str | None = Field(default=None, description="A GLM model, or auto for the cheapest suitable one.")
    files: list[str] = Field(
        default=[], max_length=MAX_FILES, description="Paths of text files or folders in the workspace."
    )
    images: list[str] = Field(default=[], max_length=MAX_IMAGES, description="Paths in the workspace, or URLs.")
    tools: Annotated[FunctionDefinitions, WithJsonSchema({"type": "array"})] = Field(
        default=[], description="Functions that the model may call, as in kimi_chat_with_tools."
    )
    tool_choice: Annotated[ToolChoiceArgument, WithJsonSchema({"enum": ["auto", "none"]})] = Field(
        default=None, description="GLM supports no other."
    )
    web_search: Annotated[bool, FormerNames("use_websearch")] = Field(
        default=False, description="Let the model search the web."
    )
    thinking: bool | Depth | None = Field(default=None, description="Whether to think first, or how deeply.")
    temperature: float | None = Field(default=None, ge=0, le=1, description="0 is the most deterministic.")
    max_tokens: int | None = Field(default=None, ge=1, description="Maximum tokens of the answer.")
    stream: bool = Field(default=False, description="Preview a streaming request.")


@tool("glm_payload_preview", read_only=True, open_world=False, idempotent=True)
async def glm_payload_preview(arguments: GlmPayloadPreviewArguments, context: ToolContext) -> ToolOutput:
    """Show the JSON body of a GLM request as `structured.body`, without sending it.

    Runs the same checks as a real request, so it also shows whether a model supports the request.
    """
    expanded = await expand_folders(arguments.files, context)
    functions, tool_choice = offered(arguments.tools, arguments.tool_choice)
    question = ModelQuestion(
        arguments.prompt,
        system=arguments.system,
        model=arguments.model,
        provider="glm",
        files=await read_files(expanded.paths, context, places=expanded.places),
        images=await read_images(arguments.images, context),
        tools=functions,
        tool_choice=tool_choice,
        web_search=arguments.web_search or searches(arguments.tools),
        thinking=arguments.thinking,
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
    )
    choice, request, omitted = await prepared(question, context)
    data: dict[str, Any] = {"body": context.capabilities("glm").preview(request, stream=arguments.stream)}
    if choice.reason:
        data["model_choice_reason"] = choice.reason
    if notice := depth_notice(choice.model, arguments.thinking, request.thinking):
        data["notice"] = notice
    if omitted:
        data["omitted"] = [part.as_data() for part in omitted]
    return expanded.reported_in(ToolOutput(data=data))
