"""Failover that the operator configured, in calls of a real daemon."""

from pathlib import Path
from typing import Final

import pytest
from toold.protocol.error_codes import RateLimitedError
from toold.testing import daemon_under_test

CONFIG: Final = """
kimi_fallback = ["glm-4.6"]
glm_fallback = ["kimi-k2.6"]
[tools.challenge]
fallback = []
[tools.complete]
fallback = ["glm-5"]
[agents.helper]
description = "Helps."
prompt = "You help."
model = "kimi-k2.6"
"""
DOWN: Final = "status=429"
"""Unlike an outage, a used-up quota does not open the circuit breaker."""


async def test_lists_of_the_settings_in_calls(tmp_path: Path) -> None:
    """The provider's list, the tool's before it, the call's before both, an agent's; lists do not chain, and an empty
    one turns failover off.
    """
    config = tmp_path / "lists.toml"
    config.write_text(CONFIG)
    async with daemon_under_test(env={"TOOLD_CONFIG": str(config)}) as daemon:
        call, simulator = daemon.client.call, daemon.simulator
        question = {"prompt": "Why?", "model": "kimi-k2.6"}
        raw = {"messages": [{"role": "user", "content": "Why?"}], "model": "kimi-k2.6"}

        simulator.plan("kimi", "chat", DOWN)
        answer = await call("chat", question)
        assert (answer.metadata.model, answer.structured["model"]) == ("glm-4.6", "glm-4.6")
        assert answer.metadata.model_choice_reason == "fallback after kimi-k2.6 (RATE_LIMITED)"
        (row,) = (await call("toolcall_log_tail", {"tool": "chat"})).structured
        assert (row["model"], row["message"]) == ("glm-4.6", answer.metadata.model_choice_reason)

        simulator.plan("kimi", "chat", DOWN)
        assert (await call("complete", raw)).metadata.model == "glm-5"
        simulator.plan("kimi", "chat", DOWN)
        assert (await call("complete", {**raw, "fallback": ["glm-4.7"]})).metadata.model == "glm-4.7"

        simulator.plan("kimi", "chat", DOWN)
        simulator.plan("glm", "chat", DOWN)
        with pytest.raises(RateLimitedError) as failure:
            await call("chat", question)
        assert failure.value.details is not None
        assert [attempt["model"] for attempt in failure.value.details["fallback"]] == ["kimi-k2.6"]
        assert [request.vendor for request in simulator.log[-2:]] == ["kimi", "glm"]

        for tool, arguments in (("chat", {**question, "fallback": []}), ("challenge", question)):
            simulator.plan("kimi", "chat", DOWN)
            with pytest.raises(RateLimitedError):
                await call(tool, arguments)

        simulator.plan("kimi", "chat", DOWN)
        run = await call("helper", {"prompt": "Go."})
        (turn,) = run.structured["calls"]
        assert (turn["tool"], turn["id"], turn["model"]) == ("agent_turn", "t1", "glm-4.6")
        assert turn["model_choice_reason"] == "fallback after kimi-k2.6 (RATE_LIMITED)"
