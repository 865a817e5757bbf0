"""``glm_payload_preview``: the body that a question to GLM would be sent as."""

from typing import Any

from pydantic import Field

from ....providers import Depth
from ...completions import ModelQuestion, another_depth, prepared, read_files, read_images
from ...tool import Answer, Arguments, tool
from ...tool_context import ToolContext
from ..chat import MAX_FILES, MAX_IMAGES
from .function_definitions import FunctionDefinitions


class GlmPayloadPreviewArguments(Arguments):
    """A question, as ``chat`` takes it."""

    prompt: str = Field(min_length=1, description="The question.")
    system: str | None = Field(default=None, description="Instructions that stand above the question.")
    model: str | None = Field(default=None, description="A GLM model, or auto for the cheapest; else the default one.")
    files: list[str] = Field(default=[], max_length=MAX_FILES, description="Paths of text files below the workspace.")
    images: list[str] = Field(default=[], max_length=MAX_IMAGES, description="Paths below the workspace, or URLs.")
    tools: FunctionDefinitions = Field(default=[], description="Functions that the model may ask for.")
    web_search: bool = Field(default=False, description="Whether the model may search the web.")
    thinking: bool | Depth | None = Field(default=None, description="Whether to reason first, or how deeply.")
    temperature: float | None = Field(default=None, ge=0, le=1, description="0 is most predictable.")
    max_tokens: int | None = Field(default=None, ge=1, description="Bound on the answer.")
    stream: bool = Field(default=False, description="Whether the answer would be streamed.")


@tool("glm_payload_preview", read_only=True, open_world=False, idempotent=True)
async def glm_payload_preview(arguments: GlmPayloadPreviewArguments, context: ToolContext) -> Answer:
    """Show the JSON body that GLM would be sent for a question, and send nothing: `structured.body` is the body itself.

    It is checked as it would be before sending, so this also tells whether a model can do what is asked.
    """
    question = ModelQuestion(
        arguments.prompt,
        system=arguments.system,
        model=arguments.model,
        provider="glm",
        files=await read_files(arguments.files, context),
        images=await read_images(arguments.images, context),
        tools=tuple(definition.tool for definition in arguments.tools),
        web_search=arguments.web_search,
        thinking=arguments.thinking,
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
    )
    choice, request, left_out = await prepared(question, context)
    data: dict[str, Any] = {"body": context.abilities("glm").preview(request, stream=arguments.stream)}
    if choice.because:
        data["chosen_because"] = choice.because
    if notice := another_depth(choice.model, arguments.thinking, request.thinking):
        data["notice"] = notice
    if left_out:
        data["left_out"] = [{"what": part.what, "why": part.why} for part in left_out]
    return Answer(data=data)
