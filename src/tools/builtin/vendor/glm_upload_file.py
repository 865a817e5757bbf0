"""``glm_upload_file``: upload of a workspace file to GLM."""

from typing import Annotated, Literal

from pydantic import Field

from ...completions import read_bytes
from ...former_arguments import FormerNames
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from .remote_files import MAX_UPLOAD_BYTES, UPLOAD_TIMEOUT_S, file_line, file_row, upload_files


class GlmUploadFileArguments(Arguments):
    """A file and its purpose."""

    file: Annotated[str, FormerNames("file_path")] = Field(description="Path in the workspace.")
    purpose: Literal["agent", "batch", "code-interpreter", "voice-clone-input"] = Field(
        default="agent",
        description="agent, code-interpreter: documents and images; batch: .jsonl; voice-clone-input: .mp3, .wav.",
    )


@tool("glm_upload_file", read_only=False, open_world=True, timeout_s=UPLOAD_TIMEOUT_S)
async def glm_upload_file(arguments: GlmUploadFileArguments, context: ToolContext) -> ToolOutput:
    """Upload a workspace file to GLM, for its agents and batches, and get its file_id.

    GLM's chat does not read uploaded files; use smart_file_query to ask about a file. A repeated upload creates a
    duplicate.
    """
    file = await read_bytes(arguments.file, context, max_bytes=MAX_UPLOAD_BYTES, field="file")
    (uploaded,) = await upload_files("glm", {"file": file}, arguments.purpose, context)
    return ToolOutput(file_line(uploaded), {"provider": "glm", **file_row(uploaded)})
