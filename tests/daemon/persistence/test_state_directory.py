"""The state directory: one daemon each, its token, its address."""

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
from toold.protocol.daemon_address import ADDRESS_FILE, TOKEN_FILE, DaemonAddress

HERE = DaemonAddress(pid=os.getpid(), host="127.0.0.1", port=1234, http_port=1235, tls=False, auth=True, version="1")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    with StateDirectory(tmp_path / "state") as directory:
        yield directory


def test_directory_is_created_for_its_owner_only(tmp_path: Path) -> None:
    """A directory that is not there is made, parents included, with mode 0700."""
    with StateDirectory(tmp_path / "a" / "b") as state:
        assert mode(state.path) == 0o700


def test_writable_directory_is_restricted(tmp_path: Path) -> None:
    """A directory of ours that others can write to loses that, and stays readable as it was."""
    tmp_path.chmod(0o775)
    with StateDirectory(tmp_path):
        assert mode(tmp_path) == 0o755


def test_shared_directory_is_refused_and_unchanged(tmp_path: Path) -> None:
    """A sticky directory such as /tmp is nobody's state directory, and its mode is not touched."""
    tmp_path.chmod(0o1777)
    with pytest.raises(StateError, match="TOOLD_STATE_DIR"):
        StateDirectory(tmp_path)
    assert mode(tmp_path) == 0o1777


def test_file_instead_of_a_directory_is_refused(tmp_path: Path) -> None:
    """Where a file stands in the way the message says what to do."""
    (tmp_path / "state").write_text("")
    with pytest.raises(StateError, match="set TOOLD_STATE_DIR to another directory"):
        StateDirectory(tmp_path / "state")


# --- one daemon ------------------------------------------------------------------------------------------------------


def test_second_start_reports_the_first(state: StateDirectory) -> None:
    """The second start is told pid and port of the first, and how to go on."""
    state.write_address(HERE)
    with pytest.raises(AlreadyRunningError) as caught:
        StateDirectory(state.path)
    message = str(caught.value)
    assert f"pid {os.getpid()} already runs on port 1234" in message
    assert f"kill {os.getpid()}" in message
    assert "TOOLD_STATE_DIR" in message
    assert caught.value.address == HERE


def test_a_second_start_while_the_first_is_starting(state: StateDirectory) -> None:
    """Before the first one listens, its pid alone is told."""
    with pytest.raises(AlreadyRunningError, match=f"pid {os.getpid()} already runs in"):
        StateDirectory(state.path)


def test_status_check_does_not_block_a_start(tmp_path: Path) -> None:
    """A lock that is held for the moment of a look is waited for."""
    StateDirectory(tmp_path).close()
    looking = os.open(tmp_path / "daemon.lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    end = threading.Timer(0.01, os.close, [looking])
    end.start()
    with StateDirectory(tmp_path):
        end.join()


def test_refused_start_does_not_affect_the_first(state: StateDirectory) -> None:
    """The refused start removes neither address nor lock of the first."""
    state.write_address(HERE)
    for _ in range(2):
        with pytest.raises(AlreadyRunningError):
            StateDirectory(state.path)
    assert read_address(state.path) == HERE


def test_close_releases_the_lock(tmp_path: Path) -> None:
    """After the end the address is gone and the directory is free; closing twice does no harm."""
    first = StateDirectory(tmp_path)
    first.write_address(HERE)
    first.close()
    first.close()
    assert read_address(tmp_path) is None
    with StateDirectory(tmp_path) as second, pytest.raises(AlreadyRunningError):
        StateDirectory(second.path)


@pytest.mark.process
def test_crash_releases_the_lock(tmp_path: Path) -> None:
    """A daemon that was killed leaves files, no lock: the next start takes over and removes its address."""
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
    """The token is long, in a file of mode 0600, the same ever after, and shown by no repr."""
    token = state.load_or_create_token()
    path = state.path / TOKEN_FILE
    assert len(token.get_secret_value()) == 43
    assert path.read_text() == f"{token.get_secret_value()}\n"
    assert mode(path) == 0o600
    assert state.load_or_create_token() == token
    assert token.get_secret_value() not in repr(token)


def test_each_directory_has_its_own_token(tmp_path: Path) -> None:
    """Tokens are made at random."""
    with StateDirectory(tmp_path / "a") as a, StateDirectory(tmp_path / "b") as b:
        assert a.load_or_create_token() != b.load_or_create_token()


def test_readable_token_file_is_restricted(state: StateDirectory) -> None:
    """A file that others could read is closed to them, and the log says so, without the token."""
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
def test_an_unusable_token_file_is_refused(state: StateDirectory, content: bytes) -> None:
    """An empty, short or broken token is no token; the message says what to remove and shows nothing of it."""
    path = state.path / TOKEN_FILE
    path.write_bytes(content)
    with pytest.raises(StateError, match="remove it, and the next start creates one") as caught:
        state.load_or_create_token()
    assert str(path) in str(caught.value)


def test_a_token_that_cannot_be_read_is_refused(state: StateDirectory) -> None:
    """A directory in the token's place is told as what it is."""
    (state.path / TOKEN_FILE).mkdir()
    with pytest.raises(StateError, match="cannot be used"):
        state.load_or_create_token()


# --- the audit's key -------------------------------------------------------------------------------------------------


def test_first_start_creates_the_audit_key(state: StateDirectory) -> None:
    """It is 32 random bytes, in a file of mode 0600, and the same ever after."""
    key = state.load_or_create_audit_key()
    path = state.path / "audit.key"
    assert (len(key), mode(path)) == (32, 0o600)
    assert path.read_text() == f"{key.hex()}\n"
    assert state.load_or_create_audit_key() == read_audit_key(state.path) == key


def test_a_key_that_signed_nothing_is_removed(state: StateDirectory) -> None:
    """It is told from one that signed a chain, and the next start makes another; removing none does nothing."""
    had = [state.has_audit_key]
    key = state.load_or_create_audit_key()
    assert [*had, state.has_audit_key] == [False, True]
    state.remove_audit_key()
    state.remove_audit_key()
    assert state.load_or_create_audit_key() != key


def test_readable_key_file_is_restricted(state: StateDirectory) -> None:
    """Whoever could read it could forge; from now on nobody can, and the log says so, without the key."""
    key = state.load_or_create_audit_key()
    path = state.path / "audit.key"
    path.chmod(0o644)
    with capture_logs() as lines:
        read_audit_key(state.path)
    assert (mode(path), len(lines)) == (0o600, 1)
    assert key.hex() not in str(lines)


@pytest.mark.parametrize("content", ["", "not hexadecimal", "ab" * 31, "ab" * 33, "\udcff"])
def test_invalid_key_is_refused(state: StateDirectory, content: str) -> None:
    """A broken key is not replaced in silence: the message says what that would mean."""
    (state.path / "audit.key").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(StateError, match="restore the key"):
        state.load_or_create_audit_key()


def test_missing_key_is_reported(tmp_path: Path) -> None:
    """Reading makes none."""
    with pytest.raises(StateError, match=r"there is no key at .*audit\.key"):
        read_audit_key(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_cannot_be_read_is_refused(state: StateDirectory) -> None:
    """A directory in its place is told as what it is."""
    (state.path / "audit.key").mkdir()
    with pytest.raises(StateError, match="cannot be read"):
        state.load_or_create_audit_key()


# --- the address -----------------------------------------------------------------------------------------------------


def test_the_address_can_be_read_back(state: StateDirectory) -> None:
    """Clients read what the daemon wrote, in a file of its owner, with nothing unfinished beside it."""
    state.write_address(HERE)
    assert read_address(state.path) == HERE
    assert mode(state.path / ADDRESS_FILE) == 0o600
    assert sorted(path.name for path in state.path.iterdir()) == [ADDRESS_FILE, "daemon.lock"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_incomplete_address_counts_as_missing(tmp_path: Path, content: str) -> None:
    """Whatever else stands in the file, it is no address."""
    (tmp_path / ADDRESS_FILE).write_text(content)
    assert read_address(tmp_path) is None


def test_unwritable_address_is_reported(state: StateDirectory) -> None:
    """Where the file cannot be replaced the start fails with its name."""
    (state.path / ADDRESS_FILE).mkdir()
    with pytest.raises(StateError, match=ADDRESS_FILE):
        state.write_address(HERE)


@pytest.mark.parametrize("content", ["", "x"])
def test_a_lock_file_without_a_pid(tmp_path: Path, content: str) -> None:
    """A lock file of another making tells no pid."""
    (tmp_path / "daemon.lock").write_text(content)
    assert read_pid(tmp_path) is None
