"""``python -m toold.providers.simulator`` runs the simulator as a separate process."""

import asyncio
import signal
import sys

import httpx
import pytest


@pytest.mark.process
async def test_simulator_process_runs_until_sigint() -> None:
    """The process prints the settings, serves requests, and ends without an error on SIGINT."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "toold.providers.simulator",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            settings = dict([(await process.stdout.readline()).decode().strip().split("=", 1) for _ in range(4)])
            assert set(settings) == {"KIMI_BASE_URL", "KIMI_API_KEY", "GLM_BASE_URL", "GLM_API_KEY"}
            async with httpx.AsyncClient(trust_env=False, timeout=30, verify=False) as http:
                key = {"authorization": f"Bearer {settings['GLM_API_KEY']}"}
                assert (await http.get(f"{settings['GLM_BASE_URL']}/models", headers=key)).status_code == 200
            process.send_signal(signal.SIGINT)
            _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, errors) == (0, b"")
