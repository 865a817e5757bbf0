"""Registration of public agents at LiteLLM: a stand-in on loopback with its routes, no copy of the program."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.waiting import until
from toold.agent_registry import LiteLlmRegistrySettings, RegistrySettingsError, read_registry
from toold.served_registry import Kind, LiteLlmRegistration, RegistryContent
from toold.served_registry.entry_check import checked_entry
from toold.served_registry.litellm_registration import FIRST_DELAY_S
from toold.serving import HttpServer
from toold.store import RegistryEntryRow


def row(agent_id: str, version: int = 1, **fields: Any) -> RegistryEntryRow:
    body = {"name": "Pipe Line", "description": "d", "url": "https://agents.example/", "is_public": True, **fields}
    table = checked_entry(Kind.AGENT, body, {})
    return RegistryEntryRow("agents", agent_id, version, msgspec.json.encode(table), 1.0, float(version))


async def test_public_agents_are_registered_and_failures_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A public agent is created and made public, and a changed one replaced; others are not sent; an error is a problem
    until a later attempt succeeds, and has no word of the server."""
    monkeypatch.setattr("toold.served_registry.litellm_registration.FIRST_DELAY_S", FIRST_DELAY_S / 100)
    monkeypatch.setenv("LITELLM_KEY", "sk-admin")
    agents: dict[str, dict[str, Any]] = {}
    public: list[str] = []
    keys: set[str | None] = set()
    broken = True

    async def listed(request: Request) -> Response:
        keys.add(request.headers.get("authorization"))
        if broken:
            return JSONResponse({"error": "secret-of-the-server"}, 500)
        if request.method == "POST":
            agents["id-1"] = await request.json()
            return JSONResponse({"agent_id": "id-1", **agents["id-1"]})
        return JSONResponse([{"agent_id": each, **body} for each, body in agents.items()])

    async def replaced(request: Request) -> Response:
        agents[request.path_params["id"]] = await request.json()
        return JSONResponse({"agent_id": request.path_params["id"]})

    async def made_public(request: Request) -> Response:
        public.append(request.path_params["id"])
        return JSONResponse({"message": "ok"})

    routes = [
        Route("/v1/agents", listed, methods=["GET", "POST"]),
        Route("/v1/agents/{id}", replaced, methods=["PUT"]),
        Route("/v1/agents/{id}/make_public", made_public, methods=["POST"]),
    ]
    port = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, "--stand-in")
    await port.start()
    table = {"url": f"http://127.0.0.1:{port.port}", "key": {"env": "LITELLM_KEY"}, "allow_private": True}
    registration = LiteLlmRegistration(LiteLlmRegistrySettings.model_validate(table))
    running = asyncio.ensure_future(registration.run())
    try:
        content = RegistryContent([row("a"), row("b", name="Private", is_public=False), row("c", name="No", url="")])
        registration.update(content)
        await until(lambda: registration.problems)
        problem = registration.problems["a"]
        assert "GET /v1/agents with HTTP 500" in problem
        assert "secret" not in problem
        broken = False
        await until(lambda: public == ["id-1"] and not registration.problems)
        card = agents["id-1"]["agent_card_params"]
        assert (agents["id-1"]["agent_name"], card["url"]) == ("pipe-line", "https://agents.example/")
        content.save(row("a", 2, description="changed"))
        registration.update(content)
        await until(lambda: len(public) == 2)
        assert agents["id-1"]["agent_card_params"]["description"] == "changed"
        assert (len(agents), keys) == (1, {"Bearer sk-admin"})
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await port.close()


def test_the_settings_of_litellm_are_checked() -> None:
    """It needs a served registry, and errors name the field."""
    litellm = {"url": "https://litellm.example"}
    with pytest.raises(RegistrySettingsError, match="litellm needs serve = true"):
        read_registry({"url": "https://registry.example", "agents": ["a"], "litellm": litellm})
    with pytest.raises(RegistrySettingsError, match=r"litellm\.ulr is not a setting"):
        read_registry({"serve": True, "litellm": {**litellm, "ulr": "x"}})
    with pytest.raises(RegistrySettingsError, match="needs url, the registry to ask, or serve = true"):
        read_registry({})
