"""The file of named tokens in the state directory. Commands write it whether or not the daemon runs; the daemon reads
it again when it changes.
"""

import asyncio
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog

from ..config.config_watcher import FileMark, mark_of
from ..persistence.state_directory import StateError, read_private, write_private
from .token_book import NamedToken, TokenBook

TOKENS_FILE: Final = "tokens.json"
"""Mode 0600: the hashes, permissions and limits of the named tokens."""
CHECK_INTERVAL_S: Final = 0.25
"""How often the file is checked on behalf of connected clients."""

_TICKS_PER_SECOND: Final = round(1 / CHECK_INTERVAL_S)
_LOCK_FILE: Final = "tokens.lock"
_MAX_BYTES: Final = 16 * 1024 * 1024

_log = structlog.get_logger(__name__)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tokens: list[NamedToken]

    def __post_init__(self) -> None:
        if len({token.name for token in self.tokens}) < len(self.tokens):
            raise ValueError("two tokens have the same name")  # msgspec converts it to a DecodeError


def read_tokens(directory: Path) -> TokenBook:
    """Reads the tokens of a state directory; an absent file means no tokens.

    Raises:
        StateError: the file cannot be read, belongs to another user, or has invalid content.
    """
    path = directory / TOKENS_FILE
    try:
        content = read_private(path, _MAX_BYTES)
    except FileNotFoundError:
        return TokenBook()
    except OSError as error:
        raise StateError(f"cannot read the named tokens in {path} ({error.strerror})") from None
    try:
        return TokenBook(msgspec.json.decode(content, type=_File).tokens)
    except msgspec.DecodeError as error:
        raise StateError(
            f"{path} does not contain named tokens ({error}); restore the file, or move it away and create the "
            "tokens again"
        ) from None


def change_tokens(directory: Path, change: Callable[[TokenBook], TokenBook]) -> None:
    """Applies ``change`` to the stored tokens, under a lock against other commands.

    Raises:
        StateError: the directory or the file cannot be used.
        TokenError: raised by ``change``; nothing is written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(f"cannot use the state directory {directory} ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tokens = change(read_tokens(directory)).tokens
        content = msgspec.json.format(msgspec.json.encode(_File(list(tokens))))
        write_private(directory / TOKENS_FILE, content + b"\n")
    except OSError as error:
        raise StateError(f"cannot write {directory / TOKENS_FILE} ({error.strerror})") from None
    finally:
        os.close(lock)


class TokenFile:
    """The daemon's view of the file. Each access checks the file and reads it if it changed; ``on_change`` gets each
    new book, including the first.

    Raises:
        StateError: the file cannot be read at the start.
    """

    def __init__(self, directory: Path, on_change: Callable[[TokenBook], None]) -> None:
        self._directory = directory
        self._on_change = on_change
        self._mark = self._fingerprint()
        self._book = read_tokens(directory)
        on_change(self._book)

    def __repr__(self) -> str:
        return f"<TokenFile {self._book!r}>"

    @property
    def book(self) -> TokenBook:
        """The current tokens. If the file cannot be read, no named token is valid."""
        mark = self._fingerprint()
        if mark != self._mark:
            self._mark = mark
            try:
                self._book = read_tokens(self._directory)
            except StateError as error:
                _log.error("cannot read the named tokens, so none is valid", reason=str(error))
                self._book = TokenBook()
            self._on_change(self._book)
        return self._book

    async def watch(self, close_unauthorized: Callable[[], None]) -> None:
        """Runs as long as the daemon: calls ``close_unauthorized`` when a token may have been revoked or expired."""
        ticks = 0
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            before, ticks = self._book, ticks + 1
            if self.book is not before or ticks % _TICKS_PER_SECOND == 0:
                close_unauthorized()

    def _fingerprint(self) -> FileMark | None:
        return mark_of(self._directory / TOKENS_FILE)
