"""Getting an API's documents: the one that the operator names, and those that it refers to."""

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urljoin, urlsplit

import httpcore
import httpx

from ...version import __version__
from ..body_decompression import read_body
from ..checked_network import CheckedNetwork, ForbiddenAddressError
from ..source_setting_types import is_url
from .api_document import (
    MAX_DOCUMENT_BYTES,
    MAX_DOCUMENTS,
    MAX_TOGETHER_BYTES,
    ApiDocumentError,
    may_follow,
    outside_references,
    read_document,
)

FETCH_TIMEOUT_S: Final = 60.0
MAX_REDIRECTS: Final = 5


@dataclass(frozen=True, slots=True)
class FetchedDocuments:
    """The documents of a source."""

    uri: str
    """Of the one that was named; after redirects."""
    documents: dict[str, dict[str, Any]]
    """By address."""
    absent: dict[str, str]
    """Address → why the document is not there."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each, by address."""


async def fetch(spec: str, network: CheckedNetwork) -> FetchedDocuments:
    """The document at an absolute path or a URL, with those that it and they refer to.

    Raises:
        DocumentError: the document itself cannot be had, or is none.
    """
    uri, document, size = await _document(spec if is_url(spec) else Path(spec).as_uri(), network)
    fetched = FetchedDocuments(uri, {uri: document}, {}, {uri: size})
    waiting = [uri]
    while waiting:
        holder = waiting.pop()
        for other in await asyncio.to_thread(_references, fetched.documents[holder], holder):
            if other in fetched.documents or other in fetched.absent:
                continue
            if await _draw_in(other, fetched, network):
                waiting.append(other)
    return fetched


def _references(document: dict[str, Any], uri: str) -> list[str]:
    return list(outside_references(document, uri))


async def _draw_in(other: str, fetched: FetchedDocuments, network: CheckedNetwork) -> bool:
    if not may_follow(other, fetched.uri):
        fetched.absent[other] = "a document may refer to its own server, or to documents beside and below it, alone"
    elif len(fetched.documents) > MAX_DOCUMENTS:
        fetched.absent[other] = f"the documents refer to more than {MAX_DOCUMENTS} others"
    else:
        left = MAX_TOGETHER_BYTES - sum(fetched.sizes.values())
        try:
            _, document, size = await _document(other, network, left)
        except ApiDocumentError as error:
            fetched.absent[other] = str(error)
        else:
            fetched.documents[other], fetched.sizes[other] = document, size
            return True
    return False


async def _document(
    uri: str, network: CheckedNetwork, left: int = MAX_TOGETHER_BYTES
) -> tuple[str, dict[str, Any], int]:
    """Its address after redirects, the document, and the bytes of its text."""
    name = urlsplit(uri).path.rsplit("/", 1)[-1] or uri
    if uri.startswith("file:"):
        content = await asyncio.to_thread(_of_file, Path(unquote(urlsplit(uri).path)))
    else:
        uri, content = await _of_url(uri, network)
    if len(content) > left:
        raise ApiDocumentError(f"the documents have more than {MAX_TOGETHER_BYTES // 1024**2} MiB together")
    return uri, await asyncio.to_thread(read_document, content, name), len(content)


def _of_file(path: Path) -> bytes:
    try:
        if not path.is_file():  # a pipe would never end
            raise ApiDocumentError(f"{path.name} is not there, or is no file")
        with path.open("rb") as file:
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise ApiDocumentError(f"{path.name} cannot be read ({error.strerror})") from None


async def _of_url(url: str, network: CheckedNetwork) -> tuple[str, bytes]:
    """The content, and where it was after redirects."""
    host = urlsplit(url).hostname or url
    try:
        async with asyncio.timeout(FETCH_TIMEOUT_S):
            for _ in range(MAX_REDIRECTS + 1):
                headers = {"User-Agent": f"toold/{__version__}", "Accept-Encoding": "gzip, deflate"}
                request = httpx.Request("GET", url, headers=headers)
                async with network.lend() as line, line.answer(request, lambda: None) as response:
                    if not response.has_redirect_location:
                        return url, await _read(response, host)
                    target = urljoin(url, response.headers["location"])
                if url.startswith("https:") and not target.startswith("https:"):
                    raise ApiDocumentError(f"{host} sends to an address that is not https")
                url = target
    except ForbiddenAddressError as error:
        raise ApiDocumentError(str(error)) from None
    except (TimeoutError, httpcore.TimeoutException):
        raise ApiDocumentError(f"{host} did not answer in time") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError):
        raise ApiDocumentError(f"{host} cannot be reached") from None
    except (httpx.InvalidURL, httpx.DecodingError, ValueError):
        raise ApiDocumentError(f"{host} answered what is not understood") from None
    raise ApiDocumentError(f"{host} sends elsewhere more than {MAX_REDIRECTS} times")


async def _read(response: httpx.Response, host: str) -> bytes:
    if not response.is_success:
        raise ApiDocumentError(f"{host} answered HTTP {response.status_code}")
    body, whole = await read_body(response, MAX_DOCUMENT_BYTES)
    if not whole:
        raise ApiDocumentError(f"{host} answers with more than {MAX_DOCUMENT_BYTES // 1024**2} MiB")
    return body


def marks(fetched: FetchedDocuments) -> tuple[tuple[int, int, int] | None, ...]:
    """What tells whether the files of these documents, those that were missing too, have changed."""
    uris = [uri for uri in (*fetched.documents, *fetched.absent) if uri.startswith("file:")]
    return tuple(mark(Path(unquote(urlsplit(uri).path))) for uri in uris)


def mark(path: Path) -> tuple[int, int, int] | None:
    """What tells whether a file has changed: also where another one was put in its place. None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string or a path
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
