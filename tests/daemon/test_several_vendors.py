"""Kimi, GLM and configured providers together: one call of each tool that spans them, over real HTTP."""

from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from toold.client import MCPWebSocketClient
from toold.protocol.error_codes import CallError
from toold.providers.simulator import Simulator
from toold.testing import DaemonUnderTest, daemon_under_test

Labels = frozenset[tuple[str, str]]


@pytest.fixture
async def vendor() -> AsyncIterator[Simulator]:
    """A server that answers as the vendor ``acme``."""
    async with Simulator(providers=("acme",)) as simulator:
        yield simulator


@pytest.fixture
async def daemon(vendor: Simulator, tmp_path: Path) -> AsyncIterator[DaemonUnderTest]:
    """A daemon with Kimi, GLM and ``acme``."""
    config = tmp_path / "vendors.toml"
    config.write_text(
        f"""
        [providers.acme]
        base_url = "{vendor.base_url("acme")}"
        api_key = "sim-key"
        default_model = "large"
        daily_budget = "1 USD"
        [models."acme/large"]
        context_window = 200_000
        price = {{ currency = "USD", input = 1, output = 2 }}
        """
    )
    async with daemon_under_test(env={"TOOLD_CONFIG": str(config)}) as under_test:
        yield under_test


async def test_a_consensus_asks_three_vendors_in_one_call(daemon: DaemonUnderTest, vendor: Simulator) -> None:
    """Each model answers under its full name, and its usage counts for its provider."""
    models = ["kimi-k2.6", "glm/glm-4.6", "acme/large"]
    answer = await daemon.client.call("consensus", {"prompt": "Tabs or spaces?", "models": models})
    text = answer.outputs[0]["text"]
    assert "acme/large" in text
    assert {request.vendor for request in daemon.simulator.log} == {"kimi", "glm"}
    assert [request.body["model"] for request in vendor.log] == ["large"]
    status = (await daemon.client.call("status", {})).structured
    (today,) = status["usage"]
    assert set(today["by_provider"]) == {"kimi", "glm", "acme"}
    assert "acme/large" in today["by_model"]
    assert status["budget"]["budget"] == {}
    assert set(status["provider_budgets"]) == {"acme"}
    acme = status["provider_budgets"]["acme"]
    assert (acme["budget"], acme["spent"], acme["reserved"]) == ({"USD": 1.0}, {"USD": 0.0}, {})


async def test_metrics_have_the_labels_of_each_vendor(run_with: Any) -> None:
    """Tokens and cost by provider, model, tool, and direction or currency, and errors by provider and code, as
    docs/operating.md says.
    """
    daemon = await run_with(TOOLD_PROVIDERS__ACME__DEFAULT_MODEL="large", TOOLD_PROVIDERS__ACME__SDK="http")
    token = (daemon.settings.state_dir / "token").read_text().strip()
    models = ["kimi-k2.6", "glm-4.6", "acme/large"]
    async with MCPWebSocketClient(daemon.address().url, token=token) as client:
        for model in models:
            await client.call("chat", {"prompt": "Hi.", "model": model})
            with pytest.raises(CallError):
                await client.call("chat", {"prompt": "[[sim:status=400]]", "model": model})
        await client.call("embed", {"input": "Hi.", "model": "acme/vectors"})
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        page = (await http.get(f"http://127.0.0.1:{daemon.http.port}/metrics")).text
    samples: dict[str, set[Labels]] = defaultdict(set)
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            samples[sample.name].add(frozenset(sample.labels.items()))
    names = [("kimi", "kimi-k2.6", "chat"), ("glm", "glm-4.6", "chat"), ("acme", "acme/large", "chat")]
    names.append(("acme", "acme/vectors", "embed"))
    spent = [{"provider": provider, "model": model, "tool": tool} for provider, model, tool in names]
    by_direction = [{**labels, "direction": direction} for labels in spent for direction in ("input", "output")]
    for metric in ("toold_tokens_total", "toold_today_tokens"):
        assert samples[metric] == {frozenset(labels.items()) for labels in by_direction}
    priced = [{**labels, "currency": "USD"} for labels in spent if labels["provider"] != "acme"]
    assert samples["toold_cost_total"] == {frozenset(labels.items()) for labels in priced}
    errors = [{"provider": provider, "code": "PROVIDER_ERROR"} for provider in ("kimi", "glm", "acme")]
    assert samples["toold_provider_errors_total"] == {frozenset(labels.items()) for labels in errors}


async def test_a_conversation_changes_vendors(daemon: DaemonUnderTest, vendor: Simulator) -> None:
    """The next vendor gets the earlier turns, and each turn has the model that answered."""
    first = await daemon.client.call("chat", {"prompt": "My name is Ada.", "model": "acme/large"})
    again = {"continuation_id": first.structured["continuation_id"]}
    await daemon.client.call("chat", {"prompt": "And?", "model": "glm-4.6", **again})
    third = await daemon.client.call("chat", {"prompt": "Who am I?", "model": "acme/large", **again})
    assert third.metadata.model == "acme/large"
    texts = [message["content"] for message in vendor.log[-1].body["messages"]]
    assert any("My name is Ada." in text for text in texts)
    assert any("Simulated answer from glm-4.6" in text for text in texts)


async def test_every_listing_has_all_vendors(daemon: DaemonUnderTest) -> None:
    """Models, capabilities, status and self-check name the configured provider like Kimi and GLM."""
    listed = (await daemon.client.call("listmodels", {"provider": "acme"})).structured["models"]
    (large,) = [row for row in listed if row["id"] == "acme/large"]
    assert (large["context_window"], large["price_per_million"]["output"]) == (200_000, 2)
    (acme,) = (await daemon.client.call("provider_capabilities", {"provider": "acme"})).structured
    assert (acme["available"], acme["default_model"], acme["largest_context_window"]) == (True, "acme/large", 200_000)
    status = (await daemon.client.call("status", {})).structured
    assert {"kimi", "glm", "acme"} == set(status["limits"]["providers"])
    assert "acme" in str((await daemon.client.call("self-check", {})).structured)
    answer = await daemon.client.call("chat", {"prompt": "?", "model": "large"})
    assert answer.structured["provider"] == "acme"
