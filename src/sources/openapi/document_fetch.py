"""Loads an API's document and the documents that it refers to."""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import httpcore
import httpx

from ...tools import in_tool_thread
from ...version import __version__
from ..body_decompression import read_body
from ..checked_network import CheckedNetwork, ForbiddenAddressError
from ..source_setting_types import is_url
from .api_document import (
    MAX_DOCUMENT_BYTES,
    MAX_TOTAL_BYTES,
    ApiDocumentError,
    may_follow,
    outside_references,
    read_document,
)

FETCH_TIMEOUT_S: Final = 60.0
MAX_REDIRECTS: Final = 5


FileVersion = tuple[int, int, int]
"""The inode, modification time and size of a file. They change when the file is replaced."""


@dataclass(frozen=True, slots=True)
class FetchedDocuments:
    """The documents of a source."""

    uri: str
    """The URL of the configured document, after redirects."""
    documents: dict[str, dict[str, Any]]
    """The documents by URL."""
    absent: dict[str, str]
    """URLs of missing documents, with the reason."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each document, by URL."""
    digests: dict[str, bytes] = field(default_factory=dict)
    """SHA-256 of each document, by URL."""
    versions: dict[str, FileVersion | None] = field(default_factory=dict)
    """The versions of the files, taken before they were read, by URL; including missing files."""

    def is_same(self, other: "FetchedDocuments") -> bool:
        """Whether ``other`` has the same content."""
        return (self.uri, self.digests, self.absent) == (other.uri, other.digests, other.absent)

    def add(self, loaded: "_LoadedDocument", uri: str) -> None:
        """Add a document under the URL by which other documents refer to it."""
        self.documents[uri], self.sizes[uri], self.digests[uri] = loaded.document, loaded.size, loaded.digest


class _LoadedDocument(NamedTuple):
    uri: str
    """The URL after redirects."""
    document: dict[str, Any]
    size: int
    """The size in bytes."""
    digest: bytes
    """SHA-256 of the bytes."""


async def fetch(spec: str, network: CheckedNetwork, max_documents: int) -> FetchedDocuments:
    """Loads the document at an absolute path or a URL, and up to ``max_documents`` that it refers to, transitively.

    Raises:
        ApiDocumentError: the document itself cannot be loaded.
    """
    location = spec if is_url(spec) else _without_parent_steps(Path(spec)).as_uri()
    versions = _versions_of([location])
    loaded = await _load(location, network)
    fetched = FetchedDocuments(loaded.uri, {}, {}, versions=versions)
    fetched.add(loaded, loaded.uri)
    waiting = [loaded.uri]
    while waiting:
        holder = waiting.pop()
        for other in await in_tool_thread(_references, fetched.documents[holder], holder):
            if other in fetched.documents or other in fetched.absent:
                continue
            if await _add_referenced(other, fetched, network, max_documents):
                waiting.append(other)
    return fetched


def _without_parent_steps(path: Path) -> Path:
    """The path without ``..``. References, which must not contain ``..``, are compared with it."""
    return path.parent.resolve() / path.name if ".." in path.parts else path


def _references(document: dict[str, Any], uri: str) -> list[str]:
    return list(outside_references(document, uri))


async def _add_referenced(other: str, fetched: FetchedDocuments, network: CheckedNetwork, max_documents: int) -> bool:
    fetched.versions.update(_versions_of([other]))
    if not may_follow(other, fetched.uri):
        fetched.absent[other] = (
            "a document may only refer to its own server, or to files in and below the parent of its directory"
        )
    elif len(fetched.documents) > max_documents:
        fetched.absent[other] = f"the documents refer to more than {max_documents} others, the setting max_documents"
    else:
        budget_bytes = MAX_TOTAL_BYTES - sum(fetched.sizes.values())
        try:
            loaded = await _load(other, network, budget_bytes)
        except ApiDocumentError as error:
            fetched.absent[other] = str(error)
        else:
            fetched.add(loaded, other)
            return True
    return False


async def _load(uri: str, network: CheckedNetwork, budget_bytes: int = MAX_TOTAL_BYTES) -> _LoadedDocument:
    name = urlsplit(uri).path.rsplit("/", 1)[-1] or uri
    if uri.startswith("file:"):
        content = await asyncio.to_thread(_read_file, Path(unquote(urlsplit(uri).path)))
    else:
        uri, content = await _download(uri, network)
    if len(content) > budget_bytes:
        raise ApiDocumentError(f"the documents have more than {MAX_TOTAL_BYTES // 1024**2} MiB together")
    document, digest = await in_tool_thread(_read_content, content, name)
    return _LoadedDocument(uri, document, len(content), digest)


def _read_content(content: bytes, name: str) -> tuple[dict[str, Any], bytes]:
    return read_document(content, name), sha256(content).digest()


def _read_file(path: Path) -> bytes:
    try:
        if not path.is_file():  # a pipe might never end
            raise ApiDocumentError(f"{path.name} does not exist or is not a file")
        with path.open("rb") as file:
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise ApiDocumentError(f"{path.name} cannot be read ({error.strerror})") from None


async def _download(url: str, network: CheckedNetwork) -> tuple[str, bytes]:
    """Returns the URL after redirects, and the content."""
    host = urlsplit(url).hostname or url
    try:
        async with asyncio.timeout(FETCH_TIMEOUT_S):
            for _ in range(MAX_REDIRECTS + 1):
                headers = {"User-Agent": f"toold/{__version__}", "Accept-Encoding": "gzip, deflate"}
                request = httpx.Request("GET", url, headers=headers)
                async with network.acquire() as connection, connection.answer(request, lambda: None) as response:
                    if not response.has_redirect_location:
                        return url, await _read(response, host)
                    target = urljoin(url, response.headers["location"])
                if url.startswith("https:") and not target.startswith("https:"):
                    raise ApiDocumentError(f"{host} redirects to a URL that is not https")
                url = target
    except ForbiddenAddressError as error:
        raise ApiDocumentError(str(error)) from None
    except (TimeoutError, httpcore.TimeoutException):
        raise ApiDocumentError(f"{host} did not answer in time") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError):
        raise ApiDocumentError(f"{host} cannot be reached") from None
    except (httpx.InvalidURL, httpx.DecodingError, ValueError):
        raise ApiDocumentError(f"{host} sent an invalid response") from None
    raise ApiDocumentError(f"{host} redirects more than {MAX_REDIRECTS} times")


async def _read(response: httpx.Response, host: str) -> bytes:
    if not response.is_success:
        raise ApiDocumentError(f"{host} answered HTTP {response.status_code}")
    body, complete = await read_body(response, MAX_DOCUMENT_BYTES)
    if not complete:
        raise ApiDocumentError(f"{host} sent more than {MAX_DOCUMENT_BYTES // 1024**2} MiB")
    return body


async def have_changed(fetched: FetchedDocuments) -> bool:
    """Whether a file has changed since it was read, or a missing file has appeared. Checks in a thread, because there
    may be thousands of files.
    """
    return await asyncio.to_thread(_versions_of, fetched.versions) != fetched.versions


def _versions_of(uris: Iterable[str]) -> dict[str, FileVersion | None]:
    return {uri: file_version(Path(unquote(urlsplit(uri).path))) for uri in uris if uri.startswith("file:")}


def file_version(path: Path) -> FileVersion | None:
    """Returns the version of a file; None if it is missing."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string or a path
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
