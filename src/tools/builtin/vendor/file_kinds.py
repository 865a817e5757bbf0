"""The kind of a file by its signature, and whether a vendor accepts that kind. Pure.

The name does not matter: a program called ``report.pdf`` is a program. A file without a known signature may be sent,
so that all formats a vendor documents, and similar ones, pass.
"""

import codecs
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final, Literal

from ...completions import either

Kind = Literal["program", "archive", "audio recording", "video", "image", "document", "text"]

_INSPECTED_BYTES: Final = 65_536
"""The number of bytes inspected at a file's beginning, and at its end, where a ZIP archive has its directory."""

_PROGRAMS: Final = (
    b"\x7fELF", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe", b"\0asm", b"dex\n035\0",
)  # fmt: skip
"""ELF, Mach-O (32 and 64 bits, both byte orders, and universal, whose signature Java classes share), WebAssembly and
Android. Windows programs begin with ``MZ``, and so may text; they are checked separately.
"""
_GZIP: Final = b"\x1f\x8b"
_ARCHIVES: Final = (
    _GZIP, b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\x28\xb5\x2f\xfd", b"MSCF\0\0\0\0",
)  # fmt: skip
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_ZIPPED_DOCUMENTS: Final = (b"[Content_Types].xml", b"mimetypeapplication/")
"""A part of every Office file (ECMA-376, part 2), and the start of EPUB and OpenDocument files."""
_AUDIO: Final = (b"ID3", b"fLaC", b"#!AMR", b"MThd", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
_VIDEOS: Final = (b"\x1aE\xdf\xa3", b"FLV\x01", b"\0\0\x01\xba", b"\0\0\x01\xb3", b"0&\xb2u\x8ef\xcf\x11")
_IMAGES: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"\0\0\x01\0")
_DOCUMENTS: Final = (b"%PDF-", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
"""PDF, and Office formats before 2007."""
_RIFF: Final[Mapping[bytes, Kind]] = {b"WAVE": "audio recording", b"AVI ": "video", b"WEBP": "image"}
_STILL_BRANDS: Final = frozenset({b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1"})
"""Brands of image files in the container format of videos (ISO 14496-12)."""
_BINARY_WITHOUT_SIGNATURE: Final = frozenset({".bmp", ".dib", ".doc", ".dot", ".ico", ".mobi", ".ppt", ".tif", ".xls"})
"""Formats that Moonshot documents for extraction (platform.kimi.ai/docs/api/files-upload) and that have no unique
signature."""

_SIGNATURES: Final[Mapping[Kind, tuple[bytes, ...]]] = {
    "program": _PROGRAMS,
    "document": _DOCUMENTS,
    "image": _IMAGES,
    "video": _VIDEOS,
}
_EXTRACTED: Final[frozenset[Kind]] = frozenset({"document", "image", "text"})
_ACCEPTED: Final[Mapping[str, frozenset[Kind]]] = {
    "file-extract": _EXTRACTED,
    "image": frozenset({"image"}),
    "video": frozenset({"video"}),
    "batch": frozenset({"text"}),
    "agent": _EXTRACTED,
    "code-interpreter": _EXTRACTED,
    "voice-clone-input": frozenset({"audio recording"}),
}
"""Maps the purpose of the upload to the kinds that the vendor can use."""


def kind_of(name: str, content: bytes) -> Kind | None:
    """Returns the kind of the file, or None if its bytes do not identify it."""
    for kind, signatures in _SIGNATURES.items():
        if content.startswith(signatures):
            return kind
    if content.startswith((*_ZIP, b"RIFF")) or content[4:8] == b"ftyp":
        return _kind_in_container(content)
    if _is_text(content):
        return "text"
    return _kind_of_binary(PurePath(name).suffix.lower(), content)


def _kind_in_container(content: bytes) -> Kind | None:
    """Returns the kind of the content of a RIFF, ZIP or ISO container."""
    if content.startswith(b"RIFF"):
        return _RIFF.get(content[8:12])
    if content.startswith(_ZIP):
        inspected = content[:_INSPECTED_BYTES] + content[-_INSPECTED_BYTES:]
        return "document" if any(mark in inspected for mark in _ZIPPED_DOCUMENTS) else "archive"
    brand = content[8:12]
    return "image" if brand in _STILL_BRANDS else "audio recording" if brand == b"M4A " else "video"


def _kind_of_binary(suffix: str, content: bytes) -> Kind | None:
    """Returns the kind of a file that is not text, by signatures that a text could begin with too, or that are not at
    the start of the file.
    """
    if content.startswith(b"MZ") and b"\0" in content[:_INSPECTED_BYTES]:
        return "program"
    if b"%PDF-" in content[:1024] or content[60:68] == b"BOOKMOBI":
        return "document"
    if suffix == ".svgz" and content.startswith(_GZIP):
        return "image"
    if content.startswith(_ARCHIVES) or content[257:262] == b"ustar":
        return "archive"
    return "audio recording" if content.startswith(_AUDIO) else None


def unsupported_reason(name: str, content: bytes, purpose: str) -> str | None:
    """Returns why the vendor cannot use this file for this purpose, or None if it can."""
    kind, accepted = kind_of(name, content), _ACCEPTED.get(purpose)
    if accepted is None or kind in accepted or (kind == "text" and PurePath(name).suffix.lower() == ".svg"):
        return None
    expected = f"{purpose} accepts {_list(accepted)}"
    if kind is not None:
        return f"{name[:100]!r} is {_with_article(kind)} by its signature; {expected}"
    if purpose == "file-extract" and not _may_be_extracted(name, content):
        return f"{name[:100]!r} is a binary file of unknown kind; {expected}"
    return None


def _may_be_extracted(name: str, content: bytes) -> bool:
    """Whether a file without a known signature may be text in another encoding, or a document."""
    head = content[:_INSPECTED_BYTES]
    utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return utf16 or b"\0" not in head or PurePath(name).suffix.lower() in _BINARY_WITHOUT_SIGNATURE


def _is_text(content: bytes) -> bool:
    """Whether the inspected bytes are UTF-8 without NUL."""
    head = content[:_INSPECTED_BYTES]
    if b"\0" in head:
        return False
    try:
        # The inspected part may end in the middle of a character.
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(content) <= _INSPECTED_BYTES)
    except UnicodeDecodeError:
        return False
    return True


def _list(kinds: frozenset[Kind]) -> str:
    return either(sorted(kind if kind == "text" else f"{kind}s" for kind in kinds))


def _with_article(kind: Kind) -> str:
    return kind if kind == "text" else f"an {kind}" if kind[0] in "ai" else f"a {kind}"
