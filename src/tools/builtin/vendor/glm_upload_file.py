"""``glm_upload_file``: a file of the workspace goes to GLM."""

from typing import Literal

from pydantic import Field

from ...completions import read_bytes
from ...tool import Answer, Arguments, tool
from ...tool_context import ToolContext
from .remote_files import MAX_UPLOAD_BYTES, UPLOAD_TIMEOUT_S, line, row, send


class GlmUploadFileArguments(Arguments):
    """What to send."""

    file: str = Field(description="A path below the workspace.")
    purpose: Literal["agent", "batch", "code-interpreter", "voice-clone-input"] = Field(
        default="agent",
        description="agent, code-interpreter: documents and images; batch: .jsonl; voice-clone-input: .mp3, .wav.",
    )


@tool("glm_upload_file", read_only=False, open_world=True, timeout_s=UPLOAD_TIMEOUT_S)
async def glm_upload_file(arguments: GlmUploadFileArguments, context: ToolContext) -> Answer:
    """Send a file from the workspace to GLM, for its agents and batches, and get its file_id.

    GLM's chat does not read uploaded files: to ask about a file use smart_file_query. Sent twice, it is there twice.
    """
    file = await read_bytes(arguments.file, context, max_bytes=MAX_UPLOAD_BYTES, field="file")
    (sent,) = await send("glm", {"file": file}, arguments.purpose, context)
    return Answer(line(sent), {"provider": "glm", **row(sent)})
