"""Stand-ins for Phoenix, LiteLLM and a registry on loopback, and a chain of prompts that asks them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from toold.prompts import PromptChain, read_prompts
from toold.serving import HttpServer

SHORT_S = 0.2
"""The time limit for a server that never answers."""


@dataclass
class StandIn:
    """A server that answers each path with a fixed response, and any other path as ``missing`` says."""

    missing: Response
    url: str = ""
    answers: dict[str, Response] = field(default_factory=dict)
    failure: Response | None = None
    """Answers everything."""
    hangs: bool = False
    asked: list[str] = field(default_factory=list)
    concurrent: int = 0
    most_concurrent: int = 0
    keys: list[str | None] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def table(self, timeout_s: float = 30.0) -> dict[str, Any]:
        """The settings of this server."""
        return {"url": self.url, "allow_private": True, "timeout_s": timeout_s}

    async def answer(self, request: Request) -> Response:
        path = request.scope["raw_path"].decode().removeprefix(urlsplit(self.url).path)
        self.asked.append(path)
        self.keys.append(request.headers.get("authorization"))
        self.concurrent += 1
        self.most_concurrent = max(self.most_concurrent, self.concurrent)
        if self.hangs:
            await self.released.wait()
        self.concurrent -= 1
        return self.failure or self.answers.get(path, self.missing)


@dataclass
class Servers:
    """The three stand-ins, on one port."""

    phoenix: StandIn
    litellm: StandIn
    registry: StandIn

    def all_have(self, ref: str) -> None:
        """Let each server have a prompt that names the server."""
        self.phoenix.answers[f"/v1/prompts/{ref}/tags/production"] = phoenix_answer("from phoenix")
        self.litellm.answers[f"/prompts/{ref}/info"] = litellm_answer("---\nmodel: glm-4.6\n---\nfrom litellm")
        self.registry.answers[f"/prompts/{ref}"] = JSONResponse({"template": "from registry"})


def phoenix_answer(content: Any, version: str = "v1", **fields: Any) -> Response:
    """Phoenix's answer for a version with one system message."""
    template = {"type": "chat", "messages": [{"role": "system", "content": content}]}
    version_fields = {"id": version, "model_name": "kimi-k2", "template_type": "CHAT", "template_format": "MUSTACHE"}
    return JSONResponse({"data": {**version_fields, "template": template, **fields}})


def litellm_answer(content: str) -> Response:
    return JSONResponse({"prompt_spec": {"prompt_id": "x", "litellm_params": {"dotprompt_content": content}}})


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    not_found = JSONResponse({"detail": {"error": "Prompt not found"}}, 400)
    servers = Servers(StandIn(PlainTextResponse("Not Found", 404)), StandIn(not_found), StandIn(JSONResponse({}, 404)))
    routes = [Route(f"/{name}/{{path:path}}", stand_in.answer) for name, stand_in in vars(servers).items()]
    port = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, "--stand-in")
    await port.start()
    for name, stand_in in vars(servers).items():
        stand_in.url = f"http://127.0.0.1:{port.port}/{name}"
    yield servers
    for stand_in in vars(servers).values():
        stand_in.released.set()
    await port.close()


@pytest.fixture
async def chain_of(servers: Servers, tmp_path: Path) -> AsyncIterator[Callable[..., PromptChain]]:
    """A function that creates a chain with all servers; ``settings`` replace its own. Chains keep prompts in ``kept``
    and read files in ``prompts``."""
    chains = []

    def create(**settings: Any) -> PromptChain:
        table = {name: server.table() for name, server in vars(servers).items()}
        chain = PromptChain(read_prompts({**table, "folder": tmp_path / "prompts", **settings}), tmp_path / "kept")
        chains.append(chain)
        return chain

    yield create
    for chain in chains:
        await chain.close()
