"""``kimi_chat_with_files``: a question about files uploaded to Kimi."""

from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from ....providers import AttachedFile, Depth
from ...completions import ModelQuestion, ask_within, prepared
from ...continued_work import continued
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from ..chat import TIMEOUT_S
from .remote_files import extracted

MAX_FILES: Final = 32


class KimiChatWithFilesArguments(Arguments):
    """A prompt and the ids of files."""

    prompt: str = Field(min_length=1, description="The prompt.")
    file_ids: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=MAX_FILES)] = Field(
        description="Ids from kimi_upload_files with purpose file-extract, most important first."
    )
    system: str | None = Field(default=None, description="System instructions.")
    model: str | None = Field(default=None, description="A Kimi model, or auto for the cheapest suitable one.")
    continuation_id: str | None = Field(default=None, description="Conversation to continue.")
    thinking: bool | Depth | None = Field(default=None, description="Whether to think first, or how deeply.")
    temperature: float | None = Field(default=None, ge=0, le=1, description="0 is the most deterministic.")
    max_tokens: int | None = Field(default=None, ge=1, description="Maximum tokens of the answer, thinking included.")


@tool("kimi_chat_with_files", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def kimi_chat_with_files(arguments: KimiChatWithFilesArguments, context: ToolContext) -> ToolOutput:
    """Ask a Kimi model about files uploaded with kimi_upload_files.

    Fetches the text that Kimi extracted, one request per file, and makes one completion.
    """
    question = ModelQuestion(
        arguments.prompt,
        system=arguments.system,
        model=arguments.model,
        provider="kimi",
        thinking=arguments.thinking,
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
    )
    await prepared(question, context)  # reports errors before any file is fetched
    file_ids = list(dict.fromkeys(arguments.file_ids))
    async with continued(arguments.continuation_id, context) as conversation:
        files = []
        for number, file_id in enumerate(file_ids):
            context.progress(f"fetching {file_id}", number, len(file_ids))
            files.append(AttachedFile(file_id, await extracted(file_id, context)))
        question = replace(question, files=tuple(files))
        result = await ask_within(conversation, question, context, tool="kimi_chat_with_files")
    return ToolOutput(result.text, {**result.with_text(), "file_ids": file_ids, "continuation_id": conversation.id})
