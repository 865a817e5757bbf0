"""``chat``: one question to one model, with files and images, in a conversation."""

from typing import Final

from pydantic import Field

from ...providers import Depth
from ..completions import ModelQuestion, ask_within, read_files, read_images
from ..tool import Answer, Arguments, tool
from ..tool_context import ToolContext

TIMEOUT_S: Final = 330.0
"""A long-thinking model may take 300 s for one attempt (models.toml), and waiting for the provider counts too."""

MAX_FILES: Final = 64
MAX_IMAGES: Final = 16


class ChatArguments(Arguments):
    """A question, and what goes with it."""

    prompt: str = Field(min_length=1, description="The question.")
    system: str | None = Field(default=None, description="Instructions that stand above the question.")
    model: str | None = Field(
        default=None,
        description="An id or alias (see listmodels), or auto for the cheapest that can; else the default if it can.",
    )
    files: list[str] = Field(
        default=[],
        max_length=MAX_FILES,
        description="Paths of text files below the workspace to put before the question.",
    )
    images: list[str] = Field(
        default=[],
        max_length=MAX_IMAGES,
        description="Paths below the workspace (PNG, JPEG, WebP, GIF), or https: or data:image/ URLs.",
    )
    web_search: bool = Field(default=False, description="Whether the model may search the web.")
    continuation_id: str | None = Field(
        default=None, description="From an earlier answer's structured: goes on with that conversation."
    )
    thinking: bool | Depth | None = Field(
        default=None, description="Whether to reason before answering, or how deeply, where it can be chosen."
    )
    temperature: float | None = Field(default=None, ge=0, le=1, description="0 is most predictable.")
    max_tokens: int | None = Field(default=None, ge=1, description="Bound on the answer, reasoning included.")


@tool("chat", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def chat(arguments: ChatArguments, context: ToolContext) -> Answer:
    """Ask a Kimi or GLM model, with text files and images from the workspace, or a web search, if given.

    The text of the answer is the model's own words; `structured` says which model answered and how it ended, and has
    the `continuation_id` to go on with.
    """
    question = ModelQuestion(
        arguments.prompt,
        system=arguments.system,
        model=arguments.model,
        files=await read_files(arguments.files, context),
        images=await read_images(arguments.images, context),
        thinking=arguments.thinking,
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
        web_search=arguments.web_search,
    )
    async with context.conversation(arguments.continuation_id) as conversation:
        asked = await ask_within(conversation, question, context, tool="chat")
    return Answer(asked.text, {**asked.with_text(), "continuation_id": conversation.id})
