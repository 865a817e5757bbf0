"""``workers = N``: several processes on the same two ports, which clients see as one daemon."""

import asyncio
import json
import os
import re
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from tests.chaos.cluster_nodes import Database
from tests.e2e.conftest import Command, Peer, Process, start
from tests.postgres_cluster import Cluster, running_cluster
from tests.waiting import until

WORKERS = 2
SESSIONS = 12
"""That all of them reach the same worker has a chance of 1 in 2,048."""


@pytest.fixture(scope="module")
def server(starts_processes: None) -> Iterator[Cluster]:
    """A PostgreSQL server."""
    with running_cluster() as cluster:
        yield cluster


def new_settings(server: Cluster) -> dict[str, Any]:
    """The settings of workers on a new database."""
    name = f"toold_{secrets.token_hex(4)}"
    server.sql(f"CREATE DATABASE {name}")
    database = Database(server, name)
    asyncio.run(database.migrate())
    return {
        "TOOLD_STORE": database.url,
        "TOOLD_CLUSTER_SECRET": "a-secret-of-all-nodes",
        "TOOLD_LEASE_S": "5",
        "TOOLD_WORKERS": str(WORKERS),
        "TOOLD_NODE_NAME": "machine",
        "TOOLD_GRACE_PERIOD_S": "2",
        "TOOLD_LOG_FORMAT": "json",
    }


@pytest.fixture(scope="module")
def service(server: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A supervisor with its workers. SIGTERM must stop them all, with 0; and none may log a traceback."""
    running = start(tmp_path_factory.mktemp("workers"), **new_settings(server))
    yield running
    pids = worker_pids(running)
    assert running.stop() == 0, running.logged()
    assert [pid for pid in pids if alive(pid)] == []
    assert running.tracebacks() == []


def worker_pids(service: Process) -> list[int]:
    """The processes of the workers that run, in the order of their numbers."""
    files = [service.state / "workers" / str(number) / "daemon.json" for number in range(WORKERS)]
    return [json.loads(file.read_text())["pid"] for file in files if file.exists()]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def sessions(service: Process, stack: AsyncExitStack) -> list[Peer]:
    return [
        await stack.enter_async_context(service.peer(features=["ack", "resume", "going_away"])) for _ in range(SESSIONS)
    ]


def holders(peers: list[Peer]) -> set[str]:
    """The processes that answered the hellos."""
    return {peer.ack["server"]["epoch"] for peer in peers}


async def test_connections_are_shared_between_the_workers(service: Process) -> None:
    """Connections to the one WebSocket port and requests to the one HTTP port reach both processes."""
    async with AsyncExitStack() as stack:
        peers = await sessions(service, stack)
        assert len(holders(peers)) == WORKERS
        answers = await asyncio.gather(*(peer.call("1", "echo", text=str(place)) for place, peer in enumerate(peers)))
        assert [answer["outputs"][0]["text"] for answer in answers] == [str(place) for place in range(SESSIONS)]


async def test_a_session_is_found_from_every_worker(service: Process) -> None:
    """A client that resumes its session again and again, and so reaches both workers, always gets it."""
    async with service.peer(features=["ack", "resume"]) as first:
        key = first.ack["resume_key"]
    for _ in range(SESSIONS):
        async with service.peer(features=["ack", "resume"], resume={"key": key}) as peer:
            assert peer.ack["resumed"]
            assert (await peer.call(secrets.token_hex(4), "echo", text="here"))["ok"]
            key = peer.ack.get("resume_key", key)


async def test_a_killed_worker_is_started_again_and_loses_no_session(service: Process) -> None:
    """After kill -9 of one worker its sessions are resumed at the other one at once, and a new process replaces it."""
    async with AsyncExitStack() as stack:
        peers = await sessions(service, stack)
        before = worker_pids(service)
        os.kill(before[1], signal.SIGKILL)
        lost = [peer for peer in peers if await is_cut(peer)]
        assert lost
        for peer in lost:
            async with service.peer(features=["ack", "resume"], resume={"key": peer.ack["resume_key"]}) as again:
                assert again.ack["resumed"]
        await until(lambda: worker_pids(service)[1:] not in ([], before[1:]))
        assert worker_pids(service)[0] == before[0]


async def is_cut(peer: Peer) -> bool:
    """Whether the connection has ended; a connection that has not answers a call."""
    try:
        return not (await peer.call("cut?", "echo", text="?"))["ok"]
    except Exception:  # noqa: BLE001 - however it ended
        return True


async def test_a_reload_reaches_all_workers(service: Process, command: Command) -> None:
    """After ``toold reload`` each worker has the new settings."""
    (service.state / "toold.toml").write_text("max_running = 3\n")
    reloaded = await asyncio.to_thread(lambda: command("reload", state=service.state))
    assert reloaded.returncode == 0, reloaded.stderr

    async def limits() -> list[Any]:
        async with AsyncExitStack() as stack:
            peers = await sessions(service, stack)
            assert len(holders(peers)) == WORKERS
            return [(await peer.status())["limits"]["running"]["limit"] for peer in peers]

    async with asyncio.timeout(60):
        while await limits() != [3] * SESSIONS:
            await asyncio.sleep(0.1)


async def test_the_operators_commands_see_one_daemon(service: Process, command: Command) -> None:
    """``toold status`` lists the workers as nodes."""

    async def both_listed() -> bool:
        status = await asyncio.to_thread(lambda: command("status", state=service.state))
        assert status.returncode == 0, status.stderr
        return "machine.0" in status.stdout and "machine.1" in status.stdout

    await until(both_listed)


async def test_a_browser_is_signed_in_at_all_workers(service: Process) -> None:
    """The dashboard's cookie is valid at both workers, a link signs in once, and signing out ends it at both."""

    cookies = httpx.Cookies()

    async def ask(method: str, path: str, **sent: Any) -> httpx.Response:
        """On a new connection, so that any worker may answer."""
        url = f"http://127.0.0.1:{service.http_port}"
        async with httpx.AsyncClient(base_url=url, trust_env=False, cookies=cookies) as http:
            return await http.request(method, path, **sent)

    signed_in = await ask("POST", "/ui/sign-in", data={"token": service.token})
    assert signed_in.status_code == 303
    link = (await ask("POST", "/operator/ui-link", headers={"Authorization": f"Bearer {service.token}"})).json()["path"]
    opened = [(await ask("GET", link)).status_code for _ in range(4)]
    assert opened == [303, 410, 410, 410]
    cookies.update(signed_in.cookies)
    pages = [await ask("GET", "/ui/now") for _ in range(SESSIONS)]
    assert {page.status_code for page in pages} == {200}
    csrf = re.search(r'name="csrf" content="([0-9a-f]+)"', pages[0].text)
    assert csrf
    assert (await ask("POST", "/ui/sign-out", data={"csrf": csrf[1]})).status_code == 303
    assert {(await ask("GET", "/ui/now")).status_code for _ in range(SESSIONS)} == {303}


def test_workers_end_with_their_supervisor(server: Cluster, start_daemon: Callable[..., Process]) -> None:
    """If the supervisor is killed, its workers stop, so that the next start finds free ports and directories."""
    service = start_daemon(**new_settings(server))
    pids = worker_pids(service)
    service.process.kill()
    service.process.wait()
    asyncio.run(until(lambda: not any(alive(pid) for pid in pids)))


def test_workers_need_a_shared_database(command: Command) -> None:
    """With the embedded database, which belongs to one process, several workers are refused with one line."""
    refused = command("serve", TOOLD_WORKERS="2")
    assert refused.returncode == 2
    assert refused.stderr.strip() == (
        "toold: cannot start: workers (TOOLD_WORKERS): needs store: several processes share a PostgreSQL database"
    )


def test_a_worker_that_cannot_start_ends_the_service(server: Cluster, command: Command) -> None:
    """If the first worker cannot start, its error is said once, and its exit code is the service's."""
    settings = new_settings(server)
    absent = settings | {"TOOLD_STORE": f"{settings['TOOLD_STORE']}x"}
    refused = command("serve", "--port", "0", "--http-port", "0", **absent)
    assert refused.returncode == 1
    assert refused.stderr.count("cannot start") == 1
