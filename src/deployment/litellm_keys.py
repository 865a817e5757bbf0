"""The key that each deployed container gets at LiteLLM. Its value is derived, so that the journal does not contain
it.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final

from .deploy_request import DeployPlan
from .deployment_api_client import DeploymentApiClient

_PREFIX: Final = "sk-"
"""The prefix of keys. LiteLLM treats keys without it as hashes."""


def derived_key(secret: bytes, job_id: str, service_name: str) -> str:
    """The key of a job's service. It is the same after a restart, and cannot be computed without the daemon's
    secret.
    """
    digest = hmac.digest(secret, f"{job_id}\n{service_name}".encode(), "sha256")
    return _PREFIX + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class LiteLlmKeys:
    """Creates and deletes keys."""

    def __init__(self, proxy: DeploymentApiClient) -> None:
        self._proxy = proxy

    async def make(self, key: str, plan: DeployPlan, job_id: str) -> Mapping[str, Any]:
        """Create the key, unless it exists."""
        if not await self._exists(key):
            body: dict[str, Any] = {"key": key, "key_alias": plan.service_name, "metadata": {"toold_job": job_id}}
            if plan.default_model is not None:
                body["models"] = [plan.default_model]
            await self._proxy.post("/key/generate", body)
        return {"key_alias": plan.service_name}

    async def delete(self, key: str, alias: str) -> str | None:
        """Delete the key, if it exists."""
        if not await self._exists(key):
            return None
        await self._proxy.post("/key/delete", {"keys": [key]})
        return f"the LiteLLM key {alias}"

    async def _exists(self, key: str) -> bool:
        # By its hash, because URLs are logged.
        return await self._proxy.get(f"/key/info?key={hashlib.sha256(key.encode()).hexdigest()}") is not None
