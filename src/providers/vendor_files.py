"""The vendors' file APIs: upload, list, fetch and delete.

Kimi: platform.kimi.ai/docs/api/files-upload and related pages. GLM: docs.bigmodel.cn/api-reference, 文件 API.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from ..protocol.error_codes import NotFoundError
from ..protocol.json_text import InvalidJsonError, parse_json
from .request_check import refused
from .response_values import InvalidResponseError
from .vendor_errors import VendorObjectNotFoundError
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiRequest, Upload

_MB: Final = 1024 * 1024
"""The vendors document limits in MB, which may mean a million bytes or this number. The vendor decides about files in
between.
"""
_IMAGES: Final = frozenset({".png", ".jpg", ".jpeg"})
_MAX_ID_CHARS: Final = 512
"""The vendors' file ids have about 30 characters; without this limit, a URL could have 65,536."""


@dataclass(frozen=True, slots=True)
class PurposeRule:
    """The files that a vendor accepts for one purpose."""

    max_bytes: int | None
    """None: no documented limit."""
    suffixes: frozenset[str] | None = None
    """The suffixes in lower case, with their dots. None: the vendor's list of types is open."""
    max_image_bytes: int | None = None
    """The limit for images, if it differs."""


@dataclass(frozen=True, slots=True)
class FileRules:
    """The capabilities of a vendor's file API."""

    label: str
    """The vendor's display name."""
    purposes: Mapping[str, PurposeRule]
    fetched: frozenset[str]
    """The purposes of files whose content can be fetched."""
    single_info: bool
    """Whether the API reports on single files. Otherwise the list must be read."""
    pages: bool
    """Whether the list has pages and a filter by purpose. Otherwise it is returned as a whole."""


KIMI_FILES: Final = FileRules(
    "Kimi (Moonshot)",
    {
        "file-extract": PurposeRule(100 * _MB),
        "image": PurposeRule(100 * _MB),
        "video": PurposeRule(100 * _MB),
        "batch": PurposeRule(100 * _MB, frozenset({".jsonl"})),
    },
    fetched=frozenset({"file-extract"}),
    single_info=True,
    pages=False,
)
"""100 MB per file; 1,000 files and 10 GB per account. The lists of types for extraction, images and videos are open
('and more')."""

_GLM_DOCUMENTS: Final = _IMAGES | {".pdf", ".docx", ".doc", ".xls", ".xlsx", ".txt", ".csv"}
GLM_FILES: Final = FileRules(
    "GLM (Zhipu)",
    {
        "batch": PurposeRule(100 * _MB, frozenset({".jsonl"})),
        "code-interpreter": PurposeRule(20 * _MB, _GLM_DOCUMENTS, max_image_bytes=5 * _MB),
        "agent": PurposeRule(20 * _MB, _GLM_DOCUMENTS, max_image_bytes=5 * _MB),
        "voice-clone-input": PurposeRule(None, frozenset({".mp3", ".wav"})),
    },
    fetched=frozenset({"batch"}),
    single_info=False,
    pages=True,
)
"""docs.bigmodel.cn/api-reference, 上传文件 and 文件内容."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A vendor's report on a file. Unknown fields are empty or 0."""

    id: str
    name: str
    bytes: int
    purpose: str
    created_at: int
    """A Unix time in seconds."""
    status: str = ""
    """Kimi's processing status, such as ``ok``."""
    status_details: str = ""


@dataclass(frozen=True, slots=True)
class FileList:
    """A page of files, or all files."""

    files: tuple[RemoteFile, ...]
    more: bool = False
    """Whether more files follow."""


class VendorFiles:
    """The files in the account of one vendor's key."""

    def __init__(self, exchange: VendorExchange, rules: FileRules) -> None:
        self._exchange = exchange
        self.rules = rules

    def check(self, name: str, size: int, purpose: str) -> None:
        """Checks a file's name and size in bytes before an upload. Sends nothing.

        Raises:
            InvalidArgumentsError: the vendor does not accept the file; the message says what it accepts.
        """
        check_upload(self.rules, name, size, purpose)

    async def upload(self, name: str, content: bytes, purpose: str, *, timeout_s: float) -> RemoteFile:
        """Uploads a file under the last component of ``name``.

        Raises:
            InvalidArgumentsError: the vendor does not accept such a file for this purpose.
            CallError: the vendor failed.
        """
        check_upload(self.rules, name, len(content), purpose)
        upload = Upload(PurePath(name).name, content)
        request = ApiRequest(method="POST", path="/files", body={"purpose": purpose}, upload=upload)
        return await self._exchange.ask(request, read_file, timeout_s=timeout_s)

    async def list(self, *, timeout_s: float, purpose: str | None = None, after: str | None = None) -> FileList:
        """Lists files, optionally of one purpose. ``after`` is the id of the last file on the previous page.

        Raises:
            InvalidArgumentsError: ``after`` is given, and this vendor has no pages.
            CallError: the vendor failed.
        """
        if after is not None and not self.rules.pages:
            raise refused("after", f"{self.rules.label} lists all files at once; omit after.")
        query = {"purpose": purpose, "after": after} if self.rules.pages else {}
        parameters = {key: value for key, value in query.items() if value is not None}
        request = ApiRequest(method="GET", path="/files", query=parameters)
        listed = await self._exchange.ask(request, read_files, timeout_s=timeout_s)
        if purpose is None:
            return listed
        return FileList(tuple(file for file in listed.files if file.purpose == purpose), listed.more)

    async def info(self, file_id: str, *, timeout_s: float) -> RemoteFile:
        """Returns the info on one file.

        Raises:
            InvalidArgumentsError: this vendor reports on files only in its list.
            NotFoundError: the key's account has no file with this id.
            CallError: the vendor failed.
        """
        if not self.rules.single_info:
            raise refused("file_id", f"{self.rules.label} does not report on single files; list the files.")
        request = ApiRequest(method="GET", path=_path(file_id))
        with _convert_not_found(file_id):
            return await self._exchange.ask(request, read_file, timeout_s=timeout_s)

    async def delete(self, file_id: str, *, timeout_s: float) -> None:
        """Deletes one file.

        Raises:
            NotFoundError: as raised by ``info``.
            CallError: the vendor failed.
        """
        request = ApiRequest(method="DELETE", path=_path(file_id))
        with _convert_not_found(file_id):
            await self._exchange.ask(request, read_deletion, timeout_s=timeout_s)

    async def content(self, file_id: str, *, timeout_s: float) -> bytes:
        """Fetches the content of a file whose purpose is in ``rules.fetched``. For Kimi's ``file-extract``, this is the
        extracted text (see ``extracted_text``); for GLM's ``batch``, the file itself.

        Raises:
            NotFoundError: as raised by ``info``.
            CallError: the vendor failed, or the file has another purpose.
        """
        request = ApiRequest(method="GET", path=f"{_path(file_id)}/content")
        with _convert_not_found(file_id):
            return (await self._exchange.send(request, timeout_s=timeout_s)).content


def check_upload(rules: FileRules, name: str, size: int, purpose: str) -> None:
    """Raises ``InvalidArgumentsError`` if the vendor does not accept such a file."""
    rule = rules.purposes.get(purpose)
    if rule is None:
        raise refused("purpose", f"{rules.label} has no purpose {purpose[:100]!r}; known: {', '.join(rules.purposes)}.")
    suffix = PurePath(name).suffix.lower()
    if rule.suffixes is not None and suffix not in rule.suffixes:
        kinds = ", ".join(sorted(rule.suffixes))
        raise refused("file", f"For {purpose}, {rules.label} accepts files of the types {kinds}, not {name[:100]!r}.")
    if size == 0:
        raise refused("file", f"{name[:100]!r} is empty.")
    bound = rule.max_image_bytes if suffix in _IMAGES and rule.max_image_bytes is not None else rule.max_bytes
    if bound is not None and size > bound:
        raise refused(
            "file", f"{name[:100]!r} has {size:,} bytes; {rules.label} accepts at most {bound // _MB} MB for {purpose}."
        )


def extracted_text(content: bytes) -> str:
    """Returns the text that Kimi extracted from a file.

    The documented response is plain text; sometimes it is a JSON object with the text in ``content``.
    """
    text = content.decode(errors="replace")
    try:
        document = parse_json(text)
    except InvalidJsonError:
        return text
    wrapped = isinstance(document, dict) and {"content", "file_type"} <= document.keys()
    return document["content"] if wrapped and isinstance(document["content"], str) else text


def read_file(document: Any) -> RemoteFile:
    """Raises ``InvalidResponseError`` if the document is not a file."""
    if not isinstance(document, dict) or not isinstance(document.get("id"), str):
        raise InvalidResponseError("the file id is missing")
    return RemoteFile(
        id=document["id"],
        name=str(document.get("filename") or ""),
        bytes=_number(document.get("bytes")),
        purpose=str(document.get("purpose") or ""),
        created_at=_number(document.get("created_at")),
        status=str(document.get("status") or ""),
        status_details=str(document.get("status_details") or ""),
    )


def read_files(document: Any) -> FileList:
    """Raises ``InvalidResponseError`` if the document is not a list of files."""
    files = document.get("data") if isinstance(document, dict) else None
    if not isinstance(files, list):
        raise InvalidResponseError("the list of files is missing")
    return FileList(tuple(map(read_file, files)), document.get("has_more") is True)


def read_deletion(document: Any) -> None:
    """Raises ``InvalidResponseError`` if the document does not confirm the deletion."""
    if not isinstance(document, dict) or document.get("deleted") is not True:
        raise InvalidResponseError("it does not confirm the deletion")


@contextmanager
def _convert_not_found(file_id: str) -> Iterator[None]:
    """Converts ``VendorObjectNotFoundError`` to ``NotFoundError`` for this file."""
    try:
        yield
    except VendorObjectNotFoundError as error:
        raise NotFoundError(f"There is no file {file_id!r}: {error.message}") from error


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _path(file_id: str) -> str:
    """Returns the file's path. Quotes the caller's id, so that it cannot change the path."""
    if not file_id.strip("."):
        raise refused("file_id", "The file id is empty; list the files to get their ids.")
    if len(file_id) > _MAX_ID_CHARS:
        raise refused("file_id", "The file id is too long; list the files to get their ids.")
    return f"/files/{quote(file_id, safe='')}"
