"""``toold token``, and named tokens: create, list, revoke."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.daemon.access import read_tokens
from toold.protocol.daemon_address import DaemonAddress, encode_address

if TYPE_CHECKING:
    from tests.cli.conftest import Run


def test_the_token_of_the_state_directory_is_printed(run: Run, bare_environment: Path) -> None:
    """The token alone, so that it can be piped."""
    bare_environment.mkdir()
    (bare_environment / "token").write_text("a token\n")
    result = run("token")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "a token\n", "")


def test_the_environments_token_has_precedence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed token is the one that clients send."""
    monkeypatch.setenv("TOOLD_TOKEN", "from the environment")
    assert run("token").stdout == "from the environment\n"


def test_the_path_is_printed_whether_or_not_the_file_is_there(run: Run, bare_environment: Path) -> None:
    """``--path`` answers without a daemon ever having run."""
    assert run("token", "--path").stdout == f"{bare_environment / 'token'}\n"


def test_a_missing_token_is_explained(run: Run, bare_environment: Path) -> None:
    """Exit code 1, the path, and the remedy."""
    result = run("token")
    assert (result.exit_code, result.stdout) == (1, "")
    assert str(bare_environment / "token") in result.stderr
    assert "toold serve" in result.stderr


def test_without_authentication_no_token_is_needed(run: Run, bare_environment: Path) -> None:
    """The running daemon says so in its directory: nothing on stdout, a word on stderr, and no failure."""
    bare_environment.mkdir()
    address = DaemonAddress(pid=1, host="127.0.0.1", port=8079, http_port=8080, tls=False, auth=False, version="1")
    (bare_environment / "daemon.json").write_bytes(encode_address(address))
    result = run("token")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no token is needed: the daemon at ws://127.0.0.1:8079/ runs without authentication\n"


def test_a_token_is_printed_once(run: Run, bare_environment: Path) -> None:
    """Alone on stdout, so that it can be piped; the list has its name and what it may, and not the token."""
    options = ["--toolset", "lean", "--toolset", "mine", "--expires", "30d", "--max-running", "2"]
    result = run("token", "create", "ci", *options, "--daily-budget", "5 USD, 1 CNY")
    assert (result.exit_code, result.stdout.count("\n")) == (0, 1)
    assert "toolset 'mine' is not configured here; known: " in result.stderr
    assert "'lean'" not in result.stderr
    token = result.stdout.strip()
    stored = read_tokens(bare_environment).by_token(token)
    assert stored is not None
    assert (stored.toolsets, stored.max_running, stored.daily_budget) == (("lean", "mine"), 2, {"USD": 5.0, "CNY": 1.0})
    assert stored.expires_at is not None
    assert stored.expires_at - stored.created_at == 30 * 86_400
    listed = run("token", "list")
    assert "ci" in listed.stdout
    assert "lean, mine" in listed.stdout
    assert token not in listed.stdout
    [plain] = json.loads(run("token", "list", "--json").stdout)
    assert (plain["name"], plain["state"], "sha256" in plain) == ("ci", "valid", False)


def test_a_token_is_revoked(run: Run, bare_environment: Path) -> None:
    """It is listed as such, and its name can be used again."""
    token = run("token", "create", "ci").stdout.strip()
    assert run("token", "revoke", "ci").stdout == "revoked: ci\n"
    result = read_tokens(bare_environment).by_token(token)
    assert result is not None
    assert result.revoked_at is not None
    assert "revoked" in run("token", "list").stdout
    assert run("token", "create", "ci").exit_code == 0


def test_an_empty_list_is_explained(run: Run) -> None:
    """An empty list says how one is made."""
    assert run("token", "list").stdout == "There are no named tokens; `toold token create NAME` creates one.\n"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["create", "a b"], 1, "is not a valid token name; use 1 to 64 characters"),
        (["create", "ci", "--expires", "soon"], 2, "is not a duration such as 90m, 12h, 30d or 8w"),
        (["create", "ci", "--expires", "0d"], 2, "is not a duration"),
        (["create", "ci", "--daily-budget", "5 EUR"], 2, "must be amounts such as 5 USD"),
        (["create", "ci", "--toolset", "a,b"], 2, "is not a valid toolset name"),
        (["create", "ci", "--max-running", "0"], 2, "0 is not in the range"),
        (["revoke", "ci"], 1, "no token is named 'ci'"),
    ],
)
def test_invalid_token_options_are_refused(run: Run, arguments: list[str], exit_code: int, message: str) -> None:
    """One line that says what is wrong; nothing is made."""
    result = run("token", *arguments)
    assert result.exit_code == exit_code
    assert message in " ".join(result.stderr.split())
    assert json.loads(run("token", "list", "--json").stdout) == []
