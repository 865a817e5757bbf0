"""The last known good prompt of each server, on disk, for the time when the server cannot be asked. Blocks."""

import os
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ..tools import TemplateFormat
from .server_answers import StoredPrompt

MAX_KEPT_PROMPTS: Final = 1000
"""The oldest are deleted beyond it. A prompt has at most a million characters, and most have some thousand."""
_MAX_FILE_BYTES: Final = 16 * 1024**2
"""A million characters escaped as JSON, and the fields around them."""


class PromptAddress(NamedTuple):
    """What was asked of a server."""

    server: str
    url: str
    """The prompt of a server is not that of another one, such as the staging server."""
    ref: str
    tag: str
    """Empty for servers without tags."""


class KeptPrompt(NamedTuple):
    """A prompt from the disk."""

    prompt: StoredPrompt
    last_good: str
    """When the server last returned it: date and time (UTC)."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    server: str
    url: str
    ref: str
    tag: str
    text: str
    version: str
    template_format: TemplateFormat | None
    model: str | None
    defaults: dict[str, Any]


class KeptPrompts:
    """One file per prompt in ``directory``, readable only by the daemon's user; created with the first prompt."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, address: PromptAddress, prompt: StoredPrompt) -> None:
        """Keep a prompt that its server has just returned.

        Raises:
            OSError: it cannot be written; the earlier one is kept.
        """
        path = self._path(address)
        content = msgspec.json.encode(
            _File(
                *address,
                prompt.text,
                prompt.version,
                prompt.template_format,
                prompt.model,
                defaults=dict(prompt.defaults),
            )
        )
        is_new = True
        with suppress(FileNotFoundError):
            if path.read_bytes() == content:
                os.utime(path)
                return
            is_new = False
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=self._directory, suffix=".new")
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            Path(unfinished).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(unfinished).unlink(missing_ok=True)
            raise
        if is_new:
            self._delete_oldest()

    def load(self, address: PromptAddress) -> KeptPrompt | None:
        """Return the last known good prompt; None if there is none that can be read."""
        try:
            with self._path(address).open("rb") as opened:
                file = msgspec.json.decode(opened.read(_MAX_FILE_BYTES), type=_File)
                modified = os.fstat(opened.fileno()).st_mtime
        except (OSError, msgspec.DecodeError, RecursionError):
            return None
        prompt = StoredPrompt(file.text, file.version, file.template_format, file.model, file.defaults)
        return KeptPrompt(prompt, f"{datetime.fromtimestamp(modified, UTC):%Y-%m-%d %H:%M:%S} UTC")

    def _path(self, address: PromptAddress) -> Path:
        return self._directory / f"{sha256(msgspec.json.encode(address)).hexdigest()[:32]}.json"

    def _delete_oldest(self) -> None:
        files = list(self._directory.glob("*.json"))
        if len(files) > MAX_KEPT_PROMPTS:
            with suppress(OSError):
                files.sort(key=lambda file: file.stat().st_mtime)
                for file in files[: len(files) - MAX_KEPT_PROMPTS]:
                    file.unlink(missing_ok=True)
