"""The state directory of one running daemon: its lock, token, address, audit key and database.

Exceptions::

    StateError                 the directory or one of its files cannot be used
    ├── AlreadyRunningError    another daemon holds the directory
    └── FullDiskError          the disk is too full to write a file
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
from ...store import KEY_BYTES, is_out_of_space
from ..config.setting_types import MIN_TOKEN_CHARS, USABLE_TOKEN

DATABASE_FILE: Final = "toold.db"
AUDIT_KEY_FILE: Final = "audit.key"
"""The key of the audit chain: one line of hexadecimal digits, mode 0600."""
MAX_SECRET_BYTES: Final = 4096
_LOCK_RETRY_S: Final = 0.05
"""How long to wait for the lock: much longer than a command holds it to check for a running daemon."""

_log = structlog.get_logger(__name__)


class StateError(Exception):
    """The state directory cannot be used; the message says which file and what to do."""


class AlreadyRunningError(StateError):
    """Another daemon runs in this state directory."""

    def __init__(self, directory: Path, pid: int | None, address: DaemonAddress | None) -> None:
        self.pid = pid
        self.address = address
        """The address of the other daemon; None while it starts or stops."""
        who = f"a daemon with pid {pid}" if pid else "a daemon"
        where = f" on port {address.port}" if address else ""
        stop = f"stop it (kill {pid})" if pid else "stop it"
        super().__init__(
            f"{who} already runs{where} in {directory}; {stop}, or set TOOLD_STATE_DIR to another directory"
        )


class FullDiskError(StateError):
    """The disk is too full to write a file of the state directory; a later attempt may succeed."""


def read_address(directory: Path) -> DaemonAddress | None:
    """Returns the address of the daemon of this state directory; None without a valid address file."""
    try:
        return decode_address((directory / ADDRESS_FILE).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def read_pid(directory: Path) -> int | None:
    """Returns the pid of the daemon that holds, or last held, this state directory."""
    try:
        return int((directory / LOCK_FILE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def read_audit_key(directory: Path) -> bytes:
    """Returns the key that signs the audit chain of this state directory.

    Raises:
        StateError: the file is missing, cannot be read, belongs to another user, or is not a key.
    """
    path = directory / AUDIT_KEY_FILE
    try:
        content = read_private(path, MAX_SECRET_BYTES)
    except FileNotFoundError:
        raise StateError(f"there is no key at {path}; a daemon's first start creates one") from None
    except OSError as error:
        raise StateError(f"the audit key file {path} cannot be read ({error.strerror})") from None
    try:
        key = bytes.fromhex(content.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise StateError(
            f"{path} does not contain a key ({2 * KEY_BYTES} hexadecimal digits); restore the key, or move the file "
            "away: then the next start creates a key and begins a new chain"
        )
    return key


class StateDirectory:
    """The directory of the running daemon, locked while open::

        with StateDirectory(settings.state_dir) as state:
            token = settings.token or state.load_or_create_token()

    Created with mode 0700 if it does not exist. Write access of other users is removed, or the directory is refused
    if it belongs to another user or is shared: they could replace the token.

    Raises:
        AlreadyRunningError: another daemon runs here.
        StateError: the directory cannot be created, written or locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _restrict_writes(path)
            self._directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _unusable_directory(path, error) from None
        self._lock = -1
        try:
            self._take_locks()
        except BaseException:
            self._release()
            raise
        # The address of a crashed daemon would send clients to an unused port, or to another program.
        self.remove_address()

    def _take_locks(self) -> None:
        """Locks the directory, which cannot be replaced while it has files, and also the lock file, because some file
        systems cannot lock directories.
        """
        try:
            try:
                _lock(self._directory)
            except BlockingIOError:
                raise
            except OSError as error:
                _log.warning("the state directory cannot be locked; keep its daemon.lock", reason=error.strerror)
            try:
                self._lock = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise _unusable_directory(self.path, error) from None
            _lock(self._lock)
            self._write_pid()
        except BlockingIOError:
            address = read_address(self.path)
            pid = read_pid(self.path) or (address.pid if address else None)
            raise AlreadyRunningError(self.path, pid, address) from None
        except OSError as error:
            raise StateError(
                f"{self.path / LOCK_FILE} cannot be locked ({error.strerror}); "
                "set TOOLD_STATE_DIR to a directory on a local disk with free space"
            ) from None

    def _release(self) -> None:
        for descriptor in (self._lock, self._directory):
            if descriptor >= 0:
                os.close(descriptor)
        self._lock = self._directory = -1

    def _write_pid(self) -> None:
        """Writes the pid, as information for people. On a full disk, the pid reuses the block of an earlier pid."""
        pid = f"{os.getpid()}\n".encode()
        try:
            os.pwrite(self._lock, pid, 0)
            os.ftruncate(self._lock, len(pid))
        except OSError as error:
            _log.warning("pid cannot be written to the lock file", reason=error.strerror)
            os.ftruncate(self._lock, 0)  # not the pid of another process

    @property
    def database(self) -> Path:
        return self.path / DATABASE_FILE

    def load_or_create_token(self) -> SecretStr:
        """Returns the token of this directory, created at the first start: 43 URL-safe characters, in a file that only
        its owner can read.

        Raises:
            StateError: the file cannot be read or created, belongs to another user, or has no valid token.
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
        """Whether a key exists. If so, it has signed a chain."""
        return (self.path / AUDIT_KEY_FILE).exists()

    def remove_audit_key(self) -> None:
        """Deletes a key that has not signed a chain. Never raises."""
        with contextlib.suppress(OSError):
            (self.path / AUDIT_KEY_FILE).unlink()

    def load_or_create_audit_key(self) -> bytes:
        """Returns the key that signs the audit chain, created at the first start, in a file for its owner only.

        Raises:
            StateError: the file cannot be read or created, belongs to another user, or is not a key.
        """
        path = self.path / AUDIT_KEY_FILE
        try:
            if not path.exists():
                write_private(path, secrets.token_hex(KEY_BYTES).encode() + b"\n")
        except OSError as error:
            raise StateError(f"the audit key file {path} cannot be created ({error.strerror})") from None
        return read_audit_key(self.path)

    def write_address(self, address: DaemonAddress) -> None:
        """Publishes the address to clients, atomically.

        Raises:
            FullDiskError: the disk is full.
            StateError: the file cannot be written for another reason.
        """
        path = self.path / ADDRESS_FILE
        try:
            write_private(path, encode_address(address) + b"\n")
        except OSError as error:
            kind = FullDiskError if is_out_of_space(error) else StateError
            raise kind(f"{path} cannot be written ({error.strerror})") from None

    def remove_address(self) -> None:
        """Withdraws the address. Never raises: after a failure, the next start withdraws it.

        The file is renamed, so that its block lets the next start publish an address on a full disk. If the directory
        was moved and another one created, the path may have another daemon's address.
        """
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self._directory), self.path.stat()):
                published = self.path / ADDRESS_FILE
                published.rename(_unfinished(published))

    def close(self) -> None:
        """Deletes the address and releases the lock. A second call does nothing."""
        if self._directory >= 0:
            self.remove_address()
            self._release()  # the lock file stays: otherwise two daemons could lock two files of the same name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(_LOCK_RETRY_S)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unusable_directory(path: Path, error: OSError) -> StateError:
    return StateError(
        f"the state directory {path} cannot be used ({error.strerror}); make it writable for this user, "
        "or set TOOLD_STATE_DIR to another directory"
    )


def _restrict_writes(directory: Path) -> None:
    status = directory.stat()
    mode = stat.S_IMODE(status.st_mode)
    if not mode & 0o022:
        return
    # A sticky directory, such as /tmp, is shared on purpose and must stay as it is.
    if mode & stat.S_ISVTX or status.st_uid != os.geteuid():
        raise StateError(
            f"other users can write to the state directory {directory}; set TOOLD_STATE_DIR to a private directory, "
            "such as one below it"
        )
    directory.chmod(mode & ~0o022)


def write_private(path: Path, content: bytes) -> None:
    """Writes a file atomically, readable only by its owner. The caller holds the lock.

    Overwrites an earlier unfinished file, so that no further block is needed on a full disk.
    """
    unfinished = _unfinished(path)
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:  # noqa: PTH123 - a descriptor
        os.fchmod(fd, 0o600)
        file.write(content)
        file.flush()
        os.ftruncate(fd, len(content))
        os.fsync(fd)
    unfinished.replace(path)


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def read_private(path: Path, limit: int) -> bytes:
    """Returns the first ``limit`` bytes of a file of this user; restricts the file to its owner.

    Raises:
        StateError: it belongs to another user, is not a regular file, or is a link to a file that others can read. The
            mode of a link's target is not changed, because it may be intended.
        OSError: it cannot be read.
    """
    with open(path, "rb", opener=_open_nonblocking) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise StateError(f"{path} is not a regular file; remove it, and the next start creates one")
        if status.st_uid != os.geteuid():
            raise StateError(f"{path} belongs to another user; remove it, and the next start creates one")
        if stat.S_IMODE(status.st_mode) & 0o077:
            if path.is_symlink():
                raise StateError(f"{path} links to a file that other users can read; set the mode of that file to 0600")
            os.fchmod(file.fileno(), 0o600)
            _log.warning("secret file was readable by other users; restricted to its owner", path=str(path))
        return file.read(limit)


def _open_nonblocking(path: str, flags: int) -> int:
    """Opens like ``os.open``, but without blocking on a pipe that has no writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _read_token(path: Path) -> SecretStr:
    token = read_private(path, MAX_SECRET_BYTES).decode("ascii", errors="replace").strip()
    if not USABLE_TOKEN.fullmatch(token):
        raise StateError(
            f"the token file {path} does not contain a valid token ({MIN_TOKEN_CHARS} characters or more, one line); "
            "remove it, and the next start creates one"
        )
    return SecretStr(token)
