"""A stand-in for the predecessor's registry on loopback, with its records and routes."""

import asyncio
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

PIPE = "b3b0cfce-0000-4000-8000-000000000001"


def role(name: str, prompt: str | None = None, **fields: Any) -> dict[str, Any]:
    """A role with all fields that the registry answers."""
    defaults: dict[str, Any] = {"prompt_ref": None, "max_turns": 10, "model": None, "metadata": {}}
    return {"name": name, "prompt_inline": prompt, "tools": ["Bash", "Read", "Grep", "Glob"], **defaults, **fields}


def record(agent_id: str = PIPE, name: str = "Pipe Line", *roles: dict[str, Any], **config: Any) -> dict[str, Any]:
    """A record as the registry answers it."""
    chosen = list(roles) or [role("researcher", "Look."), role("writer", "Write.")]
    return {
        "agent_id": agent_id,
        "name": name,
        "description": "Looks and writes.",
        "url": "",
        "capabilities": {"streaming": False},
        "skills": [],
        "deployment_status": None,
        "runtime_config": {
            "execution_type": "sequential" if len(chosen) > 1 else "single",
            "permission_mode": "bypassPermissions",
            "chain_output": True,
            "roles": chosen,
            "parallel_roles": [],
            "aggregator_role": None,
            "coordinator_role": None,
            "worker_roles": [],
            "hub_role": None,
            "spoke_roles": [],
            **config,
        },
    }


@dataclass
class RegistryStandIn:
    """Answers ``GET /agents/{id}`` and ``PATCH /agents/{id}/url``, or whatever ``failure`` is."""

    url: str = ""
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    has_etags: bool = True
    failure: Response | None = None
    """Answers everything."""
    refuses_urls: bool = False
    hangs: bool = False
    asked: list[str] = field(default_factory=list)
    """Method, path and status of each request."""
    keys: list[str | None] = field(default_factory=list)
    urls: list[tuple[str, str]] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def toml(self, agents: str = f'["{PIPE}"]', **settings: Any) -> str:
        """The table of toold.toml."""
        lines = [f'[registry]\nurl = "{self.url}"\nallow_private = true\nagents = {agents}']
        return "\n".join([*lines, *(f"{name} = {json.dumps(value)}" for name, value in settings.items())])

    async def answer(self, request: Request) -> Response:
        self.keys.append(request.headers.get("authorization"))
        if self.hangs:
            await self.released.wait()
        response = self.failure or await self._response(request)
        self.asked.append(f"{request.method} {request.url.path} {response.status_code}")
        return response

    async def _response(self, request: Request) -> Response:
        agent_id = request.path_params["id"]
        if agent_id not in self.records:
            return JSONResponse({"detail": "Agent not found"}, 404)
        if request.method == "PATCH":
            if self.refuses_urls:
                return JSONResponse({"detail": "no"}, 500)
            url = (await request.json())["url"]
            self.urls.append((agent_id, url))
            self.records[agent_id]["url"] = url
            return JSONResponse({"status": "updated", "agent_id": agent_id, "url": url})
        content = json.dumps(self.records[agent_id]).encode()
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        if self.has_etags and request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers={"etag": etag})
        headers = {"etag": etag} if self.has_etags else {}
        return Response(content, media_type="application/json", headers=headers)


@asynccontextmanager
async def running_registry() -> AsyncIterator[RegistryStandIn]:
    """A stand-in that listens."""
    registry = RegistryStandIn()
    routes = [
        Route("/agents/{id}", registry.answer),
        Route("/agents/{id}/url", registry.answer, methods=["PATCH"]),
        Route("/agents/{id}/runtime-config", lambda _: JSONResponse({"detail": "Not Found"}, 404)),
    ]
    port = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, "--stand-in")
    await port.start()
    registry.url = f"http://127.0.0.1:{port.port}"
    try:
        yield registry
    finally:
        registry.released.set()
        await port.close()
