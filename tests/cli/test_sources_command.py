"""``toold sources``: list, check and approve."""

import json
from pathlib import Path
from typing import Any

import pytest

DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "The CRM"},
    "servers": [{"url": "https://crm.example"}],
    "paths": {"/a/{id}": {"get": {"operationId": "getA"}, "head": {}}},
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a toold.toml has two sources, one of whose documents is missing."""
    (tmp_path / "crm.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    tables = "".join(f'[sources.{name}]\ntype = "openapi"\nspec = "{name}.json"\n' for name in ("crm", "shop"))
    (tmp_path / "toold.toml").write_text(tables, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_check_lists_repaired_and_omitted_parts(run: Any, directory: Path) -> None:
    """Omitted parts come first per source; an unusable document is exit code 1."""
    result = run("sources", "check")
    assert result.stdout.splitlines() == [
        "crm: omitted: HEAD /a/{id}: HEAD does not become a tool",
        "crm: repaired: GET /a/{id}: the path parameter 'id' is not declared; treated as a string",
        "crm: 1 tools of The CRM",
        "shop: shop.json does not exist or is not a file",
    ]
    assert result.exit_code == 1


def test_one_source_may_be_checked(run: Any, directory: Path) -> None:
    """Its tools by name, as JSON; one that is not there is a wrong command line."""
    result = run("sources", "check", "crm", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["crm"]["tools"] == ["crm_getA"]
    wrong = run("sources", "check", "crn")
    assert wrong.exit_code == 2
    assert "did you mean 'crm'?" in wrong.stderr


def test_a_missing_secret_of_an_api_is_reported(run: Any, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document can be checked without it, and the daemon may have the variable, so the exit code is 0."""
    table = 'type = "openapi"\nspec = "crm.json"\nauth = {type = "bearer", env = "CRM_TOKEN"}'
    (directory / "toold.toml").write_text(f"[sources.crm]\n{table}\n", encoding="utf-8")
    monkeypatch.delenv("CRM_TOKEN", raising=False)
    result = run("sources", "check")
    assert result.exit_code == 0
    unset = "the variable CRM_TOKEN is not set in this command's environment, which is not the daemon's"
    assert result.stdout.splitlines()[-2:] == [f"crm: {unset}; calls that need it fail", "crm: 1 tools of The CRM"]


@pytest.mark.parametrize(
    "table",
    [
        'command = ["a-program"]\nenv = {TOKEN = {env = "CRM_TOKEN"}}',
        'url = "https://crm.example/mcp"\nauth = {type = "bearer", env = "CRM_TOKEN"}',
    ],
    ids=["program", "address"],
)
def test_a_check_uses_its_own_environment(run: Any, directory: Path, table: str) -> None:
    """A secret's variable that is not set here may well be set in the daemon's, of which nothing is known."""
    (directory / "toold.toml").write_text(f'[sources.crm]\ntype = "mcp"\n{table}\n', encoding="utf-8")
    result = run("sources", "check")
    assert result.exit_code == 1
    assert result.stdout == (
        "crm: the variable CRM_TOKEN is not set in this command's environment, which is not the daemon's; "
        "set it here to check the server\n"
    )


def test_a_wrong_setting_is_named(run: Any, directory: Path) -> None:
    """With its file, as at the start of the daemon."""
    (directory / "toold.toml").write_text('[sources.crm]\ntype = "opnapi"\n', encoding="utf-8")
    result = run("sources", "check")
    assert result.exit_code == 2
    assert "sources (toold.toml): [sources.crm] type must be openapi" in result.stderr


def test_without_sources_the_next_step_is_printed(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is not an error."""
    monkeypatch.chdir(tmp_path)
    result = run("sources", "check")
    assert (result.exit_code, result.stdout) == (0, "No sources are configured; see docs/sources.md.\n")


def test_the_daemons_sources_are_listed(run: Any, operated: Any) -> None:
    """Each with its state and its tools; as JSON too."""
    row = {
        "name": "crm",
        "type": "openapi",
        "state": "failing",
        "tools": 3,
        "repaired": 1,
        "omitted": 2,
        "quarantined": 4,
        "problem": "away",
    }
    operated.answers["GET /operator/sources"] = (200, {"sources": [row]})
    assert "crm     openapi  failing  3      1         2        4            away" in run("sources", "list").stdout
    assert json.loads(run("sources", "list", "--json").stdout) == [row]
    operated.answers["GET /operator/sources"] = (200, {"sources": []})
    assert "No sources are configured" in run("sources", "list").stdout
