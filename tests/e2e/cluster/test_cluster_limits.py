"""Limits of several nodes together, as processes, with a vendor that counts what it is asked."""

import asyncio
import itertools
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.e2e.cluster.conftest import Nodes, ended, open_client, written
from tests.e2e.conftest import Command, Peer, Process
from toold.serving import HttpServer

ANSWER_S = 0.05
COST = 0.03
"""In dollars: 10,000 tokens of a prompt and 4,000 of an answer, at the prices of the settings."""


class CountingVendor:
    """A vendor of OpenAI's API that counts the requests that run, and what all of them cost."""

    def __init__(self) -> None:
        self._server = HttpServer(Starlette(routes=[Route("/v1/{path:path}", self._answer, methods=["POST"])]),
                                  "127.0.0.1", 0, "--port")  # fmt: skip
        self.running = self.peak = self.requests = 0
        self.hold = asyncio.Event()
        """Requests are answered while it is set."""
        self.hold.set()

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    @property
    def cost(self) -> float:
        return round(self.requests * COST, 6)

    def settings(self, directory: Path, *, permits: int = 3) -> dict[str, Any]:
        """Nodes whose only vendor this is."""
        config = directory / "vendor.toml"
        config.write_text(f"""
            [providers.acme]
            base_url = "http://127.0.0.1:{self._server.port}/v1"
            api_key = "any"
            sdk = "http"
            max_in_flight = {permits}
            [models."acme/large"]
            context_window = 200_000
            price = {{ currency = "USD", input = 1, output = 5 }}
        """)
        return {"TOOLD_CONFIG": str(config), "simulate": False}

    async def _answer(self, request: Request) -> Response:
        await request.body()
        self.requests += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        gone = asyncio.ensure_future(request.receive())  # ends when the client closes the connection
        answered = asyncio.create_task(self._when_answered())
        try:
            await asyncio.wait({gone, answered}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            answered.cancel()
            self.running -= 1
        message = {"role": "assistant", "content": "yes"}
        usage = {"prompt_tokens": 10_000, "completion_tokens": 4_000, "total_tokens": 14_000}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return JSONResponse(
            {"id": "1", "object": "chat.completion", "model": "large", "choices": choices, "usage": usage}
        )

    async def _when_answered(self) -> None:
        await asyncio.sleep(ANSWER_S)
        await self.hold.wait()


@pytest.fixture
async def vendor() -> AsyncIterator[CountingVendor]:
    async with CountingVendor() as vendor:
        yield vendor


async def ask(peer: Peer, request_id: str) -> str:
    """Asks the model; the answer's error, or ``ok``."""
    answer = await peer.call(request_id, "chat", prompt="word " * 100, model="acme/large", max_tokens=8_000)
    return "ok" if answer["error"] is None else answer["error"]["code"]


async def ask_until_refused(node: Process, outcomes: Counter[str], numbers: "itertools.count[int]") -> None:
    """One client that asks until the budget is spent, or its node ends."""
    peer = await open_client(node, features=["ack"])
    while True:
        try:
            outcome = await ask(peer, f"r{next(numbers)}")
        except Exception:  # noqa: BLE001 - the connection to a killed node ends in several ways
            return
        outcomes[outcome] += 1
        if outcome == "RATE_LIMITED":
            return


async def test_nodes_together_exceed_neither_permits_nor_budget(
    nodes: Nodes, vendor: CountingVendor, tmp_path: Path
) -> None:
    """Two nodes with many clients, of which one is killed while it asks and started again: never more than three
    requests run at the vendor, and what it charges for all of them fits into the budget.
    """
    budget = 0.9
    settings = vendor.settings(tmp_path) | {"TOOLD_DAILY_BUDGET": f"{budget} USD", "TOOLD_LEASE_S": "60"}
    first, second = [await nodes.start(name, **settings) for name in "ab"]
    outcomes, numbers = Counter[str](), itertools.count()
    async with asyncio.TaskGroup() as clients:
        for node in (first, second):
            for _ in range(5):
                clients.create_task(ask_until_refused(node, outcomes, numbers))
        while vendor.requests < 10 or not vendor.running:
            await asyncio.sleep(0.001)
        second.process.kill()
        await ended(second)
        again = await nodes.start("b", **settings)
        for _ in range(5):
            clients.create_task(ask_until_refused(again, outcomes, numbers))
    assert vendor.peak == 3
    assert outcomes["ok"] >= 10
    assert outcomes.keys() <= {"ok", "RATE_LIMITED"}
    spent = float(nodes.database.sql("SELECT spent FROM toold.budget WHERE scope = ''"))
    # What the killed requests cost is unknown to the nodes: their estimates count.
    assert vendor.cost <= spent <= budget + 1e-9
    assert nodes.database.sql("SELECT count(*) FROM toold.vendor_request") == "0"


async def ask_until_answered(peer: Peer) -> str:
    """Asks again as long as a node has not found the database again."""
    for number in itertools.count():
        outcome = await ask(peer, f"again-{number}")
        if outcome != "SERVICE_UNAVAILABLE":
            break
    return outcome


async def test_a_permit_outlives_the_database(nodes: Nodes, vendor: CountingVendor, tmp_path: Path) -> None:
    """It crashes while a request runs: another node still has to wait for its permit, which is returned afterwards."""
    settings = vendor.settings(tmp_path, permits=1) | {"TOOLD_LEASE_S": "60"}
    first, second = [await nodes.start(name, **settings) for name in "ab"]
    vendor.hold.clear()
    running = asyncio.create_task(ask(await open_client(first), "1"))
    while not vendor.running:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(nodes.database.stop, kill=True)
    await asyncio.to_thread(nodes.database.start)
    waiting = asyncio.create_task(ask_until_answered(await open_client(second)))
    while nodes.database.sql("SELECT count(*) FROM toold.permit_wait") == "0":
        assert not waiting.done()
        await asyncio.sleep(0.05)
    assert vendor.requests == 1
    vendor.hold.set()
    assert [await running, await waiting] == ["ok", "ok"]
    assert vendor.peak == 1


async def open_client_of(node: Process, token: str) -> Peer:
    """A client of a named token that the node reads soon."""
    while True:
        peer = await open_client(node, token=token)
        if peer.ack["ok"]:
            return peer
        await asyncio.sleep(0.05)


async def test_a_token_has_its_limits_on_two_nodes_together(nodes: Nodes, command: Command, tmp_path: Path) -> None:
    """It may run two calls at once, on any of them, and its calls of a day count on both; when one of the nodes is
    killed, the other one runs both.
    """
    made = await asyncio.to_thread(lambda: command("token", "create", "ci", "--max-running", "2"))
    token, tokens = made.stdout.split()[-1], tmp_path / "state" / "tokens.json"
    config = tmp_path / "quota.toml"
    config.write_text('[quotas.echoes]\ntools = ["echo"]\ncalls_per_day = 5\n')
    started = []
    for name in "ab":
        started.append(await nodes.start(name, TOOLD_CONFIG=str(config), TOOLD_LEASE_S="60"))
        shutil.copy(tokens, started[-1].state)
    peers = [await open_client_of(node, token) for node in started]
    answers = [await peers[number % 2].call(f"e{number}", "echo", text="here") for number in range(8)]
    codes = ["ok" if answer["error"] is None else answer["error"]["code"] for answer in answers]
    assert codes == ["ok"] * 5 + ["RATE_LIMITED"] * 3
    for number in range(6):
        arguments = {"text": f"w{number}", "delay_ms": 60_000}
        await peers[number % 2].send(op="call_tool", request_id=f"w{number}", name="sim_effect", arguments=arguments)
    shares = "SELECT count(*), sum(wanted), sum(permits) FROM toold.running_share"
    while nodes.database.sql(shares) != "2|4|2":
        await asyncio.sleep(0.05)
    while len(written(started[0]) + written(started[1])) < 2:
        await asyncio.sleep(0.05)
    before = [written(node) for node in started]
    assert sum(map(len, before)) == 2
    started[0].process.kill()
    await ended(started[0])
    back = await open_client(started[1], token=token, resume={"key": peers[0].ack["resume_key"]})
    assert back.ack["resumed"]
    while len(written(started[1])) < 2:
        assert len(written(started[1])) <= 2
        await asyncio.sleep(0.05)
    assert nodes.database.sql(shares) == "1|2|2"
