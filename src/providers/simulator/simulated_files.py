"""The simulator's files: kept in memory while it runs, within bounds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import JSONResponse, PlainTextResponse, Response

from ..completion_parsing import SIMULATED
from ..model_catalog import ProviderName
from . import vendor_responses
from .directives import Directives, read_directives
from .multipart import FormError, read_form
from .simulator_endpoint import SimulatorRequest, stable_id
from .vendor_responses import Json, VendorFailure

MAX_FILES: Final = 1000
"""As many as Moonshot keeps for an account."""
MAX_TOTAL_BYTES: Final = 64 * 1024 * 1024
"""Of all files of one vendor: much less than the vendors keep, for it is in memory."""
PAGE: Final = 20
"""Files that GLM lists at once."""

_PURPOSES: Final[Mapping[ProviderName, frozenset[str]]] = {
    "kimi": frozenset({"file-extract", "image", "video", "batch"}),
    "glm": frozenset({"batch", "code-interpreter", "agent", "voice-clone-input"}),
}
_FETCHED: Final[Mapping[ProviderName, str]] = {"kimi": "file-extract", "glm": "batch"}
"""The purpose whose files' content can be had back."""

Answer = Response | VendorFailure


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that was sent."""

    about: Json
    content: bytes


class FileStorage:
    """One vendor's files, in the order in which they came."""

    def __init__(self, vendor: ProviderName) -> None:
        self._vendor = vendor
        self._files: dict[str, StoredFile] = {}
        self._number = 0

    def upload(self, incoming: SimulatorRequest) -> Answer:
        try:
            form = read_form(incoming.headers.get("content-type", ""), incoming.content)
            name, content = form.file("file")
            purpose = form.text("purpose")
        except FormError as error:
            return vendor_responses.objected(self._vendor, str(error))
        if purpose not in _PURPOSES[self._vendor]:
            return vendor_responses.objected(self._vendor, f"unknown purpose {purpose!r}")
        total = sum(len(kept.content) for kept in self._files.values())
        if len(self._files) >= MAX_FILES or total + len(content) > MAX_TOTAL_BYTES:
            return vendor_responses.objected(
                self._vendor, f"the simulator keeps {MAX_FILES} files and {MAX_TOTAL_BYTES} bytes at most"
            )
        self._number += 1
        file_id = stable_id([self._vendor, self._number, name])
        about = vendor_responses.file_body(self._vendor, file_id, name, len(content), purpose)
        self._files[file_id] = StoredFile(about, content)
        return JSONResponse(about)

    def list(self, incoming: SimulatorRequest) -> Answer:
        files = [kept.about for kept in self._files.values()]
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
        return self._with(incoming, lambda kept: JSONResponse(kept.about))

    def delete(self, incoming: SimulatorRequest) -> Answer:
        def gone(kept: StoredFile) -> Answer:
            del self._files[kept.about["id"]]
            return JSONResponse({"id": kept.about["id"], "object": "file", "deleted": True, SIMULATED: True})

        return self._with(incoming, gone)

    def content(self, incoming: SimulatorRequest) -> Answer:
        def fetched(kept: StoredFile) -> Answer:
            if kept.about["purpose"] != _FETCHED[self._vendor]:
                return vendor_responses.objected(
                    self._vendor, f"only files for {_FETCHED[self._vendor]} can be fetched"
                )
            if self._vendor == "glm":
                return Response(kept.content, media_type="application/octet-stream")
            return PlainTextResponse(extract(kept))

        return self._with(incoming, fetched)

    def _with(self, incoming: SimulatorRequest, use: Callable[[StoredFile], Answer]) -> Answer:
        kept = self._files.get(incoming.path["file_id"])
        if kept is None:
            return vendor_responses.no_file(self._vendor, incoming.path["file_id"])
        return use(kept)


def extract(kept: StoredFile) -> str:
    """The text of a file: its own where it is text, else a word on what it would have been."""
    head = f"Simulated extraction of {kept.about['filename']} ({kept.about['bytes']} bytes)"
    try:
        return f"{head}:\n{kept.content.decode()}"
    except UnicodeDecodeError:
        return f"{head}: it is no text, so there is none."


def upload_wishes(incoming: SimulatorRequest) -> Directives:
    """Those of the file's name."""
    try:
        name, _ = read_form(incoming.headers.get("content-type", ""), incoming.content).file("file")
    except FormError:
        return Directives()
    return read_directives(name)
