"""Deployments to Cloud Run, against a stand-in of its API, Secret Manager and LiteLLM."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from toold.deployment.cloud_run_service import operation_name, with_member
from toold.deployment.deploy_settings import google_account, read_deploy
from toold.protocol.error_codes import ToolExecutionError
from toold.providers.simulator import Simulator
from toold.sources import GoogleToken

from .cloud_stand_in import ACCESS_TOKEN, MASTER_KEY, URI, CloudStandIn, running_cloud
from .conftest import PlatformPort, make_directory, platform

module_loop = pytest.mark.asyncio(loop_scope="module")

NAME = "acme-greeter"
BODY = {
    "customer_id": "acme",
    "agent_name": "greeter",
    "prompt_ref": "greeter",
    "default_model": "gpt-4o-mini",
    "min_instances": 1,
    "max_instances": 3,
    "allow_public_access": True,
}
PROJECT = "/v2/projects/my-project/locations/europe-west1"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cloud() -> AsyncIterator[CloudStandIn]:
    async with running_cloud() as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def port(tmp_path_factory: pytest.TempPathFactory, cloud: CloudStandIn) -> AsyncIterator[PlatformPort]:
    """One daemon for all tests of this module."""
    directory = tmp_path_factory.mktemp("cloud")
    (directory / "litellm.key").write_text(MASTER_KEY)
    tokens = make_directory(directory, cloud.toml("litellm.key"))
    async with Simulator() as simulator, platform(directory, simulator, tokens) as started:
        yield started


@module_loop
async def test_deploy(port: PlatformPort, cloud: CloudStandIn) -> None:
    """A deployment makes a key, a secret with it and a service that reads it; a removal leaves none of them."""
    job = await port.client.deploy(**BODY)
    assert job["status"] == "completed", job
    assert (job["result"]["url"], job["result"]["public"]) == (URI, True)
    (key,) = cloud.keys.values()
    assert (key["key_alias"], key["models"], key["key"]) == (NAME, ["gpt-4o-mini"], cloud.values[f"{NAME}-litellm-key"])
    template = cloud.services[NAME]["template"]
    assert template["scaling"] == {"minInstanceCount": 1, "maxInstanceCount": 3}
    (container,) = template["containers"]
    assert container["resources"] == {"limits": {"cpu": "1", "memory": "512Mi"}}
    assert (container["image"], container["ports"]) == ("gcr.io/p/agent:1", [{"containerPort": 9100}])
    values = {each["name"]: each.get("value") or each["valueSource"]["secretKeyRef"] for each in container["env"]}
    assert values == {
        "AGENT_NAME": "greeter",
        "PROMPT_REF": "greeter",
        "DEFAULT_MODEL": "gpt-4o-mini",
        "LITELLM_URL": cloud.url,
        "LITELLM_API_KEY": {"secret": f"{NAME}-litellm-key", "version": "latest"},
    }
    readers = cloud.policies[f"/v1/projects/my-project/secrets/{NAME}-litellm-key"]["bindings"]
    assert readers[0]["members"] == ["serviceAccount:123456-compute@developer.gserviceaccount.com"]
    assert cloud.policies[f"{PROJECT}/services/{NAME}"]["bindings"][0]["members"] == ["allUsers"]
    state = port.daemon.state.path
    stored = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert key["key"].encode() not in stored  # the journal included
    removal = (await port.client.ask("DELETE", f"/agents/{NAME}")).json()
    removed = await port.client.ended(removal["job_id"])
    assert removed["result"]["undone"] == [
        f"the Cloud Run service {NAME}",
        f"the secret {NAME}-litellm-key",
        f"the LiteLLM key {NAME}",
        f"the name {NAME}",
    ]
    assert (cloud.services, cloud.secrets, cloud.values, cloud.keys) == ({}, {}, {}, {})


@module_loop
async def test_failed_service(port: PlatformPort, cloud: CloudStandIn) -> None:
    """If a phase fails, the others are undone; what cannot be undone is named, and a later removal tries it again."""
    cloud.broken = "the container did not listen"
    cloud.failures["POST /key/delete"] = [403]
    job = await port.client.deploy(**BODY)
    cloud.broken = None
    assert (job["status"], cloud.services, cloud.secrets) == ("failed", {}, {})
    assert "Cloud Run cannot start the service: the container did not listen" in job["error"]
    assert job["undone"] == [f"the Cloud Run service {NAME}", f"the secret {NAME}-litellm-key"]
    (left,) = job["not_undone"]
    assert left.startswith("key (LiteLLM answered HTTP 403 to POST /key/delete")
    assert (await port.client.ask("GET", f"/agents/{NAME}")).json()["status"] == "incomplete"
    removal = (await port.client.ask("DELETE", f"/agents/{NAME}")).json()
    removed = await port.client.ended(removal["job_id"])
    assert removed["result"]["undone"] == [f"the LiteLLM key {NAME}", f"the name {NAME}"]
    assert cloud.keys == {}


@module_loop
async def test_failures_that_pass(port: PlatformPort, cloud: CloudStandIn) -> None:
    """A phase is tried again after an answer such as 503, up to four times; then the job fails."""
    cloud.failures[f"GET {PROJECT}/services/{NAME}"] = [503, 429, 500]
    job = await port.client.deploy(**BODY)
    assert job["status"] == "completed", job
    removal = (await port.client.ask("DELETE", f"/agents/{NAME}")).json()
    assert (await port.client.ended(removal["job_id"]))["status"] == "completed"
    cloud.failures["POST /key/generate"] = [503] * 4
    job = await port.client.deploy(**BODY)
    assert (job["status"], job["undone"]) == ("failed", [f"the name {NAME}"])
    assert "a secret text" not in json.dumps(job)


@module_loop
async def test_name_of_somebody_else(port: PlatformPort, cloud: CloudStandIn) -> None:
    """A service that the job did not make is neither changed nor removed."""
    cloud.services[NAME] = theirs = {"name": NAME, "labels": {"toold-job": "another"}}
    job = await port.client.deploy(**BODY)
    assert "There is a Cloud Run service acme-greeter that this job did not make" in job["error"]
    assert cloud.services.pop(NAME) is theirs
    assert (job["status"], cloud.secrets, cloud.keys) == ("failed", {}, {})


async def test_restart_and_cancel(tmp_path: Path) -> None:
    """A job that waits for an operation resumes after a restart without creating the service again, and a cancel then
    removes all."""
    async with Simulator() as simulator, running_cloud() as cloud:
        (tmp_path / "litellm.key").write_text(MASTER_KEY)
        tokens = make_directory(tmp_path, cloud.toml("litellm.key"))
        cloud.slow = True
        async with platform(tmp_path, simulator, tokens) as port:
            job_id = (await port.client.ask("POST", "/agents/deploy", BODY)).json()["job_id"]
            while not any("/operations/" in path for path in cloud.asked):
                await asyncio.sleep(0.01)
        async with platform(tmp_path, simulator, tokens) as port:
            before = len(cloud.asked)
            while f"GET {PROJECT}/services/{NAME}" not in cloud.asked[before:]:
                await asyncio.sleep(0.01)
            job = (await port.client.ask("GET", f"/jobs/{job_id}")).json()
            assert (job["status"], job["current_phase"]) == ("running", "service")
            assert (await port.client.ask("POST", f"/jobs/{job_id}/cancel")).status_code == 202
            job = await port.client.ended(job_id)
        assert (job["status"], job["not_undone"], len(job["undone"])) == ("cancelled", [], 4), job
        assert (cloud.services, cloud.secrets, cloud.keys) == ({}, {}, {})
        assert sum(path == f"POST {PROJECT}/services" for path in cloud.asked) == 1


@module_loop
async def test_service_account(tmp_path: Path, cloud: CloudStandIn) -> None:
    """With the key of a service account, a signed request gets the token, which is kept until it expires."""
    private = rsa.generate_private_key(65537, 2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {"client_email": "d@p.iam.gserviceaccount.com", "private_key": pem.decode(), "private_key_id": "7"}
    (tmp_path / "account.json").write_text(json.dumps({**account, "token_uri": f"{cloud.url}/token"}))
    table = {"project": "p", "region": "r", "service_account": tmp_path / "account.json"}
    settings = read_deploy({"allow_private": True, "cloud_run": table})
    assert settings is not None
    assert settings.cloud_run is not None
    token = GoogleToken(google_account(settings, settings.cloud_run))
    assert [await token.read(), await token.read()] == [ACCESS_TOKEN, ACCESS_TOKEN]
    (form,) = cloud.forms
    claims = jwt.decode(form["assertion"], private.public_key(), ["RS256"], audience=f"{cloud.url}/token")
    assert (claims["iss"], claims["scope"]) == (
        account["client_email"],
        "https://www.googleapis.com/auth/cloud-platform",
    )


def test_with_member() -> None:
    """A role is added to a policy next to what it has, and not twice; a binding with a condition does not count."""
    policy = {
        "etag": "x",
        "bindings": [{"role": "r", "members": ["a"], "condition": {}}, {"role": "r", "members": ["b"]}],
    }
    changed = with_member(policy, "r", "a")
    assert changed is not None
    assert (changed["etag"], changed["bindings"][1]) == ("x", {"role": "r", "members": ["b", "a"]})
    assert with_member(changed, "r", "a") is None


@pytest.mark.parametrize("bindings", [{}, "x", [5], [{"role": "r", "members": "a"}]])
def test_an_unknown_policy_is_not_written(bindings: Any) -> None:
    """A policy of another form is an error: written back without what was not understood, it would remove grants."""
    with pytest.raises(ToolExecutionError, match="it was not changed"):
        with_member({"bindings": bindings}, "r", "a")


@pytest.mark.parametrize(
    "name", [None, 5, "", "projects/p/locations/l/operations/../../x", "projects/p/locations/l/operations/a?b"]
)
def test_an_operation_needs_a_name(name: Any) -> None:
    """What a server sends as the name of an operation is put into a path only if it is one."""
    with pytest.raises(ToolExecutionError, match="not an operation"):
        operation_name({"name": name})
