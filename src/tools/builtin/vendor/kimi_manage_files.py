"""``kimi_manage_files``: what lies in the account at Kimi, and getting rid of it."""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from pydantic import Field, model_validator

from ....protocol.error_codes import CallError
from ....providers import RemoteFile, VendorFiles
from ...tool import Answer, Arguments, tool
from ...tool_context import ToolContext
from .remote_files import FILES_TIMEOUT_S, files_of, line, row


class KimiManageFilesArguments(Arguments):
    """What to do, to which files."""

    operation: Literal["list", "info", "delete", "cleanup_expired"] = Field(
        description="cleanup_expired deletes files that are older than older_than_days."
    )
    file_id: str | None = Field(default=None, min_length=1, description="For info and delete.")
    purpose: Literal["file-extract", "image", "video", "batch"] | None = Field(
        default=None, description="For list and cleanup_expired: only files of this purpose."
    )
    limit: int = Field(default=100, ge=1, le=1000, description="For list and cleanup_expired: this many at most.")
    older_than_days: float = Field(default=30, ge=0, le=36500, description="For cleanup_expired.")
    dry_run: bool = Field(default=True, description="For cleanup_expired: only say what would be deleted.")

    @model_validator(mode="after")
    def _file_where_one_is_meant(self) -> "KimiManageFilesArguments":
        if self.operation in {"info", "delete"} and self.file_id is None:
            raise ValueError(f"file_id is missing; {self.operation} needs it, and list shows it")
        if self.operation in {"list", "cleanup_expired"} and self.file_id is not None:
            raise ValueError(f"file_id means nothing to {self.operation}; leave it out, or use info or delete")
        return self


@tool(
    "kimi_manage_files",
    read_only=False,
    open_world=True,
    idempotent=True,
    destructive=True,
    timeout_s=FILES_TIMEOUT_S,
)
async def kimi_manage_files(arguments: KimiManageFilesArguments, context: ToolContext) -> Answer:
    """List the files in the account at Kimi, tell of one, delete one, or delete old ones.

    The files are those of the API key, whoever sent them. cleanup_expired deletes nothing until dry_run is false.
    """
    files = files_of("kimi", context)
    match arguments.operation:
        case "info":
            file = await context.vendor("kimi", partial(files.info, arguments.file_id or ""))
            return Answer(line(file), row(file))
        case "delete":
            await context.vendor("kimi", partial(files.delete, arguments.file_id or ""))
            return Answer(f"Deleted {arguments.file_id}.", {"file_id": arguments.file_id, "deleted": True})
    listed = await context.vendor("kimi", partial(files.list, purpose=arguments.purpose))
    if arguments.operation == "list":
        return _listing(listed.files, arguments.limit)
    old = expired(listed.files, dt.datetime.now(dt.UTC).timestamp(), arguments.older_than_days)
    return await _clean_up(files, old[: arguments.limit], len(old), context, dry_run=arguments.dry_run)


def expired(files: Sequence[RemoteFile], now: float, days: float) -> list[RemoteFile]:
    """Those that were made so many days before ``now`` (Unix seconds), the oldest first; never one without a date."""
    old = [file for file in files if file.created_at and file.created_at <= now - days * 86_400]
    return sorted(old, key=lambda file: file.created_at)


def _listing(files: Sequence[RemoteFile], limit: int) -> Answer:
    shown = files[:limit]
    text = "\n".join(map(line, shown)) or "There are no files."
    if len(files) > len(shown):
        text += f"\n{len(files) - len(shown):,} more; raise limit to see them."
    return Answer(text, {"total": len(files), "files": [row(file) for file in shown]})


async def _clean_up(
    files: VendorFiles, old: Sequence[RemoteFile], found: int, context: ToolContext, *, dry_run: bool
) -> Answer:
    """Delete these. One that cannot be deleted is reported; where none can be, the call fails."""
    data: dict[str, Any] = {"dry_run": dry_run, "expired": found, "files": [row(file) for file in old]}
    if dry_run or not old:
        text = "\n".join(map(line, old)) or "No file is that old."
        return Answer(f"Would delete, with dry_run false:\n{text}" if old else text, data)
    failed: list[tuple[RemoteFile, CallError]] = []
    for number, file in enumerate(old):
        context.progress(f"deleting {file.name}", number, len(old))
        try:
            await context.vendor("kimi", partial(files.delete, file.id))
        except CallError as error:
            failed.append((file, error))
    if len(failed) == len(old):
        raise failed[0][1]
    data["deleted"] = len(old) - len(failed)
    data["failed"] = [{"file_id": file.id, "code": error.code, "message": error.message} for file, error in failed]
    told = [f"Deleted {data['deleted']} of {found} old files."]
    told += [f"{file.id} was not: {error.message}" for file, error in failed]
    return Answer("\n".join(told), data)
