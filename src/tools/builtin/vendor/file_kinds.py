"""What a file is by its first bytes, and whether a vendor can do anything with it. Pure.

Whatever its name: a program that is called ``report.pdf`` is a program. Of what no signature tells nothing is assumed,
so that what a vendor documents, and what is like it, gets there.
"""

import codecs
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final, Literal

from ...completions import either

Kind = Literal["program", "archive", "audio recording", "video", "image", "document", "text"]

_LOOKED_AT: Final = 65_536
"""Bytes from a file's beginning; and from its end, where a ZIP archive lists what is in it."""

_PROGRAMS: Final = (
    b"\x7fELF", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe", b"\0asm", b"dex\n035\0",
)  # fmt: skip
"""Of Linux, of macOS (32 and 64 bits, either order of bytes, several in one; Java's classes begin so too), of
WebAssembly and of Android. One of Windows begins with ``MZ``, as text may."""
_GZIP: Final = b"\x1f\x8b"
_ARCHIVES: Final = (
    _GZIP, b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\x28\xb5\x2f\xfd", b"MSCF\0\0\0\0",
)  # fmt: skip
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_ZIPPED_DOCUMENTS: Final = (b"[Content_Types].xml", b"mimetypeapplication/")
"""What Office's files hold (ECMA-376, part 2), and what EPUB's and OpenDocument's begin with."""
_AUDIO: Final = (b"ID3", b"fLaC", b"#!AMR", b"MThd", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
_VIDEOS: Final = (b"\x1aE\xdf\xa3", b"FLV\x01", b"\0\0\x01\xba", b"\0\0\x01\xb3", b"0&\xb2u\x8ef\xcf\x11")
_IMAGES: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"\0\0\x01\0")
_DOCUMENTS: Final = (b"%PDF-", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
"""PDF, and what Office wrote before it zipped."""
_RIFF: Final[Mapping[bytes, Kind]] = {b"WAVE": "audio recording", b"AVI ": "video", b"WEBP": "image"}
_STILL_BRANDS: Final = frozenset({b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1"})
"""Of files that are built as videos are (ISO 14496-12), and are images."""
_BINARY_WITHOUT_SIGNATURE: Final = frozenset({".bmp", ".dib", ".doc", ".dot", ".ico", ".mobi", ".ppt", ".tif", ".xls"})
"""What Moonshot documents extracting (platform.kimi.ai/docs/api/files-upload), besides text and what is known by its
first bytes; some have no signature that is theirs alone, or several."""

_SIGNATURES: Final[Mapping[Kind, tuple[bytes, ...]]] = {
    "program": _PROGRAMS,
    "document": _DOCUMENTS,
    "image": _IMAGES,
    "video": _VIDEOS,
}
_EXTRACTED: Final[frozenset[Kind]] = frozenset({"document", "image", "text"})
_TAKEN: Final[Mapping[str, frozenset[Kind]]] = {
    "file-extract": _EXTRACTED,
    "image": frozenset({"image"}),
    "video": frozenset({"video"}),
    "batch": frozenset({"text"}),
    "agent": _EXTRACTED,
    "code-interpreter": _EXTRACTED,
    "voice-clone-input": frozenset({"audio recording"}),
}
"""What is of use to the vendor, by the purpose of the upload."""


def kind_of(name: str, content: bytes) -> Kind | None:
    """What the file is; None where its first bytes do not say it."""
    for kind, signatures in _SIGNATURES.items():
        if content.startswith(signatures):
            return kind
    if content.startswith((*_ZIP, b"RIFF")) or content[4:8] == b"ftyp":
        return _of_container(content)
    if _is_text(content):
        return "text"
    return _of_the_rest(PurePath(name).suffix.lower(), content)


def _of_container(content: bytes) -> Kind | None:
    """Of a file whose form many kinds have: what is in it."""
    if content.startswith(b"RIFF"):
        return _RIFF.get(content[8:12])
    if content.startswith(_ZIP):
        looked_at = content[:_LOOKED_AT] + content[-_LOOKED_AT:]
        return "document" if any(mark in looked_at for mark in _ZIPPED_DOCUMENTS) else "archive"
    brand = content[8:12]
    return "image" if brand in _STILL_BRANDS else "audio recording" if brand == b"M4A " else "video"


def _of_the_rest(suffix: str, content: bytes) -> Kind | None:
    """Of what is no text: by signatures that text might begin with, or that stand elsewhere."""
    if content.startswith(b"MZ") and b"\0" in content[:_LOOKED_AT]:
        return "program"
    if b"%PDF-" in content[:1024] or content[60:68] == b"BOOKMOBI":
        return "document"
    if suffix == ".svgz" and content.startswith(_GZIP):
        return "image"
    if content.startswith(_ARCHIVES) or content[257:262] == b"ustar":
        return "archive"
    return "audio recording" if content.startswith(_AUDIO) else None


def useless(name: str, content: bytes, purpose: str) -> str | None:
    """Why a vendor can do nothing with this file for this purpose; None where it may."""
    kind, taken = kind_of(name, content), _TAKEN.get(purpose)
    if taken is None or kind in taken or (kind == "text" and PurePath(name).suffix.lower() == ".svg"):
        return None
    wanted = f"{purpose} takes {_list(taken)}"
    if kind is not None:
        return f"{name[:100]!r} is {_a(kind)} by its first bytes; {wanted}"
    if purpose == "file-extract" and not _may_be_extracted(name, content):
        return f"{name[:100]!r} is a binary file of a kind that is not known; {wanted}"
    return None


def _may_be_extracted(name: str, content: bytes) -> bool:
    """Whether a file of which no signature tells may be text of another encoding, or a document."""
    head = content[:_LOOKED_AT]
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return wide or b"\0" not in head or PurePath(name).suffix.lower() in _BINARY_WITHOUT_SIGNATURE


def _is_text(content: bytes) -> bool:
    """Whether the beginning is UTF-8 without NUL."""
    head = content[:_LOOKED_AT]
    if b"\0" in head:
        return False
    try:
        # What is cut off in the middle of a character is text.
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(content) <= _LOOKED_AT)
    except UnicodeDecodeError:
        return False
    return True


def _list(kinds: frozenset[Kind]) -> str:
    return either(sorted(kind if kind == "text" else f"{kind}s" for kind in kinds))


def _a(kind: Kind) -> str:
    return kind if kind == "text" else f"an {kind}" if kind[0] in "ai" else f"a {kind}"
