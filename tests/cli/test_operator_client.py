"""How an operator's command finds the local daemon, and reads its answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from toold.cli.daemon_connection import NoConnectionError
from toold.cli.operator_client import OperatorRefusedError, local_daemon, operator_request, running_pid
from toold.daemon.persistence.state_directory import StateDirectory, read_pid
from toold.protocol.daemon_address import DaemonAddress

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Operated


def test_the_daemon_is_found_by_its_lock(operated: Operated, bare_environment: Path) -> None:
    """The lock and the address file give its directory, its pid and its ports."""
    here = local_daemon()
    assert (here.directory, here.pid) == (bare_environment, operated.pid)
    assert here.address is not None
    assert here.address.http_port == operated.http_port


def test_without_a_daemon_no_request_is_sent(operated: Operated) -> None:
    """A crashed daemon's address is ignored: another program may listen on its port and would get the token."""
    operated.crash()
    with pytest.raises(NoConnectionError, match=r"no daemon runs in .*TOOLD_STATE_DIR"):
        operator_request("GET", "/calls")
    assert operated.requests == []


def test_requests_carry_the_token(operated: Operated) -> None:
    """The request has the token of the state directory, the path below /operator, and the query."""
    operated.answers["GET /operator/calls"] = (200, {"running": []})
    assert operator_request("GET", "/calls", recent=3) == {"running": []}
    (request,) = operated.requests
    assert (request.path, request.token) == ("/operator/calls?recent=3", "the-token-in-the-directory")


def test_a_daemon_that_does_not_listen_yet(operated: Operated, bare_environment: Path) -> None:
    """The error says that the daemon is starting or stopping."""
    (bare_environment / "daemon.json").unlink()
    with pytest.raises(NoConnectionError, match="is starting or stopping"):
        operator_request("GET", "/calls")


def test_a_refusal_has_the_daemons_message(operated: Operated) -> None:
    """The command prints the message and exits with 1."""
    operated.answers["GET /operator/calls"] = (503, {"error": {"code": "SERVICE_UNAVAILABLE", "message": "Not now."}})
    with pytest.raises(OperatorRefusedError, match=r"^Not now\.$") as refused:
        operator_request("GET", "/calls")
    assert refused.value.exit_code == 1


@pytest.mark.parametrize(
    ("env", "named"), [({"TOOLD_TOKEN": "another"}, "unset TOOLD_TOKEN"), ({}, "set TOOLD_TOKEN to the token")]
)
def test_a_refused_token_is_reported_with_its_source(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], named: str
) -> None:
    """The message says where the token comes from, and does not show it."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    operated.answers["GET /operator/calls"] = (401, {"error": {"code": "UNAUTHORIZED", "message": "no"}})
    with pytest.raises(NoConnectionError, match=named) as refused:
        operator_request("GET", "/calls")
    assert "another" not in str(refused.value)
    assert operated.requests[0].token == env.get("TOOLD_TOKEN", "the-token-in-the-directory")


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b""])
def test_an_answer_that_is_not_json(operated: Operated, body: Any) -> None:
    """An answer that is not JSON is not the daemon's."""
    operated.answers["GET /operator/calls"] = (200, body)
    with pytest.raises(NoConnectionError, match=f"does not answer at .*{operated.http_port}.*toold doctor"):
        operator_request("GET", "/calls")


def test_a_port_without_a_server(operated: Operated) -> None:
    """If a daemon holds its lock but its port does not answer, the error says so."""
    operated.close_port()
    with pytest.raises(NoConnectionError, match="does not answer"):
        operator_request("GET", "/calls")


# --- the lock --------------------------------------------------------------------------------------------------------


def test_the_running_daemon_is_known_by_its_lock(tmp_path: Path) -> None:
    """The pid of the running daemon, whatever older files say; None afterwards."""
    with StateDirectory(tmp_path):
        assert running_pid(tmp_path) == os.getpid()
    assert read_pid(tmp_path) == os.getpid()
    assert running_pid(tmp_path) is None


def test_a_daemon_is_found_without_its_lock_file(tmp_path: Path) -> None:
    """A removed lock file hides no running daemon: the directory is locked, and the address has the pid."""
    with StateDirectory(tmp_path) as state:
        state.write_address(DaemonAddress(os.getpid(), "127.0.0.1", 1, 2, tls=False, auth=True, version="1"))
        (tmp_path / "daemon.lock").unlink()
        assert running_pid(tmp_path) == os.getpid()
    assert running_pid(tmp_path) is None


def test_no_daemon_runs_in_a_missing_directory(tmp_path: Path) -> None:
    """A missing directory, an unused one and a file have no daemon; the check creates nothing."""
    (tmp_path / "file").touch()
    for directory in (tmp_path, tmp_path / "nowhere", tmp_path / "file"):
        assert running_pid(directory) is None
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_lock_without_a_pid_yet(tmp_path: Path) -> None:
    """Between taking the lock and writing the pid, no pid is reported."""
    with StateDirectory(tmp_path):
        (tmp_path / "daemon.lock").write_text("")
        assert running_pid(tmp_path) is None
