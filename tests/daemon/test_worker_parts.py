"""The parts of a supervisor that need no process."""

import socket
from pathlib import Path

import pytest
from toold.daemon.persistence.key_files import KEY_FILES, make_key_files
from toold.daemon.persistence.state_directory import StateError
from toold.daemon.workers.restart_policy import FIRST_DELAY_S, LONGEST_DELAY_S, STABLE_S, RestartPolicy
from toold.daemon.workers.shared_ports import SharedPorts
from toold.daemon.workers.worker_files import LINKED, worker_directory
from toold.daemon.workers.worker_slot import SLOT_VARIABLE, WorkerSlot, encode_slot, slot_in
from toold.serving import listen_on

HOST = "127.0.0.1"
SLOT = WorkerSlot(1, 2, "machine.1", 8079, 8080, "/state/workers/1", 3, announces=False)


def test_the_delay_doubles_while_a_worker_keeps_ending() -> None:
    """Each start that fails soon makes the next delay longer, up to a bound; after a long run it is the first again."""
    policy = RestartPolicy()
    delays = [policy.delay_s(ran_s=0.1, fenced=False) for _ in range(9)]
    assert delays[:3] == [FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S]
    assert delays[-1] == LONGEST_DELAY_S
    assert policy.delay_s(ran_s=STABLE_S, fenced=False) == FIRST_DELAY_S


def test_a_fenced_worker_starts_at_once() -> None:
    """It lost its lease, so nothing is wrong with its start."""
    assert RestartPolicy().delay_s(ran_s=0.1, fenced=True) == 0


def test_a_slot_is_read_back() -> None:
    """A worker finds in its environment what the supervisor has put there; any other process finds none."""
    assert slot_in({SLOT_VARIABLE: encode_slot(SLOT)}) == SLOT
    assert slot_in({}) is None


def test_a_slot_that_a_person_has_set_is_refused() -> None:
    """The message names the variable."""
    with pytest.raises(StateError, match=SLOT_VARIABLE):
        slot_in({SLOT_VARIABLE: "1"})


def test_a_worker_sees_the_files_of_the_supervisor(tmp_path: Path) -> None:
    """A token that is written later is found through the link, and a second start changes nothing."""
    directory = worker_directory(tmp_path, 0)
    (tmp_path / "token").write_text("secret")
    assert (directory / "token").read_text() == "secret"
    assert worker_directory(tmp_path, 0) == directory
    assert sorted(path.name for path in directory.iterdir()) == sorted(LINKED)


def test_a_file_in_the_place_of_a_link_is_replaced(tmp_path: Path) -> None:
    """A copy of a key in a worker's directory would hide the supervisor's."""
    directory = worker_directory(tmp_path, 0)
    (directory / "audit.key").unlink()
    (directory / "audit.key").write_text("old")
    worker_directory(tmp_path, 0)
    assert (directory / "audit.key").is_symlink()


def test_a_port_in_use_is_refused() -> None:
    """The ports are shared with the workers alone: another service that listens there is an error."""
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=rf"port {port} on 127\.0\.0\.1 is in use"):
            SharedPorts(HOST, port, 0)


def test_workers_listen_on_reserved_ports() -> None:
    """Two servers listen on the reserved port, each also on another one; the reservation accepts nothing."""
    with SharedPorts(HOST, 0, 0) as ports:
        assert ports.port != ports.http_port
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, ports.port))
        first = listen_on(HOST, ports.port, "--port", shared=True)
        second = listen_on(HOST, ports.port, "--port", shared=True)
        try:
            assert first[0].getsockname() == second[0].getsockname()
            assert len({each.getsockname()[1] for each in (*first, *second)}) == 3
        finally:
            for each in (*first, *second):
                each.close()


def test_all_nodes_derive_the_same_keys(tmp_path: Path) -> None:
    """Nodes with the same audit key have the same key files, each with another key; an existing file stays."""
    one, other = tmp_path / "one", tmp_path / "other"
    for directory in (one, other):
        directory.mkdir()
    (other / KEY_FILES[0]).write_text("kept")
    for directory in (one, other):
        make_key_files(directory, b"k" * 32)
    assert (other / KEY_FILES[0]).read_text() == "kept"
    keys, others = ([(directory / name).read_text() for name in KEY_FILES] for directory in (one, other))
    assert keys[1:] == others[1:]
    assert len(set(keys)) == len(KEY_FILES)
    assert (one / KEY_FILES[0]).stat().st_mode & 0o077 == 0
