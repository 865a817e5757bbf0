"""Deployments to the daemon itself, over the platform API."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.agent_registry.registry_stand_in import PIPE, record, running_registry
from toold.deployment import deployment_service
from toold.providers.simulator import Simulator

from .conftest import PlatformClient, PlatformPort, make_directory, platform

module_loop = pytest.mark.asyncio(loop_scope="module")

GREETER = {"customer_id": "Acme Inc", "prompt_ref": "greeter", "default_model": "glm-4.7-flash"}


async def phase(client: PlatformClient, job_id: str, line: str) -> list[str]:
    """The job's log once it has this line."""
    while True:
        logs: list[str] = (await client.ask("GET", f"/jobs/{job_id}/logs")).json()["logs"]
        if any(each.endswith(line) for each in logs):
            return logs
        await asyncio.sleep(0.02)


async def cards(client: PlatformClient) -> list[str]:
    answer = await client.http.get("/agents", headers={"authorization": f"Bearer {client.token}"})
    return [agent["name"] for agent in answer.json()["agents"]]


@module_loop
async def test_deploy(port: PlatformPort) -> None:
    """A deployed agent is there at once, its job says what each phase did, and a removal leaves nothing behind."""
    client = port.client
    job = await client.deploy(agent_name="greeter", **GREETER, cpu="2")
    assert (job["status"], job["operation"], job["service_name"], job["progress"], job["error"]) == (
        "completed",
        "deploy",
        "acme-inc-greeter",
        100,
        None,
    )
    assert job["created_at"] <= job["started_at"] <= job["completed_at"]
    assert job["result"]["ignored"] == ["cpu"]
    assert job["result"]["url"] == f"http://127.0.0.1:{port.daemon.http.port}/agents/acme-inc-greeter"
    logs = (await client.ask("GET", f"/jobs/{job['job_id']}/logs", lines="1")).json()["logs"]
    assert [line.partition(" ")[2] for line in logs] == ["job ended: ok"]
    assert "acme-inc-greeter" in await cards(client)
    assert (await client.ask("GET", "/agents/acme-inc-greeter")).json()["status"] == "ready"
    listed = await client.ask("GET", "/jobs", service_name="acme-inc-greeter", status="completed", limit="5")
    assert listed.json() == {"jobs": [job], "count": 1}

    created_at = (await client.ask("GET", "/agents")).json()["agents"][0]["created_at"]
    assert job["created_at"][:10] == created_at[:10]
    prompts = [{"prompt_ref": "greeter", "source": "file", "description": None}]
    listing = {"prompts": prompts, "count": 1, "problems": []}
    assert (await client.ask("GET", "/agents/prompts")).json() == listing
    assert (await port.guest.ask("GET", "/agents/prompts")).status_code == 403

    taken = await client.ask("POST", "/agents/deploy", {"agent_name": "greeter", **GREETER})
    assert (taken.status_code, "is deployed already" in taken.json()["detail"]) == (409, True)
    removal = await client.ask("DELETE", "/agents/acme-inc-greeter")
    assert removal.status_code == 202
    removed = await client.ended(removal.json()["job_id"])
    assert removed["result"]["undone"] == ["the agent acme-inc-greeter", "the name acme-inc-greeter"]
    assert "acme-inc-greeter" not in await cards(client)
    assert (await client.ask("GET", "/agents")).json() == {"agents": [], "count": 0}
    assert (await client.ask("DELETE", "/agents/acme-inc-greeter")).status_code == 404


@module_loop
async def test_failed_phase(port: PlatformPort) -> None:
    """If a phase fails, what was made is undone in reverse order, and the job says so."""
    job = await port.client.deploy(**{**GREETER, "prompt_ref": "unknown"}, agent_name="lost")
    assert (job["status"], job["undone"], job["not_undone"]) == ("failed", ["the name acme-inc-lost"], [])
    assert job["error"].startswith("The phase prompt failed: prompt_ref has no prompt that can be used")
    assert (await port.client.ask("GET", "/agents/acme-inc-lost")).status_code == 404


@module_loop
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"customer_id": "a", "agent_name": "b"}, "prompt_ref"),
        ({"customer_id": "a"}, "agent_id"),
        ({"customer_id": "a", "agent_id": "1", "registry_url": "http://other.example"}, "registry_url"),
        ({"customer_id": "7", "agent_name": "b", "prompt_ref": "c"}, "customer_id"),
        ({"customer_id": "a", "agent_name": "b" * 60, "prompt_ref": "c"}, "agent_name"),
        ({**GREETER, "agent_name": "b", "default_model": "gpt-unknown"}, "model"),
        ({**GREETER, "agent_name": "b", "memory": "lots"}, "memory"),
        ({**GREETER, "agent_name": "b", "target": "cloud-run"}, "cloud-run"),
        ({**GREETER, "agent_name": "b", "port": 0}, "port"),
    ],
)
async def test_invalid_body(port: PlatformPort, body: dict[str, Any], field: str) -> None:
    """An invalid body is refused at once, with the field and what is wrong with it."""
    refused = await port.client.ask("POST", "/agents/deploy", body)
    assert refused.status_code == 422, refused.text
    assert field in str(refused.json()["detail"])


@module_loop
async def test_rights(port: PlatformPort) -> None:
    """Deploying needs the operator right, and a job of another principal is as unknown as one that is not there."""
    job = await port.client.deploy(**GREETER, agent_name="private")
    body = {**GREETER, "agent_name": "b"}
    for method, path in (("POST", "/agents/deploy"), ("GET", "/agents"), ("DELETE", "/agents/acme-inc-private")):
        refused = await port.guest.ask(method, path, body if method == "POST" else None)
        assert (refused.status_code, "operator right" in refused.json()["detail"]) == (403, True)
    job_id = job["job_id"]
    for method, path in (("GET", "/jobs/{}"), ("GET", "/jobs/{}/logs"), ("POST", "/jobs/{}/cancel")):
        theirs = await port.other.ask(method, path.format(job_id))
        missing = await port.other.ask(method, path.format("0-1"))
        assert (theirs.status_code, missing.status_code) == (404, 404)
        assert theirs.json()["detail"].replace(job_id, "0-1") == missing.json()["detail"]
    assert (await port.other.ask("GET", "/jobs")).json()["jobs"] == []
    assert (await port.other.deploy(**GREETER, agent_name="theirs"))["status"] == "completed"  # a named operator may
    cancelled = await port.client.ask("POST", f"/jobs/{job_id}/cancel")
    assert (cancelled.status_code, cancelled.json()["detail"].startswith("The job has ended")) == (409, True)
    await port.client.ask("DELETE", "/agents/acme-inc-private")


async def test_crash(tmp_path: Path) -> None:
    """After a crash within a phase the job resumes under its id and repeats no phase that had ended; an agent that was
    deployed is there at the next start; and a cancelled job removes what it made."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    async with Simulator() as simulator, running_registry() as registry:
        registry.records[PIPE] = record()
        deploy = f'[deploy]\npoll_s = 0.01\nregistries = ["{registry.url}"]\nallow_private = true\n'
        tokens = make_directory(first, deploy)
        body = {"customer_id": "acme", "agent_id": PIPE, "registry_url": registry.url}
        registry.hangs = True
        async with platform(first, simulator, tokens) as port:
            job_id = (await port.client.ask("POST", "/agents/deploy", body)).json()["job_id"]
            begun = await phase(port.client, job_id, "definition: begins")
            running = (await port.client.ask("GET", f"/jobs/{job_id}")).json()
            assert (running["status"], running["current_phase"]) == ("running", "definition")
            shutil.copytree(first, second)  # what a crash at this moment leaves on the disk
            cancelled = await port.client.ask("POST", f"/jobs/{job_id}/cancel")
            assert cancelled.status_code == 202
            job = await port.client.ended(job_id)
            name = f"acme-{PIPE}"
            assert (job["status"], job["undone"], job["not_undone"]) == ("cancelled", [f"the name {name}"], [])
            assert (await port.client.ask("GET", "/agents")).json()["count"] == 0
        registry.hangs = False
        registry.released.set()
        async with platform(second, simulator, tokens) as port:
            job = await port.client.ended(job_id)
            assert (job["status"], job["result"]["roles"]) == ("completed", ["researcher", "writer"]), job
            logs = await phase(port.client, job_id, "job ended: ok")
            assert sum("reserve" in line for line in logs) == 2  # it began and ended, once
            assert logs[:3] == begun[:3]
            ended = [line.partition(" ")[2] for line in logs if not line.endswith("begins")]
            phases = ["reserve:" + name, "definition", "prompt", "host", "url"]
            assert ended == ["queued", *(f"{each}: done" for each in phases), "job ended: ok"]
            times = [line.split()[0] for line in logs]
            assert times == sorted(times)
            order = [line.split()[1] for line in logs[1:-1]]
            assert order == [f"{each}:" for each in phases for _ in ("begins", "ends")]
            assert name in await cards(port.client)
        async with platform(second, simulator, tokens) as port:
            assert name in await cards(port.client)


@module_loop
async def test_limits(port: PlatformPort, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists and logs have at most 100 jobs and 1,000 lines, and there is a limit of deployments."""
    for path, query in (("/jobs", {"limit": "101"}), ("/jobs/0-1/logs", {"lines": "1001"}), ("/jobs", {"status": "x"})):
        refused = await port.client.ask("GET", path, **query)
        assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", *query])
    monkeypatch.setattr(deployment_service, "MAX_DEPLOYMENTS", 0)
    full = await port.client.ask("POST", "/agents/deploy", {**GREETER, "agent_name": "more"})
    assert (full.status_code, full.json()["detail"]) == (429, "There are 0 deployments; remove one first.")
