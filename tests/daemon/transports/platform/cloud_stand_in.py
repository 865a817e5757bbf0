"""A stand-in for Cloud Run's Admin API (version 2), Secret Manager (version 1), the metadata server and LiteLLM's keys.

It is not those systems: it has their paths, and the fields that toold sends and reads, as their references have them.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from toold.serving import HttpServer

ACCESS_TOKEN = "an-access-token"
MASTER_KEY = "a-master-key"
URI = "https://acme-greeter-abc.a.run.app"


@dataclass
class CloudStandIn:
    """What exists, and what was asked."""

    url: str = ""
    services: dict[str, dict[str, Any]] = field(default_factory=dict)
    secrets: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    """The versions of secrets, decoded."""
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Methods and paths."""
    forms: list[dict[str, str]] = field(default_factory=list)
    failures: dict[str, list[int]] = field(default_factory=dict)
    """By method and end of the path: the statuses of the next answers."""
    slow: bool = False
    """Operations do not end before ``released``."""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    broken: str | None = None
    """The message with which services fail to start."""

    def toml(self, directory_key: str, **settings: str) -> str:
        """The tables of toold.toml; ``directory_key`` is the file with LiteLLM's key."""
        cloud = {"project": "my-project", "region": "europe-west1", "image": "gcr.io/p/agent:1"}
        cloud |= {"run_url": self.url, "secrets_url": self.url, "metadata_url": self.url, **settings}
        lines = ['[deploy]\ntarget = "cloud-run"\npoll_s = 0.01\nallow_private = true\n[deploy.cloud_run]']
        lines += [f"{name} = {json.dumps(value)}" for name, value in cloud.items()]
        key = json.dumps({"file": directory_key}).replace(":", " =").replace('"file"', "file")
        return "\n".join([*lines, f'[deploy.cloud_run.litellm]\nurl = "{self.url}"\nkey = {key}\n'])

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        self.asked.append(f"{request.method} {path}")
        for end, statuses in self.failures.items():
            if statuses and f"{request.method} {path}".endswith(end):
                return JSONResponse({"error": {"message": "a secret text"}}, statuses.pop(0))
        if path.startswith("/computeMetadata/"):
            assert request.headers["metadata-flavor"] == "Google"
            return JSONResponse({"access_token": ACCESS_TOKEN, "expires_in": 3599, "token_type": "Bearer"})
        if path == "/token":
            form = await request.form()
            self.forms.append({name: str(value) for name, value in form.items()})
            return JSONResponse({"access_token": ACCESS_TOKEN, "expires_in": 3599})
        expected = MASTER_KEY if path.startswith("/key/") else ACCESS_TOKEN
        if request.headers.get("authorization") != f"Bearer {expected}":
            return JSONResponse({}, 401)
        body = json.loads(await request.body() or b"{}")
        if path.startswith("/key/"):
            return self._key(request, body)
        if path.endswith((":getIamPolicy", ":setIamPolicy")):
            return self._policy(path, body)
        if path.startswith("/v1/"):
            return self._secret(request, path, body)
        return self._run(request, path, body)

    def _key(self, request: Request, body: dict[str, Any]) -> Response:
        if request.url.path == "/key/info":
            known = self.keys.get(request.query_params["key"])
            return JSONResponse({"info": known}) if known else JSONResponse({"error": {}}, 404)
        if request.url.path == "/key/generate":
            self.keys[hashlib.sha256(body["key"].encode()).hexdigest()] = body
            return JSONResponse({"key": body["key"], "key_alias": body["key_alias"]})
        deleted = [self.keys.pop(hashlib.sha256(key.encode()).hexdigest()) for key in body["keys"]]
        return JSONResponse({"deleted_keys": body["keys"] if deleted else []})

    def _policy(self, path: str, body: dict[str, Any]) -> Response:
        resource, _, action = path.rpartition(":")
        if action == "setIamPolicy":
            self.policies[resource] = body["policy"]
        return JSONResponse(self.policies.get(resource, {"etag": "ACAB"}))

    def _secret(self, request: Request, path: str, body: dict[str, Any]) -> Response:
        name = path.rsplit("/", maxsplit=1)[-1].partition(":")[0]
        if path.endswith("/secrets"):
            name = request.query_params["secretId"]
            self.secrets[name] = {"name": f"projects/123456/secrets/{name}", **body}
            return JSONResponse(self.secrets[name])
        if path.endswith(":addVersion"):
            self.values[name] = base64.b64decode(body["payload"]["data"]).decode()
            return JSONResponse({"name": f"projects/123456/secrets/{name}/versions/1", "state": "ENABLED"})
        if path.endswith("/versions"):
            name = path.split("/")[-2]
            return JSONResponse({"versions": [{"state": "ENABLED"}]} if name in self.values else {})
        if name not in self.secrets:
            return JSONResponse({"error": {"code": 404, "status": "NOT_FOUND"}}, 404)
        if request.method == "DELETE":
            self.values.pop(name, None)
            del self.secrets[name]
            return JSONResponse({})
        return JSONResponse(self.secrets[name])

    def _run(self, request: Request, path: str, body: dict[str, Any]) -> Response:
        name = path.rsplit("/", maxsplit=1)[-1]
        if "/operations/" in path:
            return JSONResponse(self._operation(path.removeprefix("/v2/")))
        if path.endswith("/services"):
            name = request.query_params["serviceId"]
            self.services[name] = {"name": f"{path.removeprefix('/v2/')}/{name}", **body, "reconciling": True}
            return JSONResponse({"name": "projects/my-project/locations/europe-west1/operations/1"})
        if name not in self.services:
            return JSONResponse({"error": {"code": 404, "status": "NOT_FOUND"}}, 404)
        if request.method == "DELETE":
            del self.services[name]
            return JSONResponse({"name": "projects/my-project/locations/europe-west1/operations/2", "done": True})
        return JSONResponse(self._shown(self.services[name]))

    def _operation(self, name: str) -> dict[str, Any]:
        if self.slow and not self.released.is_set():
            return {"name": name, "done": False}
        return {"name": name, "done": True, "response": {}}

    def _shown(self, service: dict[str, Any]) -> dict[str, Any]:
        if self.slow and not self.released.is_set():
            return {**service, "terminalCondition": {"type": "Ready", "state": "CONDITION_RECONCILING"}}
        if self.broken is not None:
            condition = {"type": "Ready", "state": "CONDITION_FAILED", "message": self.broken}
            return {**service, "reconciling": False, "terminalCondition": condition}
        ready = {"type": "Ready", "state": "CONDITION_SUCCEEDED"}
        return {**service, "reconciling": False, "terminalCondition": ready, "uri": URI}


@asynccontextmanager
async def running_cloud() -> AsyncIterator[CloudStandIn]:
    """A stand-in that listens."""
    cloud = CloudStandIn()
    route = Route("/{path:path}", cloud.answer, methods=["GET", "POST", "DELETE"])
    port = HttpServer(Starlette(routes=[route]), "127.0.0.1", 0, "--stand-in")
    await port.start()
    cloud.url = f"http://127.0.0.1:{port.port}"
    try:
        yield cloud
    finally:
        cloud.released.set()
        await port.close()
