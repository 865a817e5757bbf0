"""Reads the files and images that a caller attaches to a prompt."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final, TypeVar

from ...protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError
from ...protocol.tool_call import TextContent
from ...providers import AttachedFile
from ..model_question import OmittedContent
from ..tool import ToolOutput
from ..tool_context import ToolContext
from ..workspace_files import BinaryFile
from ..workspace_folders import FolderFiles

T = TypeVar("T")

_URLS: Final = ("https:", "http:", "file:", "data:")
_SHOWN_CHARS: Final = 100
"""Characters of a URL in an error message."""


@dataclass(frozen=True, slots=True)
class ExpandedPaths:
    """The paths that a caller named, with folders replaced by their text files."""

    paths: tuple[str, ...]
    places: tuple[int, ...]
    """For each path, the position of the item that named it."""
    folders: tuple[FolderFiles, ...] = ()

    def data(self) -> dict[str, Any]:
        """The fields that folders add to ``structured``."""
        return {"folders": [folder.as_data() for folder in self.folders]} if self.folders else {}

    def blocks(self) -> tuple[TextContent, ...]:
        """The files that were taken from folders or left out, as a text that follows the answer's text."""
        return (TextContent("\n".join(folder.sentence for folder in self.folders)),) if self.folders else ()

    def reported_in(self, answer: ToolOutput) -> ToolOutput:
        """The answer with ``data`` and ``blocks``."""
        if not self.folders:
            return answer
        data = answer.data if isinstance(answer.data, dict) else {}
        return replace(answer, data={**data, **self.data()}, blocks=(*answer.blocks, *self.blocks()))

    def left_out(self) -> tuple[OmittedContent, ...]:
        """The files of the folders that were not taken."""
        return tuple(
            OmittedContent(f"{folder.folder}/{name}", reason)
            for folder in self.folders
            for name, reason in folder.left_out
        )


async def expand_folders(paths: Sequence[str], context: ToolContext, *, field: str = "files") -> ExpandedPaths:
    """Replaces folders by their text files (``workspace_folders``).

    Raises:
        InvalidArgumentsError, NotFoundError, PermissionDeniedError: as raised by ``read_files``.
    """
    expanded: dict[str, int] = {}
    folders: list[FolderFiles] = []
    for place, folder in enumerate(await _each(field, paths, context.files.folder_files)):
        if folder is None:
            expanded.setdefault(paths[place], place)
        else:
            folders.append(folder)
            expanded |= dict.fromkeys((path for path in folder.paths if path not in expanded), place)
    return ExpandedPaths(tuple(expanded), tuple(expanded.values()), tuple(folders))


async def read_files(
    paths: Sequence[str],
    context: ToolContext,
    *,
    field: str = "files",
    numbered: bool = False,
    places: Sequence[int] = (),
) -> tuple[AttachedFile, ...]:
    """Reads the text files at these paths. With ``numbered``, prefixes each line with its number, for citations.
    If folders were expanded, ``places`` has the position of each path in the argument ``field``, and each file is
    returned once.

    Raises:
        InvalidArgumentsError, NotFoundError, PermissionDeniedError: a file cannot be read; the message and
            ``details.fields`` name the item of the argument ``field``.
    """
    read = await _each(field, paths, context.files.read_text, places)
    texts = [await asyncio.to_thread(number_lines, file.text) if numbered else file.text for file in read]
    files = tuple(AttachedFile(file.name, text) for file, text in zip(read, texts, strict=True))
    return tuple({file.name: file for file in files}.values()) if places else files


async def read_images(images: Sequence[str], context: ToolContext, *, field: str = "images") -> tuple[str, ...]:
    """Reads the images at these paths as ``data:`` URLs. Keeps ``https:`` and ``data:image/`` URLs unchanged.

    Raises:
        CallError: as raised by ``read_files``.
    """
    files = context.files

    async def url(image: str) -> str:
        if image.startswith(("https:", "data:image/")):
            return image
        if image.startswith(_URLS):
            raise InvalidArgumentsError(
                f"{image[:_SHOWN_CHARS]!r} is not a supported image URL; "
                "use an https: or data:image/ URL, or a path in the workspace."
            )
        return await files.read_image(image)

    return tuple(await _each(field, images, url))


def below(directory: str | None, paths: Sequence[str]) -> list[str]:
    """Returns the paths with relative ones below ``directory``, and URLs unchanged."""
    if directory is None:
        return list(paths)
    return [path if path.startswith(_URLS) else str(PurePath(directory, path)) for path in paths]


def number_lines(text: str) -> str:
    """Prefixes each line with its number, padded to equal width: `` 9| total = 0``."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    width = len(str(len(lines)))
    return "".join(f"{number:{width}}| {line}\n" for number, line in enumerate(lines, 1))


async def read_bytes(path: str, context: ToolContext, *, max_bytes: int, field: str) -> BinaryFile:
    """Reads a file of any kind, of at most ``max_bytes``.

    Raises:
        CallError: as raised by ``read_files``, for the argument ``field``.
    """
    with errors_of(field):
        return await context.files.read_bytes(path, max_bytes)


async def _each(
    field: str, paths: Sequence[str], read: Callable[[str], Awaitable[T]], places: Sequence[int] = ()
) -> list[T]:
    results = []
    for index, path in enumerate(paths):
        with errors_of(f"{field}.{places[index] if places else index}"):
            results.append(await read(path))
    return results


@contextmanager
def errors_of(field: str) -> Iterator[None]:
    """Adds the argument's name to errors raised in the block."""
    try:
        yield
    except (InvalidArgumentsError, NotFoundError, PermissionDeniedError) as error:
        details = {"fields": {field: error.message}}
        raise type(error)(f"{field}: {error.message}", details=details) from error
