"""``kimi_manage_files``: the files in the Kimi account."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from ....protocol.error_codes import CallError
from ....providers import RemoteFile
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from ...vendor_file_access import VendorFileAccess
from .remote_files import FILES_TIMEOUT_S, file_line, file_row


class KimiManageFilesArguments(Arguments):
    """An operation and its files."""

    operation: Literal["list", "info", "delete", "cleanup_expired"] = Field(
        description="cleanup_expired deletes files older than older_than_days."
    )
    file_id: str | None = Field(default=None, min_length=1, description="For info and delete.")
    purpose: Literal["file-extract", "image", "video", "batch"] | None = Field(
        default=None, description="For list and cleanup_expired: only files of this purpose."
    )
    limit: int = Field(default=100, ge=1, le=1000, description="For list and cleanup_expired: maximum number of files.")
    older_than_days: float = Field(
        default=30, ge=0, le=36500, description="For cleanup_expired: minimum age of deleted files."
    )
    dry_run: bool = Field(default=True, description="For cleanup_expired: list the files without deleting them.")

    @model_validator(mode="after")
    def _file_id_matches_operation(self) -> "KimiManageFilesArguments":
        if self.operation in {"info", "delete"} and self.file_id is None:
            raise ValueError(f"file_id is missing; {self.operation} needs it; get it from list")
        if self.operation in {"list", "cleanup_expired"} and self.file_id is not None:
            raise ValueError(f"{self.operation} takes no file_id; omit it, or use info or delete")
        return self


@tool(
    "kimi_manage_files",
    read_only=False,
    open_world=True,
    idempotent=True,
    destructive=True,
    timeout_s=FILES_TIMEOUT_S,
)
async def kimi_manage_files(arguments: KimiManageFilesArguments, context: ToolContext) -> ToolOutput:
    """List, inspect or delete the files that you uploaded to Kimi, or delete old ones.

    An operator's token has all files of the API key, whatever uploaded them. cleanup_expired deletes only if dry_run
    is false.
    """
    files = context.vendor_files("kimi")
    match arguments.operation:
        case "info":
            file = await files.info(arguments.file_id or "")
            return ToolOutput(file_line(file), file_row(file))
        case "delete":
            await files.delete(arguments.file_id or "")
            return ToolOutput(f"Deleted {arguments.file_id}.", {"file_id": arguments.file_id, "deleted": True})
    listed = await files.list(purpose=arguments.purpose)
    if arguments.operation == "list":
        return _listing(listed, arguments.limit)
    old = expired(listed, dt.datetime.now(dt.UTC).timestamp(), arguments.older_than_days)
    return await _clean_up(files, old[: arguments.limit], len(old), context, dry_run=arguments.dry_run)


def expired(files: Sequence[RemoteFile], now: float, days: float) -> list[RemoteFile]:
    """Returns the files older than ``days`` at ``now`` (Unix seconds), oldest first. Skips files without a date."""
    old = [file for file in files if file.created_at and file.created_at <= now - days * 86_400]
    return sorted(old, key=lambda file: file.created_at)


def _listing(files: Sequence[RemoteFile], limit: int) -> ToolOutput:
    shown = files[:limit]
    text = "\n".join(map(file_line, shown)) or "There are no files."
    if len(files) > len(shown):
        text += f"\n{len(files) - len(shown):,} more; raise limit to see them."
    return ToolOutput(text, {"total": len(files), "files": [file_row(file) for file in shown]})


async def _clean_up(
    files: VendorFileAccess, old: Sequence[RemoteFile], matching: int, context: ToolContext, *, dry_run: bool
) -> ToolOutput:
    """Deletes the ``old`` files and reports failures. Raises the first error if no file can be deleted."""
    data: dict[str, Any] = {"dry_run": dry_run, "expired": matching, "files": [file_row(file) for file in old]}
    if dry_run or not old:
        text = "\n".join(map(file_line, old)) or "No file is that old."
        return ToolOutput(f"With dry_run false this deletes:\n{text}" if old else text, data)
    failed: list[tuple[RemoteFile, CallError]] = []
    for number, file in enumerate(old):
        context.progress(f"deleting {file.name}", number, len(old))
        try:
            await files.delete(file.id)
        except CallError as error:
            failed.append((file, error))
    if len(failed) == len(old):
        raise failed[0][1]
    data["deleted"] = len(old) - len(failed)
    data["failed"] = [{"file_id": file.id, "code": error.code, "message": error.message} for file, error in failed]
    lines = [f"Deleted {data['deleted']} of {matching} old files."]
    lines += [f"{file.id} was not deleted: {error.message}" for file, error in failed]
    return ToolOutput("\n".join(lines), data)
