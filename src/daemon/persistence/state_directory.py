"""The state directory: one running daemon each, its token, its address. The database lies there too.

Exceptions::

    StateError                 the directory or one of its files cannot be used
    └── AlreadyRunningError    another daemon holds the directory
"""

import contextlib
import fcntl
import os
import secrets
import stat
import time
from pathlib import Path
from typing import Final, Self

import msgspec
import structlog
from pydantic import SecretStr

from ...protocol.daemon_address import (
    ADDRESS_FILE,
    LOCK_FILE,
    TOKEN_FILE,
    DaemonAddress,
    decode_address,
    encode_address,
)
from ...store import KEY_BYTES
from ..config.setting_types import MIN_TOKEN_CHARS, USABLE_TOKEN

DATABASE_FILE: Final = "toold.db"
AUDIT_KEY_FILE: Final = "audit.key"
"""Mode 0600: the key of the audit's chain in hexadecimal digits, one line."""
MAX_SECRET_BYTES: Final = 4096
_LOOK_S: Final = 0.05
"""Much longer than a command has the lock that only looks whether a daemon runs."""

_log = structlog.get_logger(__name__)


class StateError(Exception):
    """The state directory cannot be used; the message says which file and what to do."""


class AlreadyRunningError(StateError):
    """Another daemon runs in this state directory."""

    def __init__(self, directory: Path, pid: int | None, address: DaemonAddress | None) -> None:
        self.pid = pid
        self.address = address
        """Where it listens; None while it starts or stops."""
        who = f"a daemon with pid {pid}" if pid else "a daemon"
        where = f" on port {address.port}" if address else ""
        stop = f"stop it (kill {pid})" if pid else "stop it"
        super().__init__(
            f"{who} already runs{where} in {directory}; {stop}, or set TOOLD_STATE_DIR to another directory"
        )


def read_address(directory: Path) -> DaemonAddress | None:
    """Where the daemon of this state directory says it listens; None where no (whole) address file is."""
    try:
        return decode_address((directory / ADDRESS_FILE).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def read_pid(directory: Path) -> int | None:
    """The pid of the daemon that has, or last had, this state directory."""
    try:
        return int((directory / LOCK_FILE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def read_audit_key(directory: Path) -> bytes:
    """The key that signs the audit's chain of this state directory.

    Raises:
        StateError: there is none, it cannot be read, belongs to another user, or is no key.
    """
    path = directory / AUDIT_KEY_FILE
    try:
        content = read_private(path, MAX_SECRET_BYTES)
    except FileNotFoundError:
        raise StateError(f"there is no key at {path}; a daemon's first start makes one") from None
    except OSError as error:
        raise StateError(f"the audit's key file {path} cannot be read ({error.strerror})") from None
    try:
        key = bytes.fromhex(content.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise StateError(
            f"{path} holds no key ({2 * KEY_BYTES} hexadecimal digits); put the right one back, or move it away: then "
            "the next start makes one, and begins a new chain"
        )
    return key


class StateDirectory:
    """The directory of the running daemon, locked from opening to closing::

        with StateDirectory(settings.state_dir) as state:
            token = settings.token or state.load_or_create_token()

    Made with mode 0700 where it does not exist. A directory that others can write to is closed to them, or refused
    where it is theirs too: they could swap the token.

    Raises:
        AlreadyRunningError: another daemon runs here.
        StateError: the directory cannot be made, written or locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _keep_others_out(path)
            self._lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(
                f"the state directory {path} cannot be used ({error.strerror}); make it writable for this user, "
                "or set TOOLD_STATE_DIR to another directory"
            ) from None
        try:
            self._take_lock()
        except BaseException:
            os.close(self._lock)
            raise

    def _take_lock(self) -> None:
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOOK_S)
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._lock, 0)
            os.write(self._lock, f"{os.getpid()}\n".encode())
        except BlockingIOError:
            raise AlreadyRunningError(self.path, read_pid(self.path), read_address(self.path)) from None
        except OSError as error:
            raise StateError(
                f"{self.path / LOCK_FILE} cannot be locked ({error.strerror}); "
                "set TOOLD_STATE_DIR to a directory on a local disk with room"
            ) from None
        # What a crashed daemon left would send clients to a port that is nobody's now, or somebody else's.
        self.remove_address()

    @property
    def database(self) -> Path:
        return self.path / DATABASE_FILE

    def load_or_create_token(self) -> SecretStr:
        """The token of this directory, made at the first start: 43 URL-safe characters in a file only its owner reads.

        Raises:
            StateError: the file cannot be read or made, belongs to somebody else, or holds no usable token.
        """
        path = self.path / TOKEN_FILE
        try:
            if path.exists():
                return _read_token(path)
            token = secrets.token_urlsafe(32)
            write_private(path, token.encode() + b"\n")
        except OSError as error:
            raise StateError(f"the token file {path} cannot be used ({error.strerror})") from None
        return SecretStr(token)

    @property
    def has_audit_key(self) -> bool:
        """Whether there is a key that signed a chain."""
        return (self.path / AUDIT_KEY_FILE).exists()

    def remove_audit_key(self) -> None:
        """Remove a key that signed no chain. Never raises."""
        with contextlib.suppress(OSError):
            (self.path / AUDIT_KEY_FILE).unlink()

    def load_or_create_audit_key(self) -> bytes:
        """The key that signs the audit's chain, made at the first start, in a file only its owner reads.

        Raises:
            StateError: the file cannot be read or made, belongs to somebody else, or holds no key.
        """
        path = self.path / AUDIT_KEY_FILE
        try:
            if not path.exists():
                write_private(path, secrets.token_hex(KEY_BYTES).encode() + b"\n")
        except OSError as error:
            raise StateError(f"the audit's key file {path} cannot be made ({error.strerror})") from None
        return read_audit_key(self.path)

    def write_address(self, address: DaemonAddress) -> None:
        """Tell clients where the daemon listens; they see the old file or the new one, never half of it.

        Raises:
            StateError: the file cannot be written.
        """
        path = self.path / ADDRESS_FILE
        try:
            write_private(path, encode_address(address) + b"\n")
        except OSError as error:
            raise StateError(f"{path} cannot be written ({error.strerror})") from None

    def remove_address(self) -> None:
        """The daemon listens no more. Never raises: the next start removes what stayed.

        Where the directory was moved away and another one made, another daemon's address may stand at the path.
        """
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self._lock), (self.path / LOCK_FILE).stat()):
                (self.path / ADDRESS_FILE).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the address and let the next daemon in. A second call does nothing."""
        if self._lock >= 0:
            self.remove_address()
            # The lock file stays: were it removed, two daemons could hold locks on two files of one name.
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _keep_others_out(directory: Path) -> None:
    status = directory.stat()
    mode = stat.S_IMODE(status.st_mode)
    if not mode & 0o022:
        return
    # A sticky directory, such as /tmp, is shared on purpose and must stay as it is.
    if mode & stat.S_ISVTX or status.st_uid != os.geteuid():
        raise StateError(
            f"others can write to the state directory {directory}; set TOOLD_STATE_DIR to a directory of your own, "
            "such as one below it"
        )
    directory.chmod(mode & ~0o022)


def write_private(path: Path, content: bytes) -> None:
    """Put a file in place, whole or not at all, that only its owner may read. Who calls this holds the lock."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:  # noqa: PTH123 - of a descriptor
        file.write(content)
        file.flush()
        os.fsync(fd)
    unfinished.replace(path)


def read_private(path: Path, limit: int) -> bytes:
    """The first ``limit`` bytes of a file that is this user's, closed to others where it was not.

    Raises:
        StateError: it belongs to another user, is no file, or a link leads to one that is open to others: what lies
            elsewhere may have to be.
        OSError: it cannot be read.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise StateError(f"{path} is no file; remove it, and the next start makes one")
        if status.st_uid != os.geteuid():
            raise StateError(f"{path} belongs to another user; remove it, and the next start makes one")
        if stat.S_IMODE(status.st_mode) & 0o077:
            if path.is_symlink():
                raise StateError(f"{path} leads to a file that others may read; close that file to them (mode 0600)")
            os.fchmod(file.fileno(), 0o600)
            _log.warning("a file of secrets was open to others and is closed now", path=str(path))
        return file.read(limit)


def _without_waiting(path: str, flags: int) -> int:
    """As ``os.open``; a pipe that nobody writes to would not be open until somebody does."""
    return os.open(path, flags | os.O_NONBLOCK)


def _read_token(path: Path) -> SecretStr:
    token = read_private(path, MAX_SECRET_BYTES).decode("ascii", errors="replace").strip()
    if not USABLE_TOKEN.fullmatch(token):
        raise StateError(
            f"the token file {path} holds no usable token ({MIN_TOKEN_CHARS} characters or more, one line); "
            "remove it, and the next start makes one"
        )
    return SecretStr(token)
