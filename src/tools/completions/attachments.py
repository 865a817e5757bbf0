"""Reads the files and images that a caller attaches to a prompt."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Final, TypeVar

from ...protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError
from ...providers import AttachedFile
from ..tool_context import ToolContext
from ..workspace_files import BinaryFile

T = TypeVar("T")

_URLS: Final = ("https:", "http:", "file:", "data:")
_SHOWN_CHARS: Final = 100
"""Characters of a URL in an error message."""


async def read_files(
    paths: Sequence[str], context: ToolContext, *, field: str = "files", numbered: bool = False
) -> tuple[AttachedFile, ...]:
    """Reads the text files at these paths. With ``numbered``, prefixes each line with its number, for citations.

    Raises:
        InvalidArgumentsError, NotFoundError, PermissionDeniedError: a file cannot be read; the message and
            ``details.fields`` name the item of the argument ``field``.
    """
    read = await _each(field, paths, context.files.read_text)
    texts = [await asyncio.to_thread(number_lines, file.text) if numbered else file.text for file in read]
    return tuple(AttachedFile(file.name, text) for file, text in zip(read, texts, strict=True))


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


async def _each(field: str, paths: Sequence[str], read: Callable[[str], Awaitable[T]]) -> list[T]:
    results = []
    for index, path in enumerate(paths):
        with errors_of(f"{field}.{index}"):
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
