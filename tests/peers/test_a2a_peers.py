"""The clients of a2a-sdk, 1.x and 0.3, and google-adk talk to a hosted agent; those of a2a-sdk get its notifications,
and follow a task over a kill of the daemon."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.daemon_environment import daemon_environment
from tests.peers.conftest import PEERS, http_port, require
from tests.peers.test_peers import PROGRAMS, run
from tests.tools.agents.hosted import calls, script

pytestmark = [pytest.mark.large_peer, pytest.mark.process]

AGENT = """
a2a_push_hosts = ["127.0.0.1"]

[agents.helper]
description = "Helps."
prompt = "You help."
ask = true
"""


@contextmanager
def serving(directory: Path, port: int = 0) -> Iterator[tuple[str, str]]:
    """The URL of the agent of a daemon, and its token; the daemon is killed at the end."""
    state = directory / "state"
    env = daemon_environment(state, HOME=str(directory))
    flags = ["--simulate", "--port", "0", "--http-port", str(port)]
    with (directory / "daemon.log").open("ab") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "toold", "serve", *flags], env=env, cwd=directory, stdout=log, stderr=log
        )
    try:
        port = http_port(daemon, state)
        yield f"http://127.0.0.1:{port}/agents/helper", (state / "token").read_text().strip()
    finally:
        daemon.kill()
        daemon.wait(timeout=30)
        (state / "daemon.json").unlink(missing_ok=True)


def client(peer: str, program: str, directory: Path, *arguments: str) -> dict[str, Any]:
    require(peer)
    command = [str(PEERS / peer / "bin/python"), str(PROGRAMS / program), json.dumps(arguments)]
    return dict(run(command, directory))


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_sdk_1(binding: str, tmp_path: Path) -> None:
    """It verifies the card; sends, streams, reads, lists, cancels, gets notifications; and subscribes to a task that a
    kill interrupted."""
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "card.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = f'a2a_card_key = "card.pem"\na2a_url = "http://127.0.0.1:{port}"\n'
    (tmp_path / "toold.toml").write_text(settings + AGENT)
    with serving(tmp_path, port) as (url, token):
        talked = client("a2a", "a2a_1_0.py", tmp_path, url, token, binding, "talk")
    assert talked["whole"] == ["TASK_STATE_COMPLETED", "Simulated: whole"]
    assert talked["streamed"] == ["task", "status_update", "Simulated: streamed"]
    assert talked["slow"] == ["TASK_STATE_WORKING", "TASK_STATE_CANCELED"]
    assert (talked["listed"], "no task" in talked["absent"]) == (True, True)
    assert talked["pushed"] == ["artifact_update", "status_update", "Simulated: pushed"]
    with serving(tmp_path, port) as (url, token):
        resumed = client("a2a", "a2a_1_0.py", tmp_path, url, token, binding, "resume", talked["left"])
    assert resumed == {"first": "TASK_STATE_WORKING", "state": "TASK_STATE_COMPLETED"}


def test_sdk_0_3(tmp_path: Path) -> None:
    """It reads its own card; sends, streams, reads, cancels, gets notifications; and subscribes to a task that a kill
    interrupted."""
    (tmp_path / "toold.toml").write_text(AGENT)
    with serving(tmp_path) as (url, token):
        talked = client("a2a-0.3", "a2a_0_3.py", tmp_path, url, token, "talk")
    assert talked["whole"] == ["completed", "Simulated: whole"]
    assert talked["streamed"] == ["completed", "Simulated: streamed"]
    assert talked["slow"] == ["working", "canceled"]
    assert talked["pushed"] == ["completed", "Simulated: pushed"]
    with serving(tmp_path) as (url, token):
        resumed = client("a2a-0.3", "a2a_0_3.py", tmp_path, url, token, "resume", talked["left"])
    assert resumed == {"state": "completed"}


def test_adk(tmp_path: Path) -> None:
    """RemoteA2aAgent streams answers, stays in a context, and answers what the agent asks, in the same task."""
    (tmp_path / "toold.toml").write_text(AGENT)
    question = script(calls(("ask_user", {"question": "Which one?"})), "Blue it is.")
    with serving(tmp_path) as (url, token):
        talked = client("adk", "adk_a2a.py", tmp_path, url, token, question)
    assert [turn["errors"] for turn in talked.values()] == [[]] * 4, talked
    assert [talked[turn]["text"] for turn in ("first", "second")] == ["Simulated: first", "Simulated: second"]
    assert talked["first"]["context"] == talked["second"]["context"] != talked["asked"]["context"]
    assert talked["first"]["task"] != talked["second"]["task"]
    assert talked["first"]["events"] > 1, "it did not stream"
    assert talked["asked"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert "Which one?" in str(talked["asked"]["wanted"])
    assert (talked["answered"]["task"], talked["answered"]["state"]) == (
        talked["asked"]["task"],
        "TASK_STATE_COMPLETED",
    )
    assert talked["answered"]["text"] == "Blue it is."
