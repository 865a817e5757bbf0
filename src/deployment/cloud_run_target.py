"""The target ``cloud-run``: a container on Cloud Run, with a key at LiteLLM in Secret Manager."""

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError, ToolExecutionError
from ..sources import GoogleToken
from ..tools import PromptError, PromptQuery, SecretUnavailableError
from .cloud_run_service import (
    ACCESSOR,
    ALL_USERS,
    INVOKER,
    is_of_job,
    operation_name,
    reader_of,
    readiness,
    secret_body,
    service_body,
    with_member,
)
from .deploy_phase import DeployPhase
from .deploy_settings import CloudRunSettings, DeploySettings, LiteLlmSettings, google_account
from .deployment_api_client import DeploymentApiClient
from .deployment_records import Deployment
from .deployment_service import DeploymentService
from .litellm_keys import LiteLlmKeys, derived_key

SERVICE_S: Final = 900.0
"""The timeout of creating or deleting a service. Pulling the image takes most of this time."""


class CloudRunTarget:
    """Implements ``DeployTarget``."""

    def __init__(
        self, service: DeploymentService, settings: DeploySettings, cloud: CloudRunSettings, secret: bytes
    ) -> None:
        """``secret`` is the daemon's secret, from which the containers' keys are derived."""
        self._service = service
        self._settings = settings
        self._cloud = cloud
        self._secret = secret
        token = GoogleToken(google_account(settings, cloud)).read
        self._run = DeploymentApiClient("Cloud Run", cloud.run_url, settings, token)
        self._secrets = DeploymentApiClient("Secret Manager", cloud.secrets_url, settings, token)
        proxy = None if cloud.litellm is None else _proxy(settings, cloud.litellm)
        self._keys = None if proxy is None else LiteLlmKeys(proxy)
        self._clients = [client for client in (self._run, self._secrets, proxy) if client is not None]

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.close()

    def phases(self, deployment: Deployment) -> Sequence[DeployPhase]:
        plan = deployment.plan
        phases = []
        if plan.prompt_ref is not None:
            phases.append(DeployPhase("prompt", lambda: self._find_prompt(plan.prompt_ref)))
        if plan.has_key:
            if self._keys is None:
                why = "The deployment has a key at LiteLLM, which is not configured; write [deploy.cloud_run.litellm]."
                raise ServiceUnavailableError.content_free(why, executed="no")
            keys, key = self._keys, derived_key(self._secret, deployment.job_id, plan.service_name)
            phases += [
                DeployPhase(
                    "key",
                    lambda: keys.make(key, plan, deployment.job_id),
                    lambda: keys.delete(key, plan.service_name),
                ),
                DeployPhase(
                    "secret", lambda: self._make_secret(deployment, key), lambda: self._delete_secret(deployment)
                ),
            ]
        phases.append(
            DeployPhase(
                "service",
                lambda: self._make_service(deployment),
                lambda: self._delete_service(deployment),
                timeout_s=SERVICE_S,
            )
        )
        if plan.allow_public_access:
            phases.append(DeployPhase("access", lambda: self._open(deployment)))
        phases.append(DeployPhase("url", lambda: self._finish(deployment)))
        return phases

    async def _find_prompt(self, ref: str | None) -> Mapping[str, Any]:
        try:
            prompt = await self._service.prompts.resolve(PromptQuery("main", ref=ref))
        except PromptError as error:
            problem = f"has no prompt that can be used: {error}"
            raise InvalidArgumentsError(
                f"The field prompt_ref {problem}.", details={"fields": {"prompt_ref": problem}}
            ) from error
        return {"prompt": prompt.source}

    # --- Secret Manager ----------------------------------------------------------------------------------------------

    async def _make_secret(self, deployment: Deployment, key: str) -> Mapping[str, Any]:
        plan = deployment.plan
        path = f"/v1/projects/{plan.project}/secrets/{plan.secret_id}"
        secret = await self._secrets.get(path)
        if secret is None:
            secrets = f"/v1/projects/{plan.project}/secrets?secretId={plan.secret_id}"
            secret = await self._secrets.post(secrets, secret_body(deployment.job_id))
        elif not is_of_job(secret, deployment.job_id):
            raise _of_somebody_else("secret", plan.secret_id)
        versions = await self._secrets.get(f"{path}/versions?pageSize=1")
        if not (versions or {}).get("versions"):
            data = base64.b64encode(key.encode()).decode()
            await self._secrets.post(f"{path}:addVersion", {"payload": {"data": data}})
        reader = reader_of(secret, self._cloud)
        if reader is not None:
            await _grant(self._secrets, path, ACCESSOR, reader)
        return {"secret": plan.secret_id}

    async def _delete_secret(self, deployment: Deployment) -> str | None:
        plan = deployment.plan
        path = f"/v1/projects/{plan.project}/secrets/{plan.secret_id}"
        secret = await self._secrets.get(path)
        if secret is None or not is_of_job(secret, deployment.job_id):
            return None
        await self._secrets.delete(path)
        return f"the secret {plan.secret_id}"

    # --- Cloud Run ---------------------------------------------------------------------------------------------------

    async def _make_service(self, deployment: Deployment) -> Mapping[str, Any]:
        plan = deployment.plan
        service = await self._run.get(_service_path(deployment))
        if service is None:
            path = f"{_location_path(deployment)}/services?serviceId={plan.service_name}"
            await self._end(await self._run.post(path, service_body(plan, self._cloud, deployment.job_id)))
        elif not is_of_job(service, deployment.job_id):
            raise _of_somebody_else("Cloud Run service", plan.service_name)
        await self._wait_until_ready(deployment)
        return {"service": plan.service_name, "region": plan.region}

    async def _wait_until_ready(self, deployment: Deployment) -> Mapping[str, Any]:
        while True:
            service = await self._run.get(_service_path(deployment))
            if service is None:
                raise ServiceUnavailableError.content_free(
                    "Cloud Run has no such service, although it was created.", executed="maybe", transient=True
                )
            state, why = readiness(service)
            if state == "ready":
                return service
            if state == "failed":
                raise ToolExecutionError(f"Cloud Run cannot start the service: {why}.")
            await asyncio.sleep(self._settings.poll_s)

    async def _delete_service(self, deployment: Deployment) -> str | None:
        service = await self._run.get(_service_path(deployment))
        if service is None or not is_of_job(service, deployment.job_id):
            return None
        operation = await self._run.delete(_service_path(deployment))
        if operation is not None:
            await self._end(operation)
        return f"the Cloud Run service {deployment.name}"

    async def _end(self, operation: Mapping[str, Any]) -> None:
        """Wait until a long-running operation has ended.

        Raises:
            ToolExecutionError: the operation failed, or has no name by which it can be read.
        """
        while operation.get("done") is not True:
            await asyncio.sleep(self._settings.poll_s)
            latest = await self._run.get(f"/v2/{operation_name(operation)}")
            if latest is None:  # operations are deleted after some time
                return
            operation = latest
        error = operation.get("error")
        if isinstance(error, Mapping):
            message = str(error.get("message") or f"code {error.get('code')}")[:500]
            raise ToolExecutionError(f"Cloud Run: the operation failed: {message}")

    async def _open(self, deployment: Deployment) -> Mapping[str, Any]:
        await _grant(self._run, _service_path(deployment), INVOKER, ALL_USERS)
        return {"public": True}

    async def _finish(self, deployment: Deployment) -> Mapping[str, Any]:
        service = await self._wait_until_ready(deployment)
        url = service.get("uri")
        if not isinstance(url, str) or not url:
            raise ToolExecutionError("Cloud Run returned no URL for the service.")
        await self._service.change(deployment.name, deployment.job_id, url=url, state="ready")
        return {"url": url}


async def _grant(api: DeploymentApiClient, path: str, role: str, member: str) -> None:
    """Grant a role on a resource to a member, unless the member has it."""
    policy = await api.get(f"{path}:getIamPolicy")
    changed = with_member(policy or {}, role, member)
    if changed is not None:
        await api.post(f"{path}:setIamPolicy", {"policy": changed})


def _location_path(deployment: Deployment) -> str:
    return f"/v2/projects/{deployment.plan.project}/locations/{deployment.plan.region}"


def _service_path(deployment: Deployment) -> str:
    return f"{_location_path(deployment)}/services/{deployment.name}"


def _of_somebody_else(kind: str, name: str) -> ToolExecutionError:
    return ToolExecutionError(
        f"There is a {kind} {name} that this job did not make; remove it, or choose another name.", executed="no"
    )


def _proxy(settings: DeploySettings, litellm: LiteLlmSettings) -> DeploymentApiClient:
    async def key() -> str:
        try:
            return await asyncio.to_thread(litellm.key.secret.read_header_value)
        except SecretUnavailableError as error:
            raise ToolExecutionError(
                f"The key of [deploy.cloud_run.litellm] cannot be read: {error}.", executed="no"
            ) from error

    return DeploymentApiClient("LiteLLM", litellm.url, settings, key)
