"""The media types of images that models accept. Pure."""

from collections.abc import Callable
from typing import Final

_IMAGE_TYPES: Final[tuple[tuple[str, Callable[[bytes], bool]], ...]] = (
    ("image/png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", lambda data: data.startswith(b"\xff\xd8\xff")),
    ("image/gif", lambda data: data.startswith((b"GIF87a", b"GIF89a"))),
    ("image/webp", lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP"),
)


def image_type(data: bytes) -> str | None:
    """The media type of an image by its first bytes; None unless it is PNG, JPEG, GIF or WebP."""
    return next((kind for kind, matches in _IMAGE_TYPES if matches(data)), None)
