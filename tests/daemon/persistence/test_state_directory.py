"""The state directory of one daemon: its lock, its token, its audit key and its address."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from toold.daemon.persistence.state_directory import (
    AlreadyRunningError,
    StateDirectory,
    StateError,
    read_address,
    read_audit_key,
    read_pid,
)
from toold.protocol.daemon_address import ADDRESS_FILE, LOCK_FILE, TOKEN_FILE, DaemonAddress

HERE = DaemonAddress(pid=os.getpid(), host="127.0.0.1", port=1234, http_port=1235, tls=False, auth=True, version="1")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    with StateDirectory(tmp_path / "state") as directory:
        yield directory


def test_directory_is_created_for_its_owner_only(tmp_path: Path) -> None:
    """A missing directory is created with its parents and mode 0700."""
    with StateDirectory(tmp_path / "a" / "b") as state:
        assert mode(state.path) == 0o700


def test_writable_directory_is_restricted(tmp_path: Path) -> None:
    """A directory that others can write to loses this permission and stays readable."""
    tmp_path.chmod(0o775)
    with StateDirectory(tmp_path):
        assert mode(tmp_path) == 0o755


def test_shared_directory_is_refused_and_unchanged(tmp_path: Path) -> None:
    """A sticky directory such as /tmp is refused, and its mode stays unchanged."""
    tmp_path.chmod(0o1777)
    with pytest.raises(StateError, match="TOOLD_STATE_DIR"):
        StateDirectory(tmp_path)
    assert mode(tmp_path) == 0o1777


def test_file_instead_of_a_directory_is_refused(tmp_path: Path) -> None:
    """If the path is a file, the error has a remedy."""
    (tmp_path / "state").write_text("")
    with pytest.raises(StateError, match="set TOOLD_STATE_DIR to another directory"):
        StateDirectory(tmp_path / "state")


# --- one daemon ------------------------------------------------------------------------------------------------------


def test_second_start_reports_the_first(state: StateDirectory) -> None:
    """The second start reports the pid and the port of the first, and a remedy."""
    state.write_address(HERE)
    with pytest.raises(AlreadyRunningError) as caught:
        StateDirectory(state.path)
    message = str(caught.value)
    assert f"pid {os.getpid()} already runs on port 1234" in message
    assert f"kill {os.getpid()}" in message
    assert "TOOLD_STATE_DIR" in message
    assert caught.value.address == HERE


def test_second_start_reports_the_pid_before_the_first_listens(state: StateDirectory) -> None:
    """Before the first daemon listens, the error has only its pid."""
    with pytest.raises(AlreadyRunningError, match=f"pid {os.getpid()} already runs in"):
        StateDirectory(state.path)


def test_status_check_does_not_block_a_start(tmp_path: Path) -> None:
    """A start waits for the short lock of a status check."""
    StateDirectory(tmp_path).close()
    looking = os.open(tmp_path / "daemon.lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    end = threading.Timer(0.01, os.close, [looking])
    end.start()
    with StateDirectory(tmp_path):
        end.join()


def test_removed_lock_file_lets_no_second_daemon_in(state: StateDirectory) -> None:
    """The directory is locked too: a second start is refused with the pid of the first and its address stays."""
    state.write_address(HERE)
    (state.path / LOCK_FILE).unlink()
    for _ in range(2):
        with pytest.raises(AlreadyRunningError, match=f"pid {os.getpid()} already runs on port 1234"):
            StateDirectory(state.path)
    assert read_address(state.path) == HERE
    state.close()
    with StateDirectory(state.path):
        assert read_pid(state.path) == os.getpid()


def test_file_system_without_directory_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the lock file alone keeps a second daemon out, and the log says that it must stay."""
    lock = fcntl.flock

    def lock_files_only(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", lock_files_only)
    with capture_logs() as lines, StateDirectory(tmp_path), pytest.raises(AlreadyRunningError):
        StateDirectory(tmp_path)
    assert "daemon.lock" in lines[0]["event"]


def test_refused_start_does_not_affect_the_first(state: StateDirectory) -> None:
    """A refused start removes neither the address nor the lock of the first."""
    state.write_address(HERE)
    for _ in range(2):
        with pytest.raises(AlreadyRunningError):
            StateDirectory(state.path)
    assert read_address(state.path) == HERE


def test_close_releases_the_lock(tmp_path: Path) -> None:
    """Closing removes the address and releases the directory; a second close does nothing."""
    first = StateDirectory(tmp_path)
    first.write_address(HERE)
    first.close()
    first.close()
    assert read_address(tmp_path) is None
    with StateDirectory(tmp_path) as second, pytest.raises(AlreadyRunningError):
        StateDirectory(second.path)


@pytest.mark.process
def test_crash_releases_the_lock(tmp_path: Path) -> None:
    """A killed daemon leaves files but no lock: the next start succeeds and removes the old address."""
    script = (
        "import sys, pathlib, time; from toold.daemon.persistence.state_directory import StateDirectory\n"
        "from toold.protocol.daemon_address import DaemonAddress\n"
        "state = StateDirectory(pathlib.Path(sys.argv[1]))\n"
        "state.write_address(DaemonAddress(1, '127.0.0.1', 2, 3, False, True, '1'))\n"
        "print('up', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        with pytest.raises(AlreadyRunningError, match=f"pid {process.pid} already runs on port 2"):
            StateDirectory(tmp_path)
        process.send_signal(signal.SIGKILL)
    assert read_address(tmp_path) is not None
    with StateDirectory(tmp_path):
        assert read_address(tmp_path) is None
        assert read_pid(tmp_path) == os.getpid()


# --- the token -------------------------------------------------------------------------------------------------------


def test_first_start_creates_a_token(state: StateDirectory) -> None:
    """The token is long, stable, in a file of mode 0600, and not in the repr."""
    token = state.load_or_create_token()
    path = state.path / TOKEN_FILE
    assert len(token.get_secret_value()) == 43
    assert path.read_text() == f"{token.get_secret_value()}\n"
    assert mode(path) == 0o600
    assert state.load_or_create_token() == token
    assert token.get_secret_value() not in repr(token)


def test_each_directory_has_its_own_token(tmp_path: Path) -> None:
    """Tokens are random."""
    with StateDirectory(tmp_path / "a") as a, StateDirectory(tmp_path / "b") as b:
        assert a.load_or_create_token() != b.load_or_create_token()


def test_readable_token_file_is_restricted(state: StateDirectory) -> None:
    """A token file that others can read is restricted, and logged without the token."""
    path = state.path / TOKEN_FILE
    path.write_text("a-token-of-the-operator\n")
    path.chmod(0o644)
    with capture_logs() as lines:
        assert state.load_or_create_token().get_secret_value() == "a-token-of-the-operator"
    assert mode(path) == 0o600
    assert [line["log_level"] for line in lines] == ["warning"]
    assert "a-token-of" not in str(lines)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"short", b"two words but long enough", b"\xff" * 40, b"a" * 20 + b"\nb"]
)
def test_invalid_token_file_is_refused(state: StateDirectory, content: bytes) -> None:
    """An empty, short or malformed token is refused; the error names the file to remove and not its content."""
    path = state.path / TOKEN_FILE
    path.write_bytes(content)
    with pytest.raises(StateError, match="remove it, and the next start creates one") as caught:
        state.load_or_create_token()
    assert str(path) in str(caught.value)


def test_unreadable_token_is_refused(state: StateDirectory) -> None:
    """A token file that is a directory is refused."""
    (state.path / TOKEN_FILE).mkdir()
    with pytest.raises(StateError, match="cannot be used"):
        state.load_or_create_token()


# --- the audit's key -------------------------------------------------------------------------------------------------


def test_first_start_creates_the_audit_key(state: StateDirectory) -> None:
    """The audit key has 32 random bytes, is stable, and is in a file of mode 0600."""
    key = state.load_or_create_audit_key()
    path = state.path / "audit.key"
    assert (len(key), mode(path)) == (32, 0o600)
    assert path.read_text() == f"{key.hex()}\n"
    assert state.load_or_create_audit_key() == read_audit_key(state.path) == key


def test_unused_key_is_removed(state: StateDirectory) -> None:
    """A new key that signed nothing can be removed, and the next start creates another; removing a missing key does
    nothing."""
    had = [state.has_audit_key]
    key = state.load_or_create_audit_key()
    assert [*had, state.has_audit_key] == [False, True]
    state.remove_audit_key()
    state.remove_audit_key()
    assert state.load_or_create_audit_key() != key


def test_readable_key_file_is_restricted(state: StateDirectory) -> None:
    """A key file that others can read is restricted, and logged without the key."""
    key = state.load_or_create_audit_key()
    path = state.path / "audit.key"
    path.chmod(0o644)
    with capture_logs() as lines:
        read_audit_key(state.path)
    assert (mode(path), len(lines)) == (0o600, 1)
    assert key.hex() not in str(lines)


@pytest.mark.parametrize("content", ["", "not hexadecimal", "ab" * 31, "ab" * 33, "\udcff"])
def test_invalid_key_is_refused(state: StateDirectory, content: str) -> None:
    """A malformed key is refused and not replaced; the error has a remedy."""
    (state.path / "audit.key").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(StateError, match="restore the key"):
        state.load_or_create_audit_key()


def test_missing_key_is_reported(tmp_path: Path) -> None:
    """Reading a missing key reports an error and creates no file."""
    with pytest.raises(StateError, match=r"there is no key at .*audit\.key"):
        read_audit_key(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unreadable_key_is_refused(state: StateDirectory) -> None:
    """A key file that is a directory is refused."""
    (state.path / "audit.key").mkdir()
    with pytest.raises(StateError, match="cannot be read"):
        state.load_or_create_audit_key()


# --- the address -----------------------------------------------------------------------------------------------------


def test_address_is_read_back(state: StateDirectory) -> None:
    """The address is read back from a file of mode 0600, and no temporary file remains."""
    state.write_address(HERE)
    assert read_address(state.path) == HERE
    assert mode(state.path / ADDRESS_FILE) == 0o600
    assert sorted(path.name for path in state.path.iterdir()) == [ADDRESS_FILE, "daemon.lock"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_incomplete_address_counts_as_missing(tmp_path: Path, content: str) -> None:
    """Any other content of the file counts as no address."""
    (tmp_path / ADDRESS_FILE).write_text(content)
    assert read_address(tmp_path) is None


def test_unwritable_address_is_reported(state: StateDirectory) -> None:
    """If the address file cannot be replaced, the start fails with its name."""
    (state.path / ADDRESS_FILE).mkdir()
    with pytest.raises(StateError, match=ADDRESS_FILE):
        state.write_address(HERE)


@pytest.mark.parametrize("content", ["", "x"])
def test_lock_file_without_a_pid_has_no_pid(tmp_path: Path, content: str) -> None:
    """A lock file with other content has no pid."""
    (tmp_path / "daemon.lock").write_text(content)
    assert read_pid(tmp_path) is None
