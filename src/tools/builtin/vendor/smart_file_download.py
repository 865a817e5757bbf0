"""``smart_file_download``: the content of a file at a vendor."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from ....protocol.error_codes import ProviderError
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from .remote_files import FILES_TIMEOUT_S, extracted


class SmartFileDownloadArguments(Arguments):
    """A vendor's file, and the range of its text to return."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {
        "destination": "tools write no files; the text is in the answer, for you to write"
    }

    file_id: str = Field(min_length=1, description="File id at the vendor.")
    provider: Literal["kimi", "glm"] = Field(default="kimi", description="The vendor that stores the file.")
    offset: int = Field(default=0, ge=0, description="Number of characters to skip.")
    max_chars: int = Field(default=100_000, ge=1, le=1_000_000, description="Maximum number of characters to return.")


@tool("smart_file_download", read_only=True, open_world=True, idempotent=True, timeout_s=FILES_TIMEOUT_S)
async def smart_file_download(arguments: SmartFileDownloadArguments, context: ToolContext) -> ToolOutput:
    """Get a vendor's file as text. Kimi returns the text that it extracted from a file uploaded for file-extract; GLM
    returns a batch file. Writes nothing to disk. `next_offset` continues a long text.
    """
    text = await (extracted(arguments.file_id, context) if arguments.provider == "kimi" else _batch(arguments, context))
    part = text[arguments.offset : arguments.offset + arguments.max_chars]
    data: dict[str, Any] = {
        "file_id": arguments.file_id,
        "provider": arguments.provider,
        "offset": arguments.offset,
        "text": part,
        "chars": len(part),
        "total_chars": len(text),
    }
    if (end := arguments.offset + len(part)) < len(text):
        data["next_offset"] = end
    return ToolOutput(part, data)


async def _batch(arguments: SmartFileDownloadArguments, context: ToolContext) -> str:
    content = await context.vendor_files("glm").content(arguments.file_id)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ProviderError(f"{arguments.file_id} is not a text file.", executed="yes") from error
