"""``toold sources search`` and ``add registry:…``, with a stand-in for a registry."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

from tests.sources.test_registered_servers import registry  # noqa: F401 - a fixture


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
    options = ["--config", "toold.toml", "--allow-private", "--no-check"]
    added = run("sources", "add", *options, "registry:com.example/files")
    assert added.exit_code == 0, added.output
    assert (
        tomllib.loads((tmp_path / "toold.toml").read_text())["sources"]["files"]["url"] == "https://files.example/mcp"
    )
    missing = run("sources", "add", *options, "registry:com.example/none")
    assert "has no server 'com.example/none'" in missing.output
    monkeypatch.delenv("TOOLD_MCP_REGISTRY")
    assert "give the base URL of an MCP registry" in run("sources", "search", "files").output
