"""``kimi_upload_files``: files of the workspace go to Kimi, which reads the text out of them."""

from typing import Annotated, Literal

from pydantic import Field

from ...completions import read_bytes
from ...tool import Answer, Arguments, tool
from ...tool_context import ToolContext
from ...workspace_files import BinaryFile
from .remote_files import MAX_UPLOAD_BYTES, UPLOAD_TIMEOUT_S, line, row, send


class KimiUploadFilesArguments(Arguments):
    """What to send."""

    files: Annotated[list[str], Field(min_length=1, max_length=20)] = Field(
        description="Paths below the workspace; 100 MB together at most."
    )
    purpose: Literal["file-extract", "image", "video", "batch"] = Field(
        default="file-extract", description="file-extract has Kimi read the text of documents."
    )


@tool("kimi_upload_files", read_only=False, open_world=True, timeout_s=UPLOAD_TIMEOUT_S)
async def kimi_upload_files(arguments: KimiUploadFilesArguments, context: ToolContext) -> Answer:
    """Send files from the workspace to Kimi and get their file_ids, for kimi_chat_with_files or smart_file_query.

    They stay in the key's account until kimi_manage_files deletes them. Sent twice, a file is there twice.
    """
    read: dict[str, BinaryFile] = {}
    for index, path in enumerate(arguments.files):
        left = MAX_UPLOAD_BYTES - sum(len(file.content) for file in read.values())
        field = f"files.{index}"
        read[field] = await read_bytes(path, context, max_bytes=left, field=field)
    sent = await send("kimi", read, arguments.purpose, context)
    return Answer("\n".join(map(line, sent)), {"provider": "kimi", "files": [row(file) for file in sent]})
