"""A deploy job whose daemon gets ``kill -9`` while a request has had its effect at another system: a stand-in of Cloud
Run, Secret Manager and LiteLLM."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.daemon.transports.platform.cloud_stand_in import MASTER_KEY, running_cloud
from tests.daemon.transports.platform.conftest import PlatformClient
from tests.e2e.conftest import Process

BODY = {"customer_id": "acme", "agent_name": "greeter", "prompt_ref": "greeter"}
SERVICES = "POST /v2/projects/my-project/locations/europe-west1/services"


def client_of(http: httpx.AsyncClient, daemon: Process) -> PlatformClient:
    http.base_url = httpx.URL(f"http://127.0.0.1:{daemon.http_port}")
    return PlatformClient(http, daemon.token)


@pytest.mark.parametrize(
    "request_line", ["POST /key/generate", ":addVersion", SERVICES], ids=["key", "secret", "service"]
)
async def test_a_killed_job_makes_nothing_twice(
    request_line: str, start_daemon: Callable[..., Process], tmp_path: Path
) -> None:
    """After the restart the job finds what the phase had made, and completes with one key, one secret, one service."""
    (tmp_path / "litellm.key").write_text(MASTER_KEY)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "greeter.md").write_text("You greet people.")
    async with running_cloud() as cloud, httpx.AsyncClient(trust_env=False, timeout=60) as http:
        (tmp_path / "toold.toml").write_text(cloud.toml("litellm.key"))
        cloud.withheld = request_line
        daemon = start_daemon()
        answer = await client_of(http, daemon).ask("POST", "/agents/deploy", BODY)
        job_id = answer.json()["job_id"]
        await cloud.withholding.wait()
        daemon.process.kill()
        await asyncio.to_thread(daemon.process.wait)
        cloud.withheld = ""
        daemon = await asyncio.to_thread(start_daemon)
        job = await client_of(http, daemon).ended(job_id)
    assert (job["status"], job["service_name"]) == ("completed", "acme-greeter"), job
    (key,) = cloud.keys.values()
    assert cloud.values == {"acme-greeter-litellm-key": key["key"]}
    assert list(cloud.services) == ["acme-greeter"]
    for line in ("POST /key/generate", ":addVersion", SERVICES):
        assert sum(asked.endswith(line) for asked in cloud.asked) == 1, line
