"""Reads the files of a conversation's earlier turns again, in their current version."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from ...protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError
from ...providers import AttachedFile
from ..conversation import Turn
from ..model_question import OmittedContent
from ..tool_context import ToolContext
from ..workspace_files import TextFile
from .attachments import number_lines

MAX_EARLIER_FILES: Final = 64
"""The limit of files that one call may name."""
MAX_EARLIER_BYTES: Final = 4 * 1024 * 1024
"""The limit for one folder: about a million tokens, the largest window in the catalog."""


async def earlier_files(
    turns: Sequence[Turn], attached: Collection[str], context: ToolContext, *, numbered: bool = False
) -> tuple[tuple[AttachedFile, ...], tuple[OmittedContent, ...]]:
    """Returns the files of the turns, newest turn first, and the files that were not read, with the reason.

    Files with the names ``attached`` are not read: the caller sends them with this turn.
    """
    files: list[AttachedFile] = []
    omitted: list[OmittedContent] = []
    size = 0
    for name in _names(turns):
        if name in attached:
            continue
        if len(files) == MAX_EARLIER_FILES:
            omitted.append(OmittedContent(name, f"at most {MAX_EARLIER_FILES} files of earlier turns are read again"))
            continue
        file = await _read(name, context)
        if isinstance(file, OmittedContent):
            omitted.append(file)
        elif size + len(file.text) > MAX_EARLIER_BYTES:
            omitted.append(OmittedContent(name, f"at most {MAX_EARLIER_BYTES:,} bytes of earlier turns are read again"))
        else:
            size += len(file.text)
            files.append(AttachedFile(name, number_lines(file.text) if numbered else file.text))
    return tuple(files), tuple(omitted)


def _names(turns: Sequence[Turn]) -> Iterator[str]:
    return iter(dict.fromkeys(name for turn in reversed(turns) for name in turn.files))


async def _read(name: str, context: ToolContext) -> TextFile | OmittedContent:
    """Reads a file by the name in its turn, which is relative to a workspace directory."""
    problem = "it is not in the workspace"
    found: dict[str, TextFile] = {}
    for path in dict.fromkeys((*(str(root / name) for root in context.files.roots), name)):
        try:
            file = await context.files.read_text(path)
        except NotFoundError:
            continue
        except (InvalidArgumentsError, PermissionDeniedError) as error:
            problem = error.message.rstrip(".")
            continue
        if file.name == name:
            found[file.text] = file
    if len(found) > 1:
        problem = "several workspace directories have a file with this name"
    if len(found) != 1:
        return OmittedContent(name, f"the file of an earlier turn was not read again: {problem}")
    return next(iter(found.values()))
