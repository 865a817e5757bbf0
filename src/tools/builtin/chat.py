"""``chat``: one question to one model, with files and images, in a conversation."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field

from ...providers import Depth
from ..completions import MAX_FALLBACKS, ModelQuestion, ask_within, below, expand_folders, read_files, read_images
from ..continued_work import continued
from ..former_arguments import FormerArgument, FormerNames
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext

TIMEOUT_S: Final = 330.0
"""A thinking model may take 300 s per attempt (models.toml); waiting for the provider counts too."""

MAX_FILES: Final = 64
MAX_IMAGES: Final = 16


class ChatArguments(Arguments):
    """A prompt and its attachments."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {"stream": "chunks are sent to clients that read them"}
    former_arguments: ClassVar[Mapping[str, FormerArgument]] = {
        "kimi_thinking": FormerArgument("thinking", {"enabled": True})
    }
    former_defaults: ClassVar[Mapping[str, str]] = {
        "web_search": "the model searches the web only if this is true; an earlier server searched by default"
    }

    prompt: str = Field(min_length=1, description="The prompt.")
    system: str | None = Field(default=None, description="System instructions.")
    model: str | None = Field(
        default=None,
        description="Model id or alias (see listmodels), or auto for the cheapest suitable one.",
    )
    files: Annotated[list[str], FormerNames("absolute_file_paths", "relevant_files")] = Field(
        default=[],
        max_length=MAX_FILES,
        description="Paths of text files or folders in the workspace, inserted before the prompt.",
    )
    images: list[str] = Field(
        default=[],
        max_length=MAX_IMAGES,
        description="Paths in the workspace (PNG, JPEG, WebP, GIF), or https: or data:image/ URLs.",
    )
    working_directory: Annotated[str | None, FormerNames("working_directory_absolute_path")] = Field(
        default=None, description="Directory in the workspace where relative paths start. Default: the client's."
    )
    web_search: Annotated[bool, FormerNames("use_websearch")] = Field(
        default=False, description="Let the model search the web."
    )
    continuation_id: str | None = Field(default=None, description="Conversation to continue, from an earlier answer.")
    thinking: Annotated[bool | Depth | None, FormerNames("thinking_mode")] = Field(
        default=None, description="Whether to think before answering, or how deeply, if the model supports it."
    )
    temperature: float | None = Field(default=None, ge=0, le=1, description="0 is the most deterministic.")
    max_tokens: int | None = Field(default=None, ge=1, description="Maximum tokens of the answer, thinking included.")
    fallback: Annotated[list[str], Field(max_length=MAX_FALLBACKS)] | None = Field(
        default=None,
        description="Models to ask in this order if the first fails before its answer begins; [] for none.",
    )


@tool("chat", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def chat(arguments: ChatArguments, context: ToolContext) -> ToolOutput:
    """Ask a language model. Attach text files and images from the workspace, or let the model search the web.

    The text is the model's answer. `structured` has the model, the finish reason and a `continuation_id` for follow-up
    prompts.
    """
    expanded = await expand_folders(below(arguments.working_directory, arguments.files), context)
    question = ModelQuestion(
        arguments.prompt,
        system=arguments.system,
        model=arguments.model,
        files=await read_files(expanded.paths, context, places=expanded.places),
        images=await read_images(below(arguments.working_directory, arguments.images), context),
        thinking=arguments.thinking,
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
        web_search=arguments.web_search,
        fallback=None if arguments.fallback is None else tuple(arguments.fallback),
    )
    async with continued(arguments.continuation_id, context) as conversation:
        result = await ask_within(conversation, question, context, tool="chat")
    data = {**result.with_text(), **expanded.data(), "continuation_id": conversation.id}
    return ToolOutput(result.text, data, expanded.blocks())
