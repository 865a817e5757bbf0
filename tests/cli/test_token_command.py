"""``toold token``: the token, or where it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.protocol.daemon_address import DaemonAddress, encode_address

if TYPE_CHECKING:
    from tests.cli.conftest import Run


def test_the_token_of_the_state_directory_is_printed(run: Run, bare_environment: Path) -> None:
    """The token alone, so that it can be piped."""
    bare_environment.mkdir()
    (bare_environment / "token").write_text("a token\n")
    result = run("token")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "a token\n", "")


def test_the_environments_token_counts_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What clients would send is what is printed."""
    monkeypatch.setenv("TOOLD_TOKEN", "from the environment")
    assert run("token").stdout == "from the environment\n"


def test_the_path_is_printed_whether_or_not_the_file_is_there(run: Run, bare_environment: Path) -> None:
    """``--path`` answers without a daemon ever having run."""
    assert run("token", "--path").stdout == f"{bare_environment / 'token'}\n"


def test_without_a_token_it_says_what_makes_one(run: Run, bare_environment: Path) -> None:
    """Exit code 1, the path, and the remedy."""
    result = run("token")
    assert (result.exit_code, result.stdout) == (1, "")
    assert str(bare_environment / "token") in result.stderr
    assert "toold serve" in result.stderr


def test_where_auth_is_off_no_token_is_needed(run: Run, bare_environment: Path) -> None:
    """The running daemon says so in its directory: nothing on stdout, a word on stderr, and no failure."""
    bare_environment.mkdir()
    address = DaemonAddress(pid=1, host="127.0.0.1", port=8079, http_port=8080, tls=False, auth=False, version="1")
    (bare_environment / "daemon.json").write_bytes(encode_address(address))
    result = run("token")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no token is needed: the daemon at ws://127.0.0.1:8079/ runs with auth off\n"
