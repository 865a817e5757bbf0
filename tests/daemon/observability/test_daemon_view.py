"""What tools see of the daemon, over the wire: usage, cost and budget of real answers, and the caller's own calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from toold.client import CallResult, MCPWebSocketClient
from toold.daemon.app import Daemon
from toold.daemon.lifecycle import running
from toold.protocol.error_codes import RateLimitedError
from toold.protocol.tool_call import Principal
from toold.providers.simulator import SIMULATOR_KEY, Simulator

TOKEN = "a-token-for-the-tests"
LOCAL = {
    "status": {}, "version": {}, "health": {}, "self-check": {}, "activity": {}, "toolcall_log_tail": {},
    "listmodels": {}, "provider_capabilities": {}, "echo": {"text": "x"},
    "glm_payload_preview": {"prompt": "x", "model": "glm-4.6"},
}  # fmt: skip
STEP = {
    "step": "Read it.", "step_number": 1, "total_steps": 1, "next_step_required": False, "findings": "None.",
    "model": "glm-4.6",
}  # fmt: skip
ASKING: dict[str, dict[str, Any]] = {
    "chat": {"prompt": "Why?", "model": "glm-4.6"},
    "challenge": {"prompt": "It is so.", "model": "kimi-k2.6"},
    "consensus": {"prompt": "Ship?", "models": ["kimi-k2.6", "glm-4.6"], "synthesis_model": "glm-4.6"},
    "codereview": STEP,
    "kimi_capture_headers": {"model": "kimi-k2.6"},
    "kimi_chat_with_tools": {"messages": "Why?", "model": "kimi-k2.6"},
    "smart_file_query": {"file_path": "a.txt", "question": "Why?", "model": "glm-4.6"},
}


@dataclass
class Harness:
    """A daemon whose vendors are simulated, and a client of it."""

    daemon: Daemon
    client: MCPWebSocketClient
    vendors: Simulator
    close: Callable[[], Awaitable[None]]

    @property
    def request_count(self) -> int:
        """Requests of calls that reached the vendors."""
        return sum(seen.operation != "models" for seen in self.vendors.requests)

    async def call(self, tool: str, /, **arguments: Any) -> CallResult:
        return await self.client.call(tool, arguments, timeout=60)

    async def data(self, tool: str, /, **arguments: Any) -> Any:
        return (await self.call(tool, **arguments)).structured


Open = Callable[..., Awaitable[Harness]]


@pytest.fixture
async def open_harness(settings_with: Any, tmp_path: Path) -> AsyncIterator[Open]:
    """``await open_harness(**environment)``: one at a time in the same state directory; what is open ends with the
    test.
    """
    (tmp_path / "a.txt").write_text("words")
    async with AsyncExitStack() as stacks:

        async def opened(**env: str) -> Harness:
            stack = await stacks.enter_async_context(AsyncExitStack())
            vendors = await stack.enter_async_context(Simulator())
            settings = settings_with(
                TOOLD_TOKEN=TOKEN,
                TOOLD_GRACE_PERIOD_S="0.1",
                TOOLD_KIMI_SDK="http",
                TOOLD_GLM_SDK="http",
                KIMI_API_KEY=SIMULATOR_KEY,
                KIMI_BASE_URL=vendors.kimi_base_url,
                GLM_API_KEY=SIMULATOR_KEY,
                GLM_BASE_URL=vendors.glm_base_url,
                **env,
            )
            daemon = await stack.enter_async_context(running(settings))
            client = await stack.enter_async_context(MCPWebSocketClient(daemon.address().url, token=TOKEN))
            return Harness(daemon, client, vendors, stack.aclose)

        yield opened


@pytest.fixture
def unmarked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator's mark is overlooked, so that its answers cost what a vendor's would."""
    monkeypatch.setattr("toold.providers.completion_parsing.SIMULATED", "nobody marks this")


@pytest.mark.parametrize("tool", ASKING)
async def test_every_vendor_answer_has_tokens_and_cost(open_harness: Open, unmarked: None, tool: str) -> None:
    """Per model if there were several, and in total; the daily sums agree."""
    harness = await open_harness()
    metadata = (await harness.call(tool, **ASKING[tool])).metadata
    assert metadata.usage is not None
    assert metadata.cost is not None
    assert not metadata.usage.estimated
    assert metadata.usage.input_tokens > 0
    assert metadata.cost.amount > 0
    (day,) = (await harness.data("status"))["usage"]
    assert (day["input_tokens"], day["output_tokens"]) == (metadata.usage.input_tokens, metadata.usage.output_tokens)
    assert day["cost"] == {"USD": pytest.approx(metadata.cost.amount)}
    assert set(day["by_tool"]) == {tool}
    if tool == "consensus":
        used = [(part.model, part.completions) for part in metadata.usage_by_model]
        assert used == [("kimi-k2.6", 1), ("glm-4.6", 2)]
        assert set(day["by_provider"]) == {"kimi", "glm"}
        assert day["completions"] == 3
    else:
        assert metadata.usage_by_model == ()


async def test_simulated_answers_cost_nothing_and_are_marked(open_harness: Open) -> None:
    """Its tokens are counted, its cost is nothing, and both are marked as simulated."""
    harness = await open_harness()
    metadata = (await harness.call("chat", prompt="Why?", model="glm-4.6")).metadata
    assert metadata.cost is not None
    assert (metadata.cost.amount, metadata.simulated) == (0.0, True)
    (day,) = (await harness.data("status"))["usage"]
    assert (day["cost"], day["simulated"], day["completions"]) == ({"USD": 0.0}, True, 1)


async def test_local_tools_use_no_vendor(open_harness: Open) -> None:
    """None of their calls makes a request, and each of them answers."""
    harness = await open_harness()
    for tool, arguments in LOCAL.items():
        assert (await harness.call(tool, **arguments)).metadata.provider_calls == 0
    assert harness.request_count == 0


async def test_a_spent_budget_survives_a_restart(open_harness: Open, unmarked: None) -> None:
    """Calls that use a vendor are refused until the day's end, before anything is sent; local tools continue."""
    harness = await open_harness(TOOLD_DAILY_BUDGET="1 USD")
    first = await harness.call("chat", prompt="Why?", model="glm-4.6")
    assert first.metadata.cost is not None
    spent = first.metadata.cost.amount
    assert (await harness.data("status"))["budget"]["spent"] == {"USD": pytest.approx(spent)}
    await harness.close()
    harness = await open_harness(TOOLD_DAILY_BUDGET=f"{spent:.9f} USD")
    with pytest.raises(RateLimitedError, match="is spent; it resets at") as refused:
        await harness.call("chat", prompt="Why?", model="glm-4.6")
    assert refused.value.retryable
    assert 0 < (refused.value.retry_after_ms or 0) <= 86_400_000
    with pytest.raises(RateLimitedError):
        await harness.call("glm_web_search", search_query="x")
    assert harness.request_count == 0
    for tool, arguments in LOCAL.items():
        assert (await harness.call(tool, **arguments)).outputs
    (day,) = (await harness.data("status"))["usage"]
    assert (day["completions"], day["cost"]) == (1, {"USD": pytest.approx(spent)})
    assert b"toold_today_cost{" in harness.daemon.metrics.render()
    checks = {check["check"]: check for check in (await harness.data("self-check"))["checks"]}
    assert checks["budget"]["status"] == "fail"


async def test_the_vendors_lists_are_fetched_after_the_start(open_harness: Open) -> None:
    """Without anybody's asking; from then on listmodels says of each model whether it is listed."""
    harness = await open_harness()
    async with asyncio.timeout(20):
        while None in {row["listed"] for row in (await harness.data("listmodels"))["models"]}:
            await asyncio.sleep(0.01)
    rows = (await harness.data("listmodels"))["models"]
    assert {(row["listed"], row["available"]) for row in rows} == {(True, True)}
    assert {seen.operation for seen in harness.vendors.requests} == {"models"}


async def test_a_healthy_daemon_passes_its_self_check(open_harness: Open) -> None:
    """Every check but the disk's, which is the machine's own, is ok; nothing is changed by it."""
    harness = await open_harness()
    report = await harness.data("self-check")
    assert [check for check in report["checks"] if not check["ok"] and check["check"] != "disk"] == []
    assert {"store", "journal", "clock", "disk", "audit", "tools", "default model", "budget"} <= {
        check["check"] for check in report["checks"]
    }
    assert (await harness.data("health"))["status"] == "ready"


async def test_a_caller_sees_its_calls_running_and_ended(open_harness: Open) -> None:
    """Under their session, with their state; the log has them with what was kept of their arguments."""
    # Without the warm-up, whose requests for model lists are in flight too.
    harness = await open_harness(TOOLD_AUDIT_CONTENT="full", TOOLD_WARM_UP="false")
    await harness.call("echo", text="hello")
    hung = asyncio.create_task(harness.call("chat", prompt="[[sim:hang]]", model="glm-4.6"))
    await harness.vendors.until_in_flight("glm", 1)
    (session,) = (await harness.data("activity"))["sessions"]
    assert [(call["tool"], call["state"]) for call in session["calls"]] == [("chat", "running"), ("echo", "ended")]
    hung.cancel()
    await asyncio.gather(hung, return_exceptions=True)
    (row,) = await harness.data("toolcall_log_tail", tool="echo", outcome="ok")
    assert (row["arguments"], row["principal"]) == ({"text": "hello"}, "local")
    assert await harness.data("toolcall_log_tail", tool="echo", outcome="error") == []


async def test_calls_of_another_principal_are_invisible(open_harness: Open) -> None:
    """Only their principal sees them, while they run and in the log."""
    harness = await open_harness()
    ann = Principal("ann")
    async with MCPWebSocketClient(harness.daemon.address().url, token=TOKEN) as other:
        hung = asyncio.create_task(other.call("chat", {"prompt": "[[sim:hang]]", "model": "glm-4.6"}, timeout=60))
        await harness.vendors.until_in_flight("glm", 1)
        (call,) = harness.daemon.router.calls
        call.session.principal = ann  # as if it had its own token
        assert await harness.data("activity") == {"sessions": []}
        assert [row["id"] for row in harness.daemon.view.running(ann)] == [call.id]
        hung.cancel()
        await asyncio.gather(hung, return_exceptions=True)
        async with asyncio.timeout(20):
            while not await harness.daemon.view.ended(ann, 5):
                await asyncio.sleep(0.01)
    assert [row["tool"] for row in await harness.data("toolcall_log_tail")] == ["activity"]
