"""Quotas of calls in a running daemon: child calls, reload, restart."""

from pathlib import Path
from typing import Any

import httpx
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator

HEADERS = {"authorization": f"Bearer {TOKEN}", "idempotency-key": "k"}


async def call(daemon: Daemon, tool: str, arguments: dict[str, Any], key: str) -> httpx.Response:
    url = f"http://127.0.0.1:{daemon.http.port}/toolsets/full/tools/{tool}"
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        return await http.post(url, json=arguments, headers=HEADERS | {"idempotency-key": key})


def write_quota(directory: Path, calls: int) -> None:
    (directory / "toold.toml").write_text(f'[quotas.echoes]\ntools = ["ech*"]\ncalls_per_day = {calls}\n')


async def test_quotas_count_children_and_survive_a_restart(tmp_path: Path) -> None:
    """Child calls count, repeats do not; a reload applies at once; the day's calls still count after a restart."""
    write_quota(tmp_path, 3)
    (tmp_path / "state").mkdir(mode=0o700)
    async with Simulator() as simulator:
        env = simulated_environment(tmp_path / "state", simulator)
        async with running(load_settings({}, env=env, cwd=tmp_path)) as daemon:
            assert (await call(daemon, "echo", {"value": 1}, "a")).status_code == 200
            assert (await call(daemon, "echo", {"value": 1}, "a")).status_code == 200
            items = [{"value": number} for number in range(3)]
            batch = (await call(daemon, "execute_batch", {"tool_name": "echo", "items": items}, "b")).json()
            assert batch["succeeded"] == 2
            assert [failure["error"]["code"] for failure in batch["errors"]] == ["RATE_LIMITED"]
            refused = await call(daemon, "echo", {"value": 2}, "c")
            error = refused.json()["error"]
            assert (refused.status_code, error["code"], error["executed"]) == (429, "RATE_LIMITED", "no")
            assert "echoes" in error["message"]
            assert int(refused.headers["retry-after"]) <= 86400
            write_quota(tmp_path, 4)
            await daemon.reload()
            assert (await call(daemon, "echo", {"value": 2}, "c")).status_code == 200
        async with running(load_settings({}, env=env, cwd=tmp_path)) as daemon:
            assert (await call(daemon, "echo", {"value": 3}, "d")).status_code == 429
            assert (await call(daemon, "version", {}, "e")).status_code == 200
