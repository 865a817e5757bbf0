"""``kimi_upload_files``: upload of workspace files to Kimi, which extracts their text."""

from typing import Annotated, Literal

from pydantic import Field

from ...completions import read_bytes
from ...former_arguments import FormerNames, FormerValues
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from ...workspace_files import BinaryFile
from .remote_files import MAX_UPLOAD_BYTES, UPLOAD_TIMEOUT_S, file_line, file_row, upload_files

Purpose = Literal["file-extract", "image", "video", "batch"]


class KimiUploadFilesArguments(Arguments):
    """Files and their purpose."""

    files: Annotated[list[str], Field(min_length=1, max_length=20), FormerNames("file_paths")] = Field(
        description="Paths in the workspace, at most 100 MB in total."
    )
    purpose: Annotated[Purpose, FormerValues(lambda value: "file-extract" if value == "assistants" else value)] = Field(
        default="file-extract", description="file-extract extracts the text of documents."
    )


@tool("kimi_upload_files", read_only=False, open_world=True, timeout_s=UPLOAD_TIMEOUT_S)
async def kimi_upload_files(arguments: KimiUploadFilesArguments, context: ToolContext) -> ToolOutput:
    """Upload workspace files to Kimi and get their file_ids, for kimi_chat_with_files or smart_file_query.

    Files stay in the account until kimi_manage_files deletes them. A repeated upload creates a duplicate.
    """
    files: dict[str, BinaryFile] = {}
    for index, path in enumerate(arguments.files):
        remaining = MAX_UPLOAD_BYTES - sum(len(file.content) for file in files.values())
        field = f"files.{index}"
        files[field] = await read_bytes(path, context, max_bytes=remaining, field=field)
    uploaded = await upload_files("kimi", files, arguments.purpose, context)
    return ToolOutput(
        "\n".join(map(file_line, uploaded)), {"provider": "kimi", "files": [file_row(file) for file in uploaded]}
    )
