"""``toold token create | list | revoke``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from toold.daemon.access import read_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run


def test_a_token_is_printed_once(run: Run, bare_environment: Path) -> None:
    """Alone on stdout, so that it can be piped; the list has its name and what it may, and not the token."""
    options = ["--toolset", "lean", "--toolset", "mine", "--expires", "30d", "--max-running", "2"]
    made = run("token", "create", "ci", *options, "--daily-budget", "5 USD, 1 CNY")
    assert (made.exit_code, made.stdout.count("\n")) == (0, 1)
    assert "there is no toolset 'mine' in the configuration here: " in made.stderr
    assert "'lean'" not in made.stderr
    token = made.stdout.strip()
    kept = read_tokens(bare_environment).find(token)
    assert kept is not None
    assert (kept.toolsets, kept.max_running, kept.daily_budget) == (("lean", "mine"), 2, {"USD": 5.0, "CNY": 1.0})
    assert kept.expires_at is not None
    assert kept.expires_at - kept.created_at == 30 * 86_400
    listed = run("token", "list")
    assert "ci" in listed.stdout
    assert "lean, mine" in listed.stdout
    assert token not in listed.stdout
    [plain] = json.loads(run("token", "list", "--json").stdout)
    assert (plain["name"], plain["state"], "sha256" in plain) == ("ci", "good", False)


def test_a_token_is_revoked(run: Run, bare_environment: Path) -> None:
    """It is listed as such, and its name can be used again."""
    token = run("token", "create", "ci").stdout.strip()
    assert run("token", "revoke", "ci").stdout == "revoked: ci\n"
    found = read_tokens(bare_environment).find(token)
    assert found is not None
    assert found.revoked_at is not None
    assert "revoked" in run("token", "list").stdout
    assert run("token", "create", "ci").exit_code == 0


def test_no_token_is_told(run: Run) -> None:
    """An empty list says how one is made."""
    assert run("token", "list").stdout == "There is no named token; `toold token create NAME` makes one.\n"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["create", "a b"], 1, "a token's name is"),
        (["create", "ci", "--expires", "soon"], 2, "is no time such as 90m, 12h, 30d or 8w"),
        (["create", "ci", "--expires", "0d"], 2, "is no time"),
        (["create", "ci", "--daily-budget", "5 EUR"], 2, "must be amounts such as 5 USD"),
        (["create", "ci", "--toolset", "a,b"], 2, "is no toolset's name"),
        (["create", "ci", "--max-running", "0"], 2, "0 is not in the range"),
        (["revoke", "ci"], 1, "there is no token 'ci'"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, arguments: list[str], exit_code: int, said: str) -> None:
    """One line that says what is wrong; nothing is made."""
    result = run("token", *arguments)
    assert result.exit_code == exit_code
    assert said in " ".join(result.stderr.split())
    assert json.loads(run("token", "list", "--json").stdout) == []
