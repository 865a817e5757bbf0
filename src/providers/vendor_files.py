"""Files at a vendor: sent there, listed, fetched and deleted.

Kimi: platform.kimi.ai/docs/api/files-upload and its neighbours. GLM: docs.bigmodel.cn/api-reference, 文件 API.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from ..protocol.error_codes import NotFoundError
from .completion_parsing import NotUnderstoodError
from .request_check import refused
from .vendor_errors import NotThereError
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiRequest, Upload

_MB: Final = 1024 * 1024
"""The vendors write MB; what lies between this and a million bytes is theirs to judge."""
_IMAGES: Final = frozenset({".png", ".jpg", ".jpeg"})
_MAX_ID_CHARS: Final = 512
"""Of a file's id. The vendors' have some 30 characters; an address takes 65,536 in all."""


@dataclass(frozen=True, slots=True)
class PurposeRule:
    """What a vendor takes for one purpose."""

    max_bytes: int | None
    """None: it names no bound."""
    suffixes: frozenset[str] | None = None
    """In lower case, with their dots; None where the vendor's list of types is open."""
    max_image_bytes: int | None = None
    """Where images are bound to less than other files."""


@dataclass(frozen=True, slots=True)
class FileRules:
    """What a vendor offers for files."""

    label: str
    """The vendor's name for people."""
    purposes: Mapping[str, PurposeRule]
    fetched: frozenset[str]
    """Purposes whose files' content can be had back."""
    tells_of_one: bool
    """Whether a single file can be asked about; else the list has to be read."""
    pages: bool
    """Whether the list comes in pages, and by purpose if wanted; else it is whole."""


KIMI_FILES: Final = FileRules(
    "Kimi (Moonshot)",
    {
        "file-extract": PurposeRule(100 * _MB),
        "image": PurposeRule(100 * _MB),
        "video": PurposeRule(100 * _MB),
        "batch": PurposeRule(100 * _MB, frozenset({".jsonl"})),
    },
    fetched=frozenset({"file-extract"}),
    tells_of_one=True,
    pages=False,
)
"""100 MB a file; an account has 1,000 files and 10 GB. What types text is extracted from, and what images and videos
may be, are open lists ('and more')."""

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
    tells_of_one=False,
    pages=True,
)
"""docs.bigmodel.cn/api-reference, 上传文件 and 文件内容."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file as its vendor tells of it. What the vendor does not say is empty, or 0."""

    id: str
    name: str
    bytes: int
    purpose: str
    created_at: int
    """Seconds since 1970, UTC."""
    status: str = ""
    """Kimi's word for how far it is, such as ``ok``."""
    status_details: str = ""


@dataclass(frozen=True, slots=True)
class FileList:
    """Some files, or all of them."""

    files: tuple[RemoteFile, ...]
    more: bool = False
    """Whether there are others after the last one."""


class VendorFiles:
    """One vendor's files; those of the key's account, whoever sent them."""

    def __init__(self, exchange: VendorExchange, rules: FileRules) -> None:
        self._exchange = exchange
        self.rules = rules

    def check(self, name: str, size: int, purpose: str) -> None:
        """Refuse what the vendor does not take, by its name and its size in bytes. Sends nothing.

        Raises:
            InvalidArgumentsError: says what the vendor takes.
        """
        check_upload(self.rules, name, size, purpose)

    async def upload(self, name: str, content: bytes, purpose: str, *, timeout_s: float) -> RemoteFile:
        """Send a file; of ``name`` the last part goes along.

        Raises:
            InvalidArgumentsError: the vendor does not take such a file for this purpose.
            CallError: a subclass by what the vendor said.
        """
        check_upload(self.rules, name, len(content), purpose)
        upload = Upload(PurePath(name).name, content)
        request = ApiRequest(method="POST", path="/files", body={"purpose": purpose}, upload=upload)
        return await self._exchange.ask(request, read_file, timeout_s=timeout_s)

    async def list(self, *, timeout_s: float, purpose: str | None = None, after: str | None = None) -> FileList:
        """The files, of one purpose if wanted. ``after`` is the id of the last file of the page before.

        Raises:
            InvalidArgumentsError: ``after`` is given, and this vendor lists all at once.
            CallError: a subclass by what the vendor said.
        """
        if after is not None and not self.rules.pages:
            raise refused("after", f"{self.rules.label} lists all files at once; leave after out.")
        query = {"purpose": purpose, "after": after} if self.rules.pages else {}
        given = {key: value for key, value in query.items() if value is not None}
        request = ApiRequest(method="GET", path="/files", query=given)
        listed = await self._exchange.ask(request, read_files, timeout_s=timeout_s)
        if purpose is None:
            return listed
        return FileList(tuple(file for file in listed.files if file.purpose == purpose), listed.more)

    async def info(self, file_id: str, *, timeout_s: float) -> RemoteFile:
        """One file.

        Raises:
            InvalidArgumentsError: this vendor tells of files in its list alone.
            NotFoundError: there is none of this id, as far as the key in use goes.
            CallError: a subclass by what the vendor said.
        """
        if not self.rules.tells_of_one:
            raise refused("file_id", f"{self.rules.label} tells of single files in its list alone; list the files.")
        request = ApiRequest(method="GET", path=_path(file_id))
        with _there(file_id):
            return await self._exchange.ask(request, read_file, timeout_s=timeout_s)

    async def delete(self, file_id: str, *, timeout_s: float) -> None:
        """Delete one file.

        Raises:
            NotFoundError: as ``info``.
            CallError: a subclass by what the vendor said.
        """
        request = ApiRequest(method="DELETE", path=_path(file_id))
        with _there(file_id):
            await self._exchange.ask(request, read_deletion, timeout_s=timeout_s)

    async def content(self, file_id: str, *, timeout_s: float) -> bytes:
        """What the vendor gives back of a file whose purpose is one of ``rules.fetched``: of Kimi's ``file-extract``
        the text that it read from the file (see ``extracted_text``), of GLM's ``batch`` the file.

        Raises:
            NotFoundError: as ``info``.
            CallError: a subclass by what the vendor said; of files for other purposes it refuses to give any.
        """
        request = ApiRequest(method="GET", path=f"{_path(file_id)}/content")
        with _there(file_id):
            return (await self._exchange.send(request, timeout_s=timeout_s)).content


def check_upload(rules: FileRules, name: str, size: int, purpose: str) -> None:
    """Raises ``InvalidArgumentsError`` where the vendor does not take such a file."""
    rule = rules.purposes.get(purpose)
    if rule is None:
        raise refused(
            "purpose", f"{rules.label} has no purpose {purpose[:100]!r}; there are {', '.join(rules.purposes)}."
        )
    suffix = PurePath(name).suffix.lower()
    if rule.suffixes is not None and suffix not in rule.suffixes:
        kinds = ", ".join(sorted(rule.suffixes))
        raise refused("file", f"{rules.label} takes for {purpose} files of the types {kinds}, not {name[:100]!r}.")
    if size == 0:
        raise refused("file", f"{name[:100]!r} is empty; there is nothing to send.")
    bound = rule.max_image_bytes if suffix in _IMAGES and rule.max_image_bytes is not None else rule.max_bytes
    if bound is not None and size > bound:
        raise refused(
            "file", f"{name[:100]!r} has {size:,} bytes; {rules.label} takes {bound // _MB} MB at most for {purpose}."
        )


def extracted_text(content: bytes) -> str:
    """The text that Kimi read from a file.

    Documented is plain text; what comes is at times a JSON object whose ``content`` is that text.
    """
    text = content.decode(errors="replace")
    try:
        document = json.loads(text)
    except ValueError:
        return text
    wrapped = isinstance(document, dict) and {"content", "file_type"} <= document.keys()
    return document["content"] if wrapped and isinstance(document["content"], str) else text


def read_file(document: Any) -> RemoteFile:
    """Raises ``NotUnderstoodError`` where it is no file."""
    if not isinstance(document, dict) or not isinstance(document.get("id"), str):
        raise NotUnderstoodError("there is no file's id in it")
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
    """Raises ``NotUnderstoodError`` where it is no list of files."""
    files = document.get("data") if isinstance(document, dict) else None
    if not isinstance(files, list):
        raise NotUnderstoodError("there is no list of files in it")
    return FileList(tuple(map(read_file, files)), document.get("has_more") is True)


def read_deletion(document: Any) -> None:
    """Raises ``NotUnderstoodError`` where it does not say that the file is deleted."""
    if not isinstance(document, dict) or document.get("deleted") is not True:
        raise NotUnderstoodError("it does not say that the file is deleted")


@contextmanager
def _there(file_id: str) -> Iterator[None]:
    """Have the error say so where the vendor knows no file of this id."""
    try:
        yield
    except NotThereError as error:
        raise NotFoundError(f"There is no file {file_id!r}: {error.message}") from error


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _path(file_id: str) -> str:
    """What a caller names must not lead elsewhere."""
    if not file_id.strip("."):
        raise refused("file_id", "The file's id is empty; list the files to see theirs.")
    if len(file_id) > _MAX_ID_CHARS:
        raise refused("file_id", "The file's id is longer than one is; list the files to see theirs.")
    return f"/files/{quote(file_id, safe='')}"
