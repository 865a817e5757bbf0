"""The simulator's file storage: in memory, with limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import JSONResponse, PlainTextResponse, Response

from ..completion_parsing import SIMULATED
from . import vendor_responses
from .directives import Directives, read_directives
from .multipart import FormError, read_form
from .simulator_endpoint import SimulatorRequest, stable_id
from .vendor_responses import Json, VendorFailure

MAX_FILES: Final = 1000
"""Moonshot's limit per account."""
MAX_TOTAL_BYTES: Final = 64 * 1024 * 1024
"""Limit per vendor, much lower than the vendors' because the files are in memory."""
PAGE: Final = 20
"""GLM's page size."""

_PURPOSES: Final[Mapping[str, frozenset[str]]] = {
    "kimi": frozenset({"file-extract", "image", "video", "batch"}),
    "glm": frozenset({"batch", "code-interpreter", "agent", "voice-clone-input"}),
}
_FETCHED: Final[Mapping[str, str]] = {"kimi": "file-extract", "glm": "batch"}
"""The purpose whose files' content can be fetched."""

Answer = Response | VendorFailure


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An uploaded file."""

    about: Json
    content: bytes


class FileStorage:
    """One vendor's files, in the order of upload."""

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self._files: dict[str, StoredFile] = {}
        self._number = 0

    def upload(self, incoming: SimulatorRequest) -> Answer:
        try:
            form = read_form(incoming.headers.get("content-type", ""), incoming.content)
            name, content = form.file("file")
            purpose = form.text("purpose")
        except FormError as error:
            return vendor_responses.invalid_request(self._vendor, str(error))
        if purpose not in _PURPOSES[self._vendor]:
            return vendor_responses.invalid_request(self._vendor, f"unknown purpose {purpose!r}")
        total = sum(len(file.content) for file in self._files.values())
        if len(self._files) >= MAX_FILES or total + len(content) > MAX_TOTAL_BYTES:
            return vendor_responses.invalid_request(
                self._vendor, f"the simulator stores at most {MAX_FILES} files and {MAX_TOTAL_BYTES} bytes"
            )
        self._number += 1
        file_id = stable_id([self._vendor, self._number, name])
        about = vendor_responses.file_body(self._vendor, file_id, name, len(content), purpose)
        self._files[file_id] = StoredFile(about, content)
        return JSONResponse(about)

    def list(self, incoming: SimulatorRequest) -> Answer:
        files = [file.about for file in self._files.values()]
        if self._vendor == "kimi":
            return JSONResponse({"object": "list", "data": files, SIMULATED: True})
        wanted = incoming.query.get("purpose")
        files = [file for file in files if wanted in (None, file["purpose"])]
        ids = [file["id"] for file in files]
        after = incoming.query.get("after")
        start = ids.index(after) + 1 if after in ids else 0
        page = files[start : start + PAGE]
        more = start + len(page) < len(files)
        return JSONResponse({"object": "list", "data": page, "has_more": more, SIMULATED: True})

    def info(self, incoming: SimulatorRequest) -> Answer:
        return self._with(incoming, lambda file: JSONResponse(file.about))

    def delete(self, incoming: SimulatorRequest) -> Answer:
        def file_deleted(file: StoredFile) -> Answer:
            del self._files[file.about["id"]]
            return JSONResponse({"id": file.about["id"], "object": "file", "deleted": True, SIMULATED: True})

        return self._with(incoming, file_deleted)

    def content(self, incoming: SimulatorRequest) -> Answer:
        def fetched(file: StoredFile) -> Answer:
            if file.about["purpose"] != _FETCHED[self._vendor]:
                return vendor_responses.invalid_request(
                    self._vendor, f"only files for {_FETCHED[self._vendor]} can be fetched"
                )
            if self._vendor == "glm":
                return Response(file.content, media_type="application/octet-stream")
            return PlainTextResponse(extract(file))

        return self._with(incoming, fetched)

    def _with(self, incoming: SimulatorRequest, use: Callable[[StoredFile], Answer]) -> Answer:
        file = self._files.get(incoming.path["file_id"])
        if file is None:
            return vendor_responses.no_file(self._vendor, incoming.path["file_id"])
        return use(file)


def extract(file: StoredFile) -> str:
    """Returns the simulated extraction of a file: its text, or a note if it is not text."""
    head = f"Simulated extraction of {file.about['filename']} ({file.about['bytes']} bytes)"
    try:
        return f"{head}:\n{file.content.decode()}"
    except UnicodeDecodeError:
        return f"{head}: not a text file."


def upload_directives(incoming: SimulatorRequest) -> Directives:
    """Returns the directives in the file's name."""
    try:
        name, _ = read_form(incoming.headers.get("content-type", ""), incoming.content).file("file")
    except FormError:
        return Directives()
    return read_directives(name)
