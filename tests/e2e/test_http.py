"""The HTTP port of a running daemon: probes, and metrics that match the calls."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

Sample = Callable[..., float]


@pytest.fixture
async def http(daemon: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Sends requests to the HTTP port of the shared daemon."""
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{daemon.http_port}", trust_env=False, verify=False
    ) as client:
        yield client


async def scrape(http: httpx.AsyncClient) -> Sample:
    """Reads ``/metrics`` once. Returns a function from name and labels to the value, 0 if missing."""
    answer = await http.get("/metrics")
    assert answer.status_code == 200
    samples = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    return lambda name, **labels: samples.get((name, frozenset(labels.items())), 0.0)


async def settled(http: httpx.AsyncClient, condition: Callable[[Sample], bool]) -> Sample:
    """Returns the first reading that meets the condition."""
    async with asyncio.timeout(20):
        while not condition(reading := await scrape(http)):
            await asyncio.sleep(0.01)
        return reading


async def test_probes_of_a_running_daemon(http: httpx.AsyncClient) -> None:
    """The daemon is alive and ready, and readiness matches health."""
    assert (await http.get("/healthz")).json() == {"status": "alive"}
    ready = await http.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert ready.json()["problems"] == []


async def test_a_foreign_host_name_is_rejected_on_loopback(http: httpx.AsyncClient, daemon: Any) -> None:
    """A web page with a DNS-rebound name can read neither probes nor metrics."""
    for path in ("/", "/readyz", "/metrics"):
        refused = await http.get(path, headers={"Host": f"evil.example:{daemon.http_port}"})
        assert refused.status_code == 403
        assert "toold_" not in refused.text
    assert (await http.get("/readyz", headers={"Host": f"localhost:{daemon.http_port}"})).status_code == 200


async def test_calls_are_counted_by_tool_and_outcome(http: httpx.AsyncClient, peer: Any) -> None:
    """Each answer counts once, with rejections; unknown tool names share one series."""
    before = await scrape(http)
    for number in range(3):
        await peer.call(f"ok-{number}", "echo", text="x")
    await peer.call("bad", "echo", txt="x")
    for name in ("no-such-tool", "nor-this"):
        await peer.call(name, name)
    await peer.call("raises", "bad_raises")
    after = await scrape(http)

    def counted(tool: str, outcome: str) -> float:
        return after("toold_calls_total", tool=tool, outcome=outcome) - before(
            "toold_calls_total", tool=tool, outcome=outcome
        )

    assert counted("echo", "ok") == 3
    assert counted("echo", "VALIDATION_ERROR") == 1
    assert counted("unknown", "TOOL_NOT_FOUND") == 2
    assert counted("bad_raises", "TOOL_EXECUTION_ERROR") == 1
    assert after("toold_calls_total", tool="no-such-tool", outcome="TOOL_NOT_FOUND") == 0
    assert after("toold_call_seconds_count", tool="echo") - before("toold_call_seconds_count", tool="echo") == 4


async def test_tokens_and_the_vendors_errors_are_counted(http: httpx.AsyncClient, peer: Any) -> None:
    """Tokens match the answers' metadata; errors count by provider and code; simulated completions cost nothing."""
    before = await scrape(http)
    usage = {"input": 0, "output": 0}
    for number in range(2):
        answer = await peer.call(f"chat-{number}", "chat", prompt="How many tokens?", model="glm-4.6")
        for direction in usage:
            usage[direction] += answer["metadata"]["usage"][f"{direction}_tokens"]
    assert (await peer.call("fails", "chat", prompt="[[sim:status=401]]", model="glm-4.6"))["error"] is not None
    after = await scrape(http)
    for direction, tokens in usage.items():
        labels = {"provider": "glm", "model": "glm-4.6", "tool": "chat", "direction": direction}
        assert after("toold_tokens_total", **labels) - before("toold_tokens_total", **labels) == tokens > 0
        assert after("toold_today_tokens", **labels) - before("toold_today_tokens", **labels) == tokens
    errors = {"provider": "glm", "code": "PROVIDER_ERROR"}
    assert after("toold_provider_errors_total", **errors) - before("toold_provider_errors_total", **errors) == 1
    assert after("toold_cost_total", provider="glm", model="glm-4.6", tool="chat", currency="USD") == 0


async def test_permits_and_connections_rise_and_fall(http: httpx.AsyncClient, make_peer: Any) -> None:
    """Running calls use permits; after any end all are free."""
    hung = {"prompt": "[[sim:hang]]", "model": "glm-4.6"}
    async with make_peer(features=["ack"]) as peer:
        await peer.send(op="call_tool", request_id="glm", name="chat", arguments=hung)
        await peer.send(op="call_tool", request_id="local", name="bad_hangs", arguments={})
        await settled(
            http,
            lambda reading: (
                reading("toold_permits_in_use", limit="running") == 2
                and reading("toold_permits_in_use", limit="glm") == 1
                and reading("toold_connections") == 1
                and reading("toold_calls_running") >= 2
            ),
        )
        await peer.send(op="cancel", request_id="glm")
        await peer.until("call_tool_res", "glm")
    end = await settled(
        http,
        lambda reading: (
            not (
                reading("toold_connections")
                or reading("toold_calls_running")
                or reading("toold_permits_in_use", limit="running")
                or reading("toold_permits_in_use", limit="glm")
            )
        ),
    )
    assert end("toold_permits_waiting", limit="running") == end("toold_permits_waiting", limit="glm") == 0
    assert (end("toold_permits_limit", limit="running"), end("toold_permits_limit", limit="glm")) == (24, 4)


async def test_audit_rows_are_counted_once_written(http: httpx.AsyncClient, peer: Any) -> None:
    """One row per call, some milliseconds after its answer; none is dropped."""
    before = (await scrape(http))("toold_audit_rows_written_total")
    for number in range(5):
        await peer.call(number, "echo", text="x")
    reading = await settled(http, lambda reading: reading("toold_audit_rows_written_total") >= before + 5)
    assert reading("toold_audit_rows_dropped_total") == 0
