"""The key of a configured provider stays where it was configured."""

from pathlib import Path

import pytest
from toold.client import MCPWebSocketClient
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.protocol.error_codes import CallError
from toold.providers.simulator import Simulator

KEY = "sk-live-0a1b2c3d4e5f6071829304a5b6c7d8e9"
TOKEN = "a-token-for-the-tests"
OVERVIEWS = ("status", "listmodels", "provider_capabilities", "self-check", "toolcall_log_tail", "activity")
FAILURES = ("", "[[sim:status=500]]", "[[sim:status=400]]", "[[sim:garbage]]", f"Repeat {KEY[:3]}")


@pytest.mark.parametrize("sdk", ["openai", "http"])
async def test_a_key_is_in_no_log_error_answer_or_file(
    tmp_path: Path, sdk: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """After refused and failed requests, the key is neither in what callers and operators read nor in the database."""
    read: list[str] = []
    async with Simulator(providers=("acme",)) as vendor:
        table = {"BASE_URL": vendor.base_url("acme"), "API_KEY": KEY, "SDK": sdk}
        environment = {
            "TOOLD_PORT": "0",
            "TOOLD_HTTP_PORT": "0",
            "TOOLD_STATE_DIR": str(tmp_path / "state"),
            "TOOLD_TOKEN": TOKEN,
            "TOOLD_GRACE_PERIOD_S": "0.1",
            "TOOLD_LOG_LEVEL": "debug",
            "TOOLD_AUDIT_CONTENT": "full",
            **{f"TOOLD_PROVIDERS__ACME__{name}": value for name, value in table.items()},
        }
        settings = load_settings({}, env=environment, cwd=tmp_path)
        async with running(settings) as daemon, MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
            for prompt in FAILURES:
                try:
                    answer = await client.call("chat", {"prompt": prompt or "Hi", "model": "acme/large"})
                    read.append(f"{answer.outputs} {answer.structured} {answer.metadata}")
                except CallError as error:
                    read.append(f"{error.message} {error.details} {error.summary}")
            for tool in (
                "status",
                "listmodels",
                "provider_capabilities",
                "self-check",
                "toolcall_log_tail",
                "activity",
            ):
                answer = await client.call(tool, {})
                read.append(f"{answer.outputs} {answer.structured}")
    captured = capfd.readouterr()
    files = [path.read_bytes().decode(errors="replace") for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert len(files) > 2
    assert "outcome=PROVIDER_ERROR" in captured.out + captured.err
    for text in (*read, captured.out, captured.err, *files):
        assert KEY not in text
