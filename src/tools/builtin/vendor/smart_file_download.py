"""``smart_file_download``: the content of a file that lies at a vendor."""

from functools import partial
from typing import Any

from pydantic import Field

from ....protocol.error_codes import ProviderError
from ....providers import ProviderName
from ...tool import Answer, Arguments, tool
from ...tool_context import ToolContext
from .remote_files import FILES_TIMEOUT_S, extracted, files_of


class SmartFileDownloadArguments(Arguments):
    """Which file, and how much of it."""

    file_id: str = Field(min_length=1, description="The file's id at the vendor.")
    provider: ProviderName = Field(default="kimi", description="Where it lies.")
    offset: int = Field(default=0, ge=0, description="Characters to leave out at its beginning.")
    max_chars: int = Field(default=100_000, ge=1, le=1_000_000, description="This many characters at most.")


@tool("smart_file_download", read_only=True, open_world=True, idempotent=True, timeout_s=FILES_TIMEOUT_S)
async def smart_file_download(arguments: SmartFileDownloadArguments, context: ToolContext) -> Answer:
    """Get a file back from a vendor as text: from Kimi the text that it read from a file-extract upload, from GLM a
    batch file. It comes in the answer alone, nothing is written; `next_offset` goes on where it is long.
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
    return Answer(part, data)


async def _batch(arguments: SmartFileDownloadArguments, context: ToolContext) -> str:
    content = await context.vendor("glm", partial(files_of("glm", context).content, arguments.file_id))
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ProviderError(f"{arguments.file_id} is no text, so it cannot be shown.", executed="yes") from error
