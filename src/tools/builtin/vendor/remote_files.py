"""Files at a vendor: upload, extraction, and their form in answers."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ....protocol.error_codes import CallError, InvalidArgumentsError
from ....providers import RemoteFile, extracted_text
from ...completions import errors_of
from ...tool_context import ToolContext
from ...workspace_files import BinaryFile
from .file_kinds import unsupported_reason

MAX_UPLOAD_BYTES: Final = 100 * 1024 * 1024
"""The limit per call, because all files are read before the first upload. It is also the vendors' limit per file."""
UPLOAD_TIMEOUT_S: Final = 300.0
"""The timeout of an upload: the time for 100 MB at 3 Mbit/s."""
FILES_TIMEOUT_S: Final = 60.0
"""The timeout of lists, deletions and downloads."""


async def upload_files(
    provider: str, files: Mapping[str, BinaryFile], purpose: str, context: ToolContext
) -> list[RemoteFile]:
    """Uploads files in sequence. ``files`` maps argument fields to files. Checks all files before the first upload.

    Raises:
        InvalidArgumentsError: the vendor does not accept one of the files for this purpose.
        CallError: the vendor failed; ``details.uploaded`` lists the files that were uploaded before.
    """
    vendor_files = context.vendor_files(provider)
    for field, file in files.items():
        with errors_of(field):
            vendor_files.check(file.name, len(file.content), purpose)
            require_supported_kind(file, purpose)
    uploaded: list[RemoteFile] = []
    for number, file in enumerate(files.values()):
        context.progress(f"uploading {file.name}", number, len(files))
        try:
            uploaded.append(await vendor_files.upload(file.name, file.content, purpose))
        except CallError as error:
            if not uploaded:
                raise
            raise _with_uploaded(error, uploaded) from error
    return uploaded


def require_supported_kind(file: BinaryFile, purpose: str) -> None:
    """Checks that a vendor can use a file of this kind.

    Raises:
        InvalidArgumentsError: the vendor cannot; the message names the file's kind and the accepted kinds.
    """
    if reason := unsupported_reason(file.name, file.content, purpose):
        raise InvalidArgumentsError(f"{reason}.")


async def extracted(file_id: str, context: ToolContext) -> str:
    """Returns the text that Kimi extracted from a file uploaded for ``file-extract``.

    Raises:
        CallError: the vendor failed.
    """
    return extracted_text(await context.vendor_files("kimi").content(file_id))


def file_row(file: RemoteFile) -> dict[str, Any]:
    """Returns a file as data, without fields that the vendor does not report."""
    created_at = dt.datetime.fromtimestamp(file.created_at, dt.UTC).isoformat() if file.created_at else ""
    fields: dict[str, Any] = {
        "file_id": file.id,
        "name": file.name,
        "bytes": file.bytes,
        "purpose": file.purpose,
        "created_at": created_at,
        "status": file.status,
        "status_details": file.status_details,
    }
    return {key: value for key, value in fields.items() if value != ""}


def file_line(file: RemoteFile) -> str:
    """Returns a file as one line of text."""
    facts = [file.id, file.name, f"{file.bytes:,} bytes", file.purpose, file.status, file.status_details]
    return "; ".join(filter(None, facts))


def _with_uploaded(error: CallError, uploaded: Sequence[RemoteFile]) -> CallError:
    """Adds the files uploaded before the failure, so that a retry does not duplicate them."""
    ids = ", ".join(f"{file.name} as {file.id}" for file in uploaded)
    return type(error)(
        f"{error.message} Already uploaded: {ids}.",
        executed="yes",
        transient=error.transient,
        retry_after_ms=error.retry_after_ms,
        details={**(error.details or {}), "uploaded": [file_row(file) for file in uploaded]},
    )
