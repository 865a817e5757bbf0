"""Files at a vendor: sent there, told of, and read back."""

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from ....protocol.error_codes import CallError, InvalidArgumentsError, ServiceUnavailableError
from ....providers import ProviderName, RemoteFile, VendorFiles, extracted_text
from ...completions import errors_of
from ...tool_context import ToolContext
from ...workspace_files import BinaryFile
from .file_kinds import useless

MAX_UPLOAD_BYTES: Final = 100 * 1024 * 1024
"""Of all files of one call, since they are read before the first is sent; either vendor takes no larger one."""
UPLOAD_TIMEOUT_S: Final = 300.0
"""100 MB take as long over a line of 3 Mbit/s."""
FILES_TIMEOUT_S: Final = 60.0
"""For lists, deletions and downloads."""


def files_of(provider: ProviderName, context: ToolContext) -> VendorFiles:
    """The vendor's files.

    Raises:
        ServiceUnavailableError: it is not configured, or keeps none.
    """
    files = context.abilities(provider).files
    if files is None:
        raise ServiceUnavailableError(f"The provider {provider} keeps no files.", transient=False)
    return files


async def send(
    provider: ProviderName, files: Mapping[str, BinaryFile], purpose: str, context: ToolContext
) -> list[RemoteFile]:
    """Send files, by the fields that named them, one after the other. None is sent where one is not taken.

    Raises:
        InvalidArgumentsError: the vendor does not take one of them for this purpose, or can do nothing with it.
        CallError: what the vendor said; ``details.uploaded`` has those that were sent before.
    """
    there = files_of(provider, context)
    for field, file in files.items():
        with errors_of(field):
            there.check(file.name, len(file.content), purpose)
            require_of_use(file, purpose)
    sent: list[RemoteFile] = []
    for number, file in enumerate(files.values()):
        context.progress(f"sending {file.name}", number, len(files))
        try:
            sent.append(await context.vendor(provider, partial(there.upload, file.name, file.content, purpose)))
        except CallError as error:
            if not sent:
                raise
            raise _after(error, sent) from error
    return sent


def require_of_use(file: BinaryFile, purpose: str) -> None:
    """Refuse what no vendor can do anything with.

    Raises:
        InvalidArgumentsError: says what it is, and what the purpose takes.
    """
    if why := useless(file.name, file.content, purpose):
        raise InvalidArgumentsError(f"{why}.")


async def extracted(file_id: str, context: ToolContext) -> str:
    """The text that Kimi read from a file which was uploaded for ``file-extract``.

    Raises:
        CallError: what the vendor said.
    """
    return extracted_text(await context.vendor("kimi", partial(files_of("kimi", context).content, file_id)))


def row(file: RemoteFile) -> dict[str, Any]:
    """A file as answers tell of it; what the vendor does not say is left out."""
    made = dt.datetime.fromtimestamp(file.created_at, dt.UTC).isoformat() if file.created_at else ""
    told: dict[str, Any] = {
        "file_id": file.id,
        "name": file.name,
        "bytes": file.bytes,
        "purpose": file.purpose,
        "created_at": made,
        "status": file.status,
        "status_details": file.status_details,
    }
    return {key: value for key, value in told.items() if value != ""}


def line(file: RemoteFile) -> str:
    """The same for people."""
    facts = [file.id, file.name, f"{file.bytes:,} bytes", file.purpose, file.status, file.status_details]
    return "; ".join(filter(None, facts))


def _after(error: CallError, sent: Sequence[RemoteFile]) -> CallError:
    """The failure of a file that came after others: those are there, and must not be sent again unawares."""
    ids = ", ".join(f"{file.name} as {file.id}" for file in sent)
    return type(error)(
        f"{error.message} Uploaded before that: {ids}.",
        executed="yes",
        transient=error.transient,
        retry_after_ms=error.retry_after_ms,
        details={**(error.details or {}), "uploaded": [row(file) for file in sent]},
    )
