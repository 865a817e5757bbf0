"""The container's programs as they are shipped, on other ports and without a container: real supervisor and nginx.

What only an image can show, such as its layers and its user, is not tested here.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from tests.daemon_environment import daemon_environment
from toold.client import MCPWebSocketClient
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

DOCKER = Path(__file__).parents[2] / "docker"
TOKEN = "the-token-of-a-secret-file"
PASSWORD = "open sesame"

pytestmark = pytest.mark.skipif(
    shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None,
    reason="nginx is not installed (Debian: apt install nginx-light)",
)


@dataclass
class Stack:
    """A running container's programs."""

    process: subprocess.Popen[bytes]
    directory: Path
    port: int
    env: dict[str, str]
    tls: bool = False

    @property
    def origin(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return self.origin.replace("http", "ws", 1) + "/ws"

    def logged(self) -> str:
        return (self.directory / "log").read_text()

    def daemon_pid(self) -> int:
        pid: int = json.loads((self.directory / "state" / "daemon.json").read_text())["pid"]
        return pid

    def nginx_pid(self) -> int:
        return int((self.directory / "run" / "nginx.pid").read_text())

    def healthy(self) -> bool:
        """The result of the image's health check."""
        check = [sys.executable, str(DOCKER / "health.py")]
        return subprocess.run(check, env=self.env, capture_output=True, timeout=60, check=False).returncode == 0

    def until(self, holds: Callable[[], bool], timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds():
            assert self.process.poll() is None, self.logged()
            assert time.monotonic() < deadline, self.logged()
            time.sleep(0.05)

    def stop(self) -> int:
        """Stops the container: SIGTERM to the first program, which is supervisor."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def begin(directory: Path, *, output: socket.socket | None = None, **settings: str) -> Stack:
    """Start the entrypoint, on free ports. Its output is a file, or a socket, which cannot be opened by name."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(3)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        public, port, http_port = (one.getsockname()[1] for one in sockets)
    (directory / "token").write_text(TOKEN)
    (directory / "password").write_text(PASSWORD)
    env = {
        **daemon_environment(directory / "state"),
        "TOOLD_RUN_DIR": str(directory / "run"),
        "TOOLD_PUBLIC_PORT": str(public),
        "TOOLD_PORT": str(port),
        "TOOLD_HTTP_PORT": str(http_port),
        "TOOLD_SIMULATE": "true",
        "TOOLD_TOKEN_FILE": str(directory / "token"),
        "TOOLD_PAGES_PASSWORD_FILE": str(directory / "password"),
        **settings,
    }
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(DOCKER / "entrypoint.py")],
            stdout=log if output is None else output.fileno(),
            stderr=subprocess.STDOUT,
            env=env,
            cwd=directory,
        )
    return Stack(process, directory, public, env, "TOOLD_TLS_CERT" in settings)


def end(stack: Stack) -> None:
    """Whatever a test left."""
    family = psutil.Process(stack.process.pid).children(recursive=True) if stack.process.poll() is None else []
    if stack.process.poll() is None:
        stack.process.kill()
        stack.process.wait()
    for one in family:
        if one.is_running():
            one.kill()


@pytest.fixture
def start_stack(starts_processes: None, tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    """Start a stack with settings of the test's own."""
    started: list[Stack] = []

    def start(*, output: socket.socket | None = None, **settings: str) -> Stack:
        started.append(begin(tmp_path, output=output, **settings))
        return started[-1]

    yield start
    for stack in started:
        end(stack)


@pytest.fixture(scope="module")
def stack(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A healthy stack, which must exit cleanly."""
    running = begin(tmp_path_factory.mktemp("container"))
    try:
        running.until(running.healthy)
        yield running
        assert running.stop() == 0, running.logged()
        assert "Traceback" not in running.logged()
    finally:
        end(running)


async def greet(stack: Stack, socket: ClientConnection, **hello: Any) -> dict[str, Any]:
    await socket.send(json.dumps({"op": "hello", "session_id": "through nginx", "token": TOKEN, **hello}))
    ack: dict[str, Any] = json.loads(await socket.recv())
    return ack


async def test_clients_call_through_nginx(stack: Stack) -> None:
    """The client library connects at ``/ws`` and gets its answers, large ones and thirty at once."""
    async with MCPWebSocketClient(stack.url, token=TOKEN) as client:
        text = "x" * 3_000_000
        assert await client.call_tool("echo", {"text": text}) == (True, [{"type": "text", "text": text}], None)
        answers = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(30)))
        assert [outputs[0]["text"] for _, outputs, _ in answers] == [str(n) for n in range(30)]


async def test_a_models_text_is_streamed(stack: Stack) -> None:
    """Pieces of an answer come through nginx before the answer does."""
    async with connect(stack.url) as socket:
        assert (await greet(stack, socket, features=["stream"]))["ok"]
        call = {"op": "call_tool", "request_id": "1", "name": "chat", "arguments": {"prompt": "say something longer"}}
        await socket.send(json.dumps(call))
        ops = []
        while "call_tool_res" not in ops:
            ops.append(json.loads(await socket.recv())["op"])
        assert ops.count("stream_chunk") > 1


async def test_the_daemon_checks_the_token(stack: Stack) -> None:
    """nginx does not authenticate: the daemon refuses a wrong token with its close code."""
    async with connect(stack.url) as socket:
        assert not (await greet(stack, socket, token="a-token-that-is-wrong"))["ok"]
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4003


@pytest.mark.parametrize(
    ("path", "auth", "status"),
    [
        ("/healthz", None, 200),
        ("/health", None, 404),
        ("/v1/models", None, 401),
        ("/agents", None, 401),
        ("/agents/none/", None, 401),
        ("/", None, 401),
        ("/metrics", None, 401),
        ("/readyz", None, 401),
        ("/metrics", ("operator", "a guess"), 401),
        ("/metrics", ("somebody", PASSWORD), 401),
        ("/", ("operator", PASSWORD), 200),
        ("/metrics", ("operator", PASSWORD), 200),
        ("/readyz", ("operator", PASSWORD), 200),
        ("/operator/calls", ("operator", PASSWORD), 404),
        ("/nothing", ("operator", PASSWORD), 404),
    ],
)
def test_access_to_each_page(stack: Stack, path: str, auth: tuple[str, str] | None, status: int) -> None:
    """Whether it lives is everybody's to ask; the pages for people ask for the password; the rest is not there."""
    assert httpx.get(stack.origin + path, auth=auth, timeout=30).status_code == status


async def test_the_dashboard_is_served_with_its_sign_in(stack: Stack) -> None:
    """A browser signs in through nginx, calls a tool with its events, and signs out; other origins are refused."""
    async with httpx.AsyncClient(base_url=stack.origin, trust_env=False, timeout=60, verify=False) as http:
        assert (await http.get("/ui")).headers["location"] == "/ui/now"
        assert (await http.get("/ui/now")).headers["location"].startswith("/ui/sign-in")
        own, foreign = {"origin": stack.origin}, {"origin": "https://elsewhere.example"}
        assert (await http.post("/ui/sign-in", data={"token": TOKEN}, headers=foreign)).status_code == 403
        assert (await http.post("/ui/sign-in", data={"token": "wrong"}, headers=own)).status_code == 401
        assert (await http.post("/ui/sign-in", data={"token": TOKEN}, headers=own)).status_code == 303
        page = await http.get("/ui/tools/echo")
        assert f"curl {stack.origin}/mcp" in page.text
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        csrf = page.text.partition('name="csrf" content="')[2][:64]
        headers = {**own, "x-csrf-token": csrf, "accept": "text/event-stream"}
        form = {"/text": "through nginx"}
        assert "through nginx" in (await http.post("/ui/tools/echo/call", data=form, headers=headers)).text
        assert (await http.post("/ui/tools/echo/call", data=form, headers={**headers, **foreign})).status_code == 403
        async with http.stream("GET", "/ui/live") as live:
            assert "event: html" in await anext(live.aiter_text())
        assert (await http.get("/operator/settings")).status_code == 404
        assert (await http.post("/ui/sign-out", headers=headers)).status_code == 303
        assert (await http.get("/ui/session")).status_code == 401


def test_the_daemon_limits_the_size_of_bodies(stack: Stack) -> None:
    """At ``/mcp`` one that is too large gets the daemon's answer, with ``max_frame_bytes`` in it, and not nginx's."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
    for path in ("/mcp", "/mcp/full"):
        answer = httpx.post(stack.origin + path, headers=headers, json={"much": "x" * 20 * 1024 * 1024}, timeout=60)
        assert answer.status_code == 413
        assert "exceeds the limit of 20971520 bytes" in answer.json()["error"]["message"]


def test_the_operator_api_is_not_public(stack: Stack) -> None:
    """Not even with the daemon's token."""
    answer = httpx.get(f"{stack.origin}/operator/calls", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
    assert answer.status_code == 404


@pytest.mark.parametrize(("arguments", "said"), [(["calls"], "TOOL"), (["token"], TOKEN)], ids=["calls", "token"])
def test_the_operators_commands_work_in_the_container(stack: Stack, arguments: list[str], said: str) -> None:
    """As ``docker exec`` runs them: with the container's environment, which names a token's file and has no token."""
    command = [sys.executable, "-m", "toold", *arguments]
    ran = subprocess.run(command, env=stack.env, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert said in ran.stdout
    assert (stack.directory / "state" / "token").stat().st_mode & 0o777 == 0o600


def test_secrets_are_in_no_log(stack: Stack) -> None:
    """Neither the token nor the password, and no query of an address, is written to what the container prints."""
    httpx.get(f"{stack.origin}/healthz?token=in+an+address", timeout=30)
    stack.until(lambda: "GET /healthz" in stack.logged())
    assert not any(secret in stack.logged() for secret in (TOKEN, PASSWORD, "in+an+address"))


async def test_a_stop_drains(start_stack: Callable[..., Stack]) -> None:
    """At SIGTERM a running call is still answered through nginx, then the connection ends with 1012, and all ends."""
    stack = start_stack()
    await asyncio.to_thread(stack.until, stack.healthy)
    pids = [stack.daemon_pid(), stack.nginx_pid()]
    async with connect(stack.url) as socket:
        assert (await greet(stack, socket, features=["ack", "going_away"]))["ok"]
        arguments = {"text": "drained", "delay_ms": 1500}
        call = {"op": "call_tool", "request_id": "1", "name": "sim_effect", "arguments": arguments}
        await socket.send(json.dumps(call))
        while json.loads(await socket.recv())["op"] != "call_tool_ack":
            pass
        stack.process.send_signal(signal.SIGTERM)
        frames = []
        with suppress(ConnectionClosed):
            while True:
                frames.append(json.loads(await socket.recv()))
    assert "going_away" in [frame["op"] for frame in frames]
    (answer,) = [frame for frame in frames if frame["op"] == "call_tool_res"]
    assert answer.get("error") is None
    assert socket.close_code == 1012
    assert await asyncio.to_thread(stack.stop) == 0, stack.logged()
    assert not any(psutil.pid_exists(pid) for pid in pids)


async def test_programs_that_exit_are_restarted(start_stack: Callable[..., Stack]) -> None:
    """After ``kill -9`` of the daemon, then of nginx, the same client object just gets its next answers."""
    stack = start_stack()
    await asyncio.to_thread(stack.until, stack.healthy)
    async with MCPWebSocketClient(stack.url, token=TOKEN) as client:
        await client.call_tool("echo", {"text": "before"})
        daemon, nginx = stack.daemon_pid(), stack.nginx_pid()
        os.kill(daemon, signal.SIGKILL)
        assert (await client.call_tool("echo", {"text": "after the daemon"}, timeout=60))[0]
        assert stack.daemon_pid() != daemon
        family = psutil.Process(nginx).children()
        os.kill(nginx, signal.SIGKILL)
        for worker in family:
            worker.kill()  # it would keep the port until its connections end
        assert (await client.call_tool("echo", {"text": "after nginx"}, timeout=60))[0]
        assert stack.nginx_pid() != nginx


async def test_the_public_port_speaks_tls(start_stack: Callable[..., Stack], tmp_path: Path) -> None:
    """With a certificate the port speaks TLS, to clients and to the health check."""
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*words, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    stack = start_stack(TOOLD_TLS_CERT=certificate, TOOLD_TLS_KEY=key)
    await asyncio.to_thread(stack.until, stack.healthy)
    context = ssl.create_default_context(cafile=certificate)
    assert stack.url.startswith("wss://")
    async with MCPWebSocketClient(stack.url, token=TOKEN, tls=context) as client:
        assert (await client.call_tool("echo", {"text": "sealed"}))[0]


def test_a_daemon_that_cannot_start_ends_the_container(start_stack: Callable[..., Stack]) -> None:
    """After some attempts the container gives up, and its log says what was wrong."""
    stack = start_stack(TOOLD_MAX_RUNNING="many", TOOLD_START_RETRIES="1")
    stack.process.wait(timeout=300)
    assert "daemon failed to start; stopping the container" in stack.logged()
    assert "TOOLD_MAX_RUNNING" in stack.logged()


def test_an_invalid_environment_is_one_line(start_stack: Callable[..., Stack]) -> None:
    """It ends with 1 before anything is started."""
    stack = start_stack(TOOLD_AUTH="false")
    assert stack.process.wait(timeout=60) == 1
    assert stack.logged() == (
        "container: cannot start: TOOLD_AUTH is false, but this container's port is public: unset it\n"
    )


def test_an_unwritable_state_directory_is_one_line(start_stack: Callable[..., Stack]) -> None:
    """It says what to change on the host, before anything is started."""
    stack = start_stack(TOOLD_STATE_DIR="/proc/toold")
    assert stack.process.wait(timeout=60) == 1
    (line,) = stack.logged().splitlines()
    assert line.startswith("container: cannot start: the state directory /proc/toold cannot be written")
    assert "chown -R" in line


def test_an_output_that_cannot_be_opened_by_name_is_used_anyway(start_stack: Callable[..., Stack]) -> None:
    """supervisor opens its output by name, which fails for a socket: the container starts, logs and stops as usual."""
    ours, theirs = socket.socketpair()
    printed = bytearray()

    def read() -> None:
        while chunk := ours.recv(65536):
            printed.extend(chunk)

    with ours:
        with theirs:
            stack = start_stack(output=theirs)
        reader = threading.Thread(target=read)
        reader.start()
        stack.until(stack.healthy)
        assert stack.stop() == 0
        reader.join()
    assert b"the output cannot be opened by name (/dev/fd/1: " in printed
    assert b'"event": "stopped"' in printed  # the daemon's last line
