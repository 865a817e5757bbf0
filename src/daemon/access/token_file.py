"""The file of the named tokens in the state directory. Commands write it whether or not the daemon runs, which reads it
again when it is another one.
"""

import asyncio
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog

from ..config.config_watcher import Mark, mark_of
from ..persistence.state_directory import StateError, read_private, write_private
from .token_book import NamedToken, TokenBook

TOKENS_FILE: Final = "tokens.json"
"""Mode 0600: the hashes of the named tokens, and what each may."""
LOOK_S: Final = 0.25
"""How often it is looked at for the sake of those who are connected."""

_TICKS_OF_A_SECOND: Final = round(1 / LOOK_S)
_LOCK_FILE: Final = "tokens.lock"
_MAX_BYTES: Final = 16 * 1024 * 1024

_log = structlog.get_logger(__name__)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tokens: list[NamedToken]

    def __post_init__(self) -> None:
        if len({token.name for token in self.tokens}) < len(self.tokens):
            raise ValueError("a name stands there twice")  # msgspec makes a DecodeError of it


def read_tokens(directory: Path) -> TokenBook:
    """The tokens of a state directory; none where there is no file.

    Raises:
        StateError: the file cannot be read, belongs to another user, or is none of ours.
    """
    path = directory / TOKENS_FILE
    try:
        content = read_private(path, _MAX_BYTES)
    except FileNotFoundError:
        return TokenBook()
    except OSError as error:
        raise StateError(f"the file of the named tokens, {path}, cannot be read ({error.strerror})") from None
    try:
        return TokenBook(msgspec.json.decode(content, type=_File).tokens)
    except msgspec.DecodeError as error:
        raise StateError(
            f"{path} does not hold named tokens ({error}); put the right file back, or move it away and make the "
            "tokens anew"
        ) from None


def change_tokens(directory: Path, change: Callable[[TokenBook], TokenBook]) -> None:
    """Put what ``change`` makes of the tokens in their place; one command at a time does so.

    Raises:
        StateError: the directory or the file cannot be used.
        TokenError: ``change`` refused; nothing is written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(f"the state directory {directory} cannot be used ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tokens = change(read_tokens(directory)).tokens
        content = msgspec.json.format(msgspec.json.encode(_File(list(tokens))))
        write_private(directory / TOKENS_FILE, content + b"\n")
    except OSError as error:
        raise StateError(f"{directory / TOKENS_FILE} cannot be written ({error.strerror})") from None
    finally:
        os.close(lock)


class TokenFile:
    """The file as the daemon has it: looked at whenever it is asked for, read when it is another one, which
    ``on_change`` is told; of the first one as well.

    Raises:
        StateError: it cannot be used at the start.
    """

    def __init__(self, directory: Path, on_change: Callable[[TokenBook], None]) -> None:
        self._directory = directory
        self._on_change = on_change
        self._mark = self._look()
        self._book = read_tokens(directory)
        on_change(self._book)

    def __repr__(self) -> str:
        return f"<TokenFile {self._book!r}>"

    @property
    def book(self) -> TokenBook:
        """The tokens that there are now. Where the file cannot be read, nobody is let in by one."""
        mark = self._look()
        if mark != self._mark:
            self._mark = mark
            try:
                self._book = read_tokens(self._directory)
            except StateError as error:
                _log.error("named tokens cannot be read: none is good", reason=str(error))
                self._book = TokenBook()
            self._on_change(self._book)
        return self._book

    async def watch(self, close_unauthorized: Callable[[], None]) -> None:
        """For as long as the daemon runs: have those turned out whose token was revoked, or has expired."""
        ticks = 0
        while True:
            await asyncio.sleep(LOOK_S)
            before, ticks = self._book, ticks + 1
            if self.book is not before or ticks % _TICKS_OF_A_SECOND == 0:
                close_unauthorized()

    def _look(self) -> Mark | None:
        return mark_of(self._directory / TOKENS_FILE)
