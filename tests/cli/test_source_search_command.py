"""``toold sources search`` and ``add registry:…``, with a stand-in for a registry."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

from tests.sources.test_registered_servers import registry  # noqa: F401 - a fixture
from toold.cli.source_search_command import remote_table


def test_searching_and_adding(run: "Run", registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """The table is written as the registry describes the server; names come safe for a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLD_MCP_REGISTRY", registry)
    found = run("sources", "search", "--allow-private", "files")
    assert found.exit_code == 0, found.output
    assert "com.example/files" in found.output
    assert "remote, npm" in found.output
    assert "\x1b" not in found.output
    (tmp_path / "toold.toml").write_text("")
    options = ["--config", "toold.toml", "--allow-private", "--no-check", "--yes"]
    added = run("sources", "add", *options, "registry:com.example/files")
    assert added.exit_code == 0, added.output
    table = tomllib.loads((tmp_path / "toold.toml").read_text())["sources"]["files"]
    assert table == {"type": "mcp", "url": "https://files.example/mcp"}  # its host is not that of the registry
    missing = run("sources", "add", *options, "registry:com.example/none")
    assert "has no server 'com.example/none'" in missing.output
    monkeypatch.delenv("TOOLD_MCP_REGISTRY")
    assert "give the base URL of an MCP registry" in run("sources", "search", "files").output


def test_a_server_of_a_registry_is_confirmed(
    run: "Run",
    registry: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The operator sees what would be contacted and run, and with which values, before anything is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toold.toml").write_text("")
    options = ["--config", "toold.toml", "--registry", registry, "--allow-private", "--bearer-env", "TOKEN"]
    refused = run("sources", "add", *options, "registry:com.example/files", stdin="n\n")
    assert "address https://files.example/mcp, with the token in TOKEN\n" in refused.output
    assert "command npx -y @example/files@1.2.0 --mode=fast /d, with your FILES_KEY, LEVEL=info\n" in refused.output
    assert (refused.exit_code, (tmp_path / "toold.toml").read_text()) == (1, "")
    wrong = run("sources", "add", *options, "--env", "A=b", "registry:com.example/files")
    assert "takes no arguments, no --env and no --type" in wrong.output


def test_only_the_registry_s_own_host_may_be_private() -> None:
    """Any other host is chosen by the publisher of the server."""
    table = {"type": "mcp", "url": "http://10.0.0.1/mcp"}
    assert remote_table(table, {}, "registry.example") == table
    assert remote_table(table, {}, None) == table
    assert remote_table(table, {}, "10.0.0.1") == {**table, "allow_private": ["10.0.0.1"]}
