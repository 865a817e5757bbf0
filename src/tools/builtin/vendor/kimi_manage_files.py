"""``kimi_manage_files``: the files in the Kimi account."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from ....protocol.error_codes import CallError
from ....providers import RemoteFile
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from ...vendor_file_access import VendorFileAccess
from .remote_files import FILES_TIMEOUT_S, file_line, file_row

Operation = Literal["list", "info", "delete", "cleanup_expired", "cleanup_all", "cleanup_orphaned"]

LISTED_FILES: Final = 100
"""The number of files that ``list`` shows without ``limit``."""
MAX_FILES: Final = 1000
"""The maximum number of files of a Kimi account, and so of files that one clean-up deletes."""
RESERVED_S: Final = 5.0
"""With less time left, a clean-up deletes no further files, so that its answer can say what was deleted."""

_NOT_DELETED: Final = (
    "nothing was deleted, because dry_run is true by default; set it to false to delete the matching files"
)
_NOTHING: Final = {
    "cleanup_expired": "No file is that old.",
    "cleanup_all": "There are no files.",
    "cleanup_orphaned": "There are no files without an owner. Only operators see such files.",
}


class KimiManageFilesArguments(Arguments):
    """An operation and its files."""

    operation: Operation = Field(
        description="cleanup_expired deletes files older than older_than_days; cleanup_orphaned, files that toold did "
        "not upload; cleanup_all, all files."
    )
    file_id: str | None = Field(default=None, min_length=1, description="For info and delete.")
    purpose: Literal["file-extract", "image", "video", "batch"] | None = Field(
        default=None, description="For list and clean-ups: only files of this purpose."
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        le=MAX_FILES,
        description=f"Maximum number of files. Default: {LISTED_FILES} for list, {MAX_FILES} for clean-ups.",
    )
    older_than_days: float = Field(
        default=30, ge=0, le=36500, description="For cleanup_expired: minimum age of deleted files, in days."
    )
    dry_run: bool = Field(default=True, description="For clean-ups: list the files without deleting them.")

    @model_validator(mode="after")
    def _file_id_matches_operation(self) -> "KimiManageFilesArguments":
        one_file = self.operation in {"info", "delete"}
        if one_file and self.file_id is None:
            raise ValueError(f"file_id is missing; {self.operation} needs it; get it from list")
        if not one_file and self.file_id is not None:
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
    """List, inspect or delete the files that you uploaded to Kimi, or clean up: delete old files, all files, or files
    that toold did not upload.

    With an operator's token: all files of the API key, including those of other programs. Clean-ups delete only if
    dry_run is false.
    """
    files = context.vendor_files("kimi")
    match arguments.operation:
        case "info":
            file = await files.info(arguments.file_id or "")
            return ToolOutput(file_line(file), file_row(file))
        case "delete":
            await files.delete(arguments.file_id or "")
            return ToolOutput(f"Deleted {arguments.file_id}.", {"file_id": arguments.file_id, "deleted": True})
    listed = await files.list(purpose=arguments.purpose, ownerless=arguments.operation == "cleanup_orphaned")
    if arguments.operation == "list":
        return _listing(listed, arguments.limit or LISTED_FILES)
    matching = list(listed)
    if arguments.operation == "cleanup_expired":
        matching = expired(listed, dt.datetime.now(dt.UTC).timestamp(), arguments.older_than_days)
    if not matching:
        return ToolOutput(_NOTHING[arguments.operation], _cleaned_up(arguments, [], 0))
    chosen = matching[: arguments.limit or MAX_FILES]
    if arguments.dry_run:
        return _preview(arguments, chosen, len(matching))
    return await _delete(arguments, files, chosen, len(matching), context)


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


def _cleaned_up(arguments: KimiManageFilesArguments, files: Sequence[RemoteFile], matching: int) -> dict[str, Any]:
    by_default = "dry_run" not in arguments.model_fields_set
    return {
        "operation": arguments.operation,
        "dry_run": arguments.dry_run,
        "matching": matching,
        "files": [file_row(file) for file in files],
    } | ({"notice": f"operation {arguments.operation}: {_NOT_DELETED}"} if by_default else {})


def _preview(arguments: KimiManageFilesArguments, files: Sequence[RemoteFile], matching: int) -> ToolOutput:
    data = _cleaned_up(arguments, files, matching)
    lines = [f"{data.get('notice', 'With dry_run false, this call deletes')}:", *map(file_line, files)]
    return ToolOutput("\n".join(lines), data)


async def _delete(
    arguments: KimiManageFilesArguments,
    access: VendorFileAccess,
    files: Sequence[RemoteFile],
    matching: int,
    context: ToolContext,
) -> ToolOutput:
    """Deletes the files while time remains, and reports failures. Raises the first error if none is deleted."""
    failed: list[tuple[RemoteFile, CallError]] = []
    deleted = 0
    for number, file in enumerate(files):
        if number and context.remaining() < RESERVED_S:
            break
        context.progress(f"deleting {file.name}", number, len(files))
        try:
            await access.delete(file.id)
            deleted += 1
        except CallError as error:
            failed.append((file, error))
    if not deleted:
        raise failed[0][1]
    data = _cleaned_up(arguments, files, matching) | {"deleted": deleted}
    data["failed"] = [{"file_id": file.id, "code": error.code, "message": error.message} for file, error in failed]
    lines = [f"Deleted {deleted} of {matching} matching files."]
    lines += [f"{file.id} was not deleted: {error.message}" for file, error in failed]
    if remaining := matching - deleted - len(failed):
        lines.append(f"{remaining:,} remain; repeat the call to delete them.")
    return ToolOutput("\n".join(lines), data)
