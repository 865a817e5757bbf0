"""The last known good prompts of servers, stored on disk for the time when a server cannot be reached. Blocks."""

from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ..sources import KeptFiles
from ..tools import TemplateFormat
from .server_answers import StoredPrompt

MAX_KEPT_PROMPTS: Final = 1000
"""The maximum number of prompts; the oldest beyond it are deleted. A prompt has at most a million characters, usually
some thousand.
"""
_MAX_FILE_BYTES: Final = 16 * 1024**2
"""The maximum size of a file: a million characters escaped as JSON, and the other fields."""


class PromptAddress(NamedTuple):
    """A request to a server."""

    server: str
    url: str
    """Distinguishes the prompt from one with the same name at another server, such as a staging server."""
    ref: str
    tag: str
    """The tag; empty for servers without tags."""


class KeptPrompt(NamedTuple):
    """A prompt from the disk."""

    prompt: StoredPrompt
    last_good: str
    """The date and time (UTC) at which the server last returned the prompt."""


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
    """One file per prompt in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._files = KeptFiles(directory, max_files=MAX_KEPT_PROMPTS, max_bytes=_MAX_FILE_BYTES)

    def keep(self, address: PromptAddress, prompt: StoredPrompt) -> None:
        """Store a prompt that its server has just returned.

        Raises:
            OSError: the file cannot be written; the earlier prompt stays.
        """
        file = _File(
            *address,
            prompt.text,
            prompt.version,
            prompt.template_format,
            prompt.model,
            defaults=dict(prompt.defaults),
        )
        self._files.keep(msgspec.json.encode(address), msgspec.json.encode(file))

    def load(self, address: PromptAddress) -> KeptPrompt | None:
        """Return the last known good prompt; None if there is no readable one."""
        kept = self._files.load(msgspec.json.encode(address))
        if kept is None:
            return None
        try:
            file = msgspec.json.decode(kept.content, type=_File)
        except (msgspec.DecodeError, RecursionError):
            return None
        prompt = StoredPrompt(file.text, file.version, file.template_format, file.model, file.defaults)
        return KeptPrompt(prompt, kept.last_good)
