"""The kinds of files by their signatures, and the kinds that vendors do not accept."""

import io
import tarfile
import zipfile

import pytest
from toold.tools.builtin.vendor.file_kinds import Kind, kind_of, unsupported_reason


def zipped(*names: str) -> bytes:
    """A ZIP archive of empty files."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name in names:
            archive.writestr(name, "application/epub+zip" if name == "mimetype" else "")
    return written.getvalue()


def tarred() -> bytes:
    """A TAR archive with one file."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return written.getvalue()


MP4 = b"\0\0\0\x20ftypisom"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("report.pdf", b"MZ\x90\0\x03", "program"),
        ("a", b"MZ is how it begins", "text"),
        ("a.so", b"\x7fELF\x02", "program"),
        ("a.txt", zipped("a.txt"), "archive"),
        ("a.docx", zipped("[Content_Types].xml", "word/document.xml"), "document"),
        ("a.epub", zipped("mimetype", "content.opf"), "document"),
        ("a.tar", tarred(), "archive"),
        ("a.jsonl", b'{"about": "%PDF-1.7"}', "text"),
        ("a.gz", b"\x1f\x8b\x08\0", "archive"),
        ("a.svgz", b"\x1f\x8b\x08\0", "image"),
        ("a.pdf", b"%PDF-1.7\n\0\xff", "document"),
        ("a.pdf", b"\0\n%PDF-1.7", "document"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "document"),
        ("a.mobi", b"name".ljust(60, b"\0") + b"BOOKMOBI", "document"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0", "image"),
        ("a.webp", b"RIFF\0\0\0\0WEBP", "image"),
        ("a.avif", b"\0\0\0\x20ftypavif", "image"),
        ("a.mp4", MP4, "video"),
        ("a.m4a", b"\0\0\0\x20ftypM4A ", "audio recording"),
        ("a.wav", b"RIFF\0\0\0\0WAVE", "audio recording"),
        ("a.mp3", b"ID3\x04\0", "audio recording"),
        ("a.py", "é = 1".encode(), "text"),
        ("a.py", b"x" * 65_535 + "é".encode(), "text"),
        ("a.txt", "é".encode("latin-1"), None),
        ("a.bin", b"\x01\x02\0", None),
        ("a", b"RIFF", None),
        ("a", b"RIFF\0\0\0\0else", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_file_kind_is_determined_by_its_signature(name: str, content: bytes, kind: Kind | None) -> None:
    """The content decides. The name matters only for compressed SVG files."""
    assert kind_of(name, content) == kind


@pytest.mark.parametrize(
    ("name", "content", "purpose", "why"),
    [
        ("report.pdf", b"MZ\0", "file-extract", "'report.pdf' is a program by its signature; file-extract accepts"),
        (
            "a.zip",
            zipped("a"),
            "file-extract",
            "is an archive by its signature; file-extract accepts documents, images",
        ),
        ("a.mp4", MP4, "file-extract", "is a video"),
        ("a.mp3", b"ID3\0", "file-extract", "is an audio recording"),
        ("a.bin", b"\x01\0", "file-extract", "is a binary file of unknown kind; file-extract accepts"),
        ("a.pdf", b"%PDF-1.7", "image", "is a document by its signature; image accepts images"),
        ("a.png", b"no image", "image", "is text by its signature"),
        ("a.png", b"\x89PNG\r\n\x1a\n", "video", "is an image by its signature; video accepts videos"),
        ("a.jsonl", zipped("a"), "batch", "is an archive by its signature; batch accepts text"),
        ("a.csv", b"\x7fELF", "agent", "is a program"),
        ("a.mp3", b"%PDF-1.7", "voice-clone-input", "is a document by its signature; voice-clone-input accepts audio"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_unsupported_file_kinds_are_refused_with_a_reason(name: str, content: bytes, purpose: str, why: str) -> None:
    """A file that the vendor cannot use is refused, so that it is not sent or stored there."""
    assert why in (unsupported_reason(name, content, purpose) or "")


@pytest.mark.parametrize(
    ("name", "content", "purpose"),
    [
        ("a.docx", zipped("[Content_Types].xml"), "file-extract"),
        ("a.txt", "é".encode("latin-1"), "file-extract"),
        ("a.txt", "é".encode("utf-16"), "file-extract"),
        ("a.bmp", b"BM\0\0", "file-extract"),
        ("a.heic", b"\0\0\0\x20ftypheic", "file-extract"),
        ("a.bmp", b"BM\0\0", "image"),
        ("a.svg", b"<svg/>", "image"),
        ("a.mp4", MP4, "video"),
        ("a.mov", b"\0\0\0\x08wide", "video"),
        ("a.jsonl", b"{}", "batch"),
        ("a.xlsx", zipped("[Content_Types].xml"), "agent"),
        ("a.mp3", b"ID3\0", "voice-clone-input"),
        ("a.mp3", b"\x01\0", "voice-clone-input"),
        ("a.exe", b"MZ\0", "a purpose to come"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_supported_and_unknown_kinds_pass(name: str, content: bytes, purpose: str) -> None:
    """Documented formats, and files of unknown kind, pass."""
    assert unsupported_reason(name, content, purpose) is None
