"""Tools that ask models, over the wire and the vendors' SDKs: requests, costs and failures."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from toold.providers.simulator import SIMULATOR_KEY, Simulator

if TYPE_CHECKING:
    from tests.e2e.conftest import Process

TWO = ["kimi-k2.6", "glm-4.6"]
TOOLS: dict[str, dict[str, Any]] = {
    "chat": {"model": "glm-4.6"},
    "challenge": {"model": "kimi-k2.6"},
    "consensus": {"models": TWO, "synthesis_model": "glm-4.6"},
}
COMPLETIONS = {"chat": 1, "challenge": 1, "consensus": 3}


@pytest.fixture
async def vendors() -> AsyncIterator[Simulator]:
    """Both simulated vendors in the test's process, so that their requests can be inspected."""
    async with Simulator() as simulator:
        yield simulator


@pytest.fixture
async def asking(vendors: Simulator, start_daemon: Callable[..., "Process"]) -> "Process":
    """A daemon that uses this simulator and has already listed its models."""
    daemon = await asyncio.to_thread(
        start_daemon,
        simulate=False,
        TOOLD_WARM_UP="true",  # lists the models
        KIMI_API_KEY=SIMULATOR_KEY,
        KIMI_BASE_URL=vendors.kimi_base_url,
        GLM_API_KEY=SIMULATOR_KEY,
        GLM_BASE_URL=vendors.glm_base_url,
    )
    async with asyncio.timeout(60):
        while {seen.vendor for seen in vendors.requests if seen.operation == "models"} != {"kimi", "glm"}:
            await asyncio.sleep(0.02)
        await vendors.until_in_flight("kimi", 0)
        await vendors.until_in_flight("glm", 0)
    return daemon


async def test_each_call_makes_the_documented_number_of_completions(asking: "Process", vendors: Simulator) -> None:
    """A call makes one completion, a consensus of n models makes n + 1, and Kimi's web search adds one per search."""
    async with asking.peer() as peer:
        for name, arguments in TOOLS.items():
            before = len(vendors.log)
            frame = await peer.call(name, name, prompt="Is it so?", **arguments)
            assert frame["error"] is None, frame["error"]
            assert len(vendors.log) - before == COMPLETIONS[name], name
        before = len(vendors.log)
        frame = await peer.call("s", "chat", prompt="What is new?", model="kimi-k2.6", web_search=True)
        assert frame["error"] is None, frame["error"]
        assert len(vendors.log) - before == frame["structured"].get("completions", 1)
        frame = await peer.call("g", "chat", prompt="What is new?", model="glm-4.6", web_search=True)
        assert frame["structured"]["search_results"]
        frame = await peer.call("d", "chat", prompt="Why?", model="glm-4.6", thinking="minimal")
        assert vendors.log[-1].body["thinking"] == {"type": "disabled"}


async def test_a_consensus_asks_its_models_concurrently(asking: "Process", vendors: Simulator) -> None:
    """All models are asked at once, then the synthesis over their answers."""
    async with asking.peer() as peer:
        models = [{"model": "glm-4.6", "stance": stance} for stance in ("for", "against", "neutral")]
        frame = await peer.call("1", "consensus", prompt="Ship? [[sim:delay=0.3]]", models=models)
    assert frame["error"] is None
    assert vendors.peak("glm") == 3
    assert Counter(row["stance"] for row in frame["structured"]["answers"]) == Counter(["for", "against", "neutral"])
    assert "3 files attached" in frame["outputs"][0]["text"]


async def test_one_model_of_a_consensus_that_fails_is_reported(asking: "Process", vendors: Simulator) -> None:
    """If the vendor rejects one model, the answers of the others count."""
    vendors.plan("kimi", "chat", "status=400")
    async with asking.peer() as peer:
        frame = await peer.call("1", "consensus", prompt="Ship?", models=TWO, synthesis_model="glm-4.6")
    assert frame["error"] is None
    assert [(row["requested_model"], row["code"]) for row in frame["structured"]["failed"]] == [
        ("kimi-k2.6", "PROVIDER_ERROR")
    ]
    assert [row["requested_model"] for row in frame["structured"]["answers"]] == ["glm-4.6"]


@pytest.mark.parametrize("name", TOOLS)
async def test_how_each_tool_fails(daemon: "Process", name: str) -> None:
    """If the vendor is down, at a timeout, and after a cancel while streaming there is one error answer, and no permit
    remains in use.
    """
    arguments = TOOLS[name]
    async with daemon.peer(features=["stream"]) as peer:

        async def fail(directives: str, **frame: Any) -> dict[str, Any]:
            prompt = {"prompt": f"[[sim:{directives}]] Is it so?"}
            await peer.send(op="call_tool", request_id=directives, name=name, arguments=arguments | prompt, **frame)
            if not frame and directives.startswith("stream_delay"):
                await peer.until("progress" if name == "consensus" else "stream_chunk", directives)
                await peer.send(op="cancel", request_id=directives)
            error: dict[str, Any] = (await peer.until("call_tool_res", directives))["error"]
            return error

        down = await fail("status=400")
        assert (down["code"], down["retryable"]) == ("PROVIDER_ERROR", False)
        late = await fail("hang", timeout_ms=400)
        assert late["code"] == "TIMEOUT"
        assert (await fail("stream_delay=0.2"))["code"] == "CANCELLED"
        while held(await peer.status()):
            await asyncio.sleep(0.05)


def held(status: dict[str, Any]) -> int:
    """The number of permits in use."""
    limits = status["limits"]
    permits = [limits["running"], *limits["providers"].values()]
    return sum(permit["in_use"] for permit in permits)


async def test_files_beyond_the_context_window_are_named(
    tmp_path: Path, start_daemon: Callable[..., "Process"]
) -> None:
    """The answer names omitted files; if no file fits, the error names a model with a larger window."""
    (tmp_path / "short.txt").write_text("word " * 1_000)
    (tmp_path / "long.txt").write_text("word " * 9_000)
    daemon = start_daemon(TOOLD_WORKSPACE=str(tmp_path))
    async with daemon.peer() as peer:
        frame = await peer.call("1", "chat", prompt="?", model="moonshot-v1-8k", files=["long.txt", "short.txt"])
        assert [part["what"] for part in frame["structured"]["omitted"]] == ["long.txt"]
        assert "1 file attached: short.txt" in frame["outputs"][0]["text"]
        frame = await peer.call("2", "chat", prompt="?", model="moonshot-v1-8k", files=["long.txt"])
        assert frame["error"]["code"] == "CONTEXT_LENGTH_EXCEEDED"
        assert frame["error"]["details"]["context_window"] == 8_192
        assert frame["error"]["details"]["models"]
        frame = await peer.call("3", "chat", prompt="?", model="auto", files=["long.txt"])
        assert "the cheapest of the" in frame["structured"]["model_choice_reason"]
        assert frame["metadata"]["model_choice_reason"] == frame["structured"]["model_choice_reason"]
