"""``wss://`` with the operator's certificate."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from toold.client import ConnectionFailedError, MCPWebSocketClient


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key, both PEM."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, which makes the certificate")
    directory = tmp_path_factory.mktemp("tls")
    cert, key = directory / "cert.pem", directory / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=toold of a test"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


@pytest.fixture
def secure(start_daemon: Any, certificate: tuple[Path, Path]) -> Any:
    """A daemon that speaks TLS."""
    cert, key = certificate
    return start_daemon(TOOLD_TLS_CERT=str(cert), TOOLD_TLS_KEY=str(key))


@pytest.fixture
async def trusting(secure: Any, certificate: tuple[Path, Path]) -> AsyncIterator[MCPWebSocketClient]:
    """A client that trusts the certificate."""
    context = ssl.create_default_context(cafile=str(certificate[0]))
    async with MCPWebSocketClient("127.0.0.1", secure.port, secure.token, tls=context) as client:
        yield client


async def test_calls_go_over_wss(secure: Any, trusting: MCPWebSocketClient) -> None:
    """With a trusted certificate calls work as without TLS, including large answers."""
    assert trusting.url == f"wss://127.0.0.1:{secure.port}/"
    assert await trusting.call_tool("echo", {"text": "secret"}) == (True, [{"type": "text", "text": "secret"}], None)
    long = "x" * 3_000_000
    answers = await asyncio.gather(*(trusting.call("echo", {"text": f"{number}{long}"}) for number in range(4)))
    assert [answer.text[:2] for answer in answers] == ["0x", "1x", "2x", "3x"]


async def test_an_unknown_certificate_is_not_trusted(secure: Any) -> None:
    """The client's error names the certificate with advice; the client does not retry."""
    client = MCPWebSocketClient(f"wss://127.0.0.1:{secure.port}/", token=secure.token)
    assert not await client.connect(max_retries=3)
    assert isinstance(client.last_error, ConnectionFailedError)
    assert "certificate" in str(client.last_error)
    assert "cafile" in str(client.last_error)
    assert not client.last_error.retryable


async def test_plain_ws_to_a_tls_port_fails_and_logs_no_traceback(secure: Any) -> None:
    """The daemon does not answer plain requests; the client names the address, and the daemon stops cleanly."""
    client = MCPWebSocketClient(f"ws://127.0.0.1:{secure.port}/", token=secure.token)
    assert not await client.connect(max_retries=1)
    assert f"ws://127.0.0.1:{secure.port}/" in str(client.last_error)
    assert secure.token not in str(client.last_error)
    assert await asyncio.to_thread(secure.stop) == 0
    assert "Traceback" not in secure.logged()


def test_the_command_line_finds_a_tls_daemon(secure: Any, certificate: tuple[Path, Path], command: Any) -> None:
    """The state directory announces TLS; OpenSSL's settings determine the trusted certificates."""
    called = command("call", "echo", "text=hi", state=secure.state, SSL_CERT_FILE=str(certificate[0]))
    assert (called.returncode, called.stdout) == (0, "hi\n")
    refused = command("call", "echo", "text=hi", state=secure.state)
    assert refused.returncode == 3
    assert "SSL_CERT_FILE" in refused.stderr
