"""A vendor and an API for the nodes of a fault run. Both record what they are asked, and know nothing of toold."""

import asyncio
import json
import re
import time
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Final, Self

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from toold.serving import HttpServer

COST: Final = 0.02
"""The price of an answer, in dollars: ``ANSWER_TOKENS`` at the price of the settings. Nodes reserve a little more."""
ANSWER_TOKENS: Final = 4_000
PERMITS: Final = 3
"""How many requests the provider ``permits`` allows at once."""
RATE_PER_MINUTE: Final = 60
BURST: Final = 5
NODE_KEY: Final = "STAND_IN_KEY"
"""The variable with the key of a node, by which the vendor knows it: its name."""
RATED: Final = "rated_look"
"""The tool of the API."""

_PROMPT: Final = re.compile(r"\[\[sim:say=(\S+)\]\](?: hold=(\d+))?")
_HOLD_MS: Final = 20


@dataclass(slots=True)
class VendorRequest:
    """One request to the vendor. Times are Unix times in seconds."""

    provider: str
    node: str
    call: str
    """The id of the call that asks."""
    arrived: float
    answered: float = inf
    """When the answer was sent; never, if the connection was closed before."""
    gone: float = inf
    """When the vendor saw that the connection was closed, before the answer."""
    done: float = inf
    """When the answer was ready, or would have been: a vendor may go on for a caller that has gone."""


class StandInVendor:
    """Three providers of OpenAI's API, and an API with one operation."""

    def __init__(self) -> None:
        routes = [
            Route("/{provider}/v1/models", lambda _: JSONResponse({"object": "list", "data": []})),
            Route("/{provider}/v1/{path:path}", self._answer, methods=["POST"]),
            Route("/look", self._look),
        ]
        self._server = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, "--port")
        self.requests: list[VendorRequest] = []
        self.looks: list[float] = []
        """When the API was asked, in Unix time."""

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    def write_settings(self, directory: Path, quotas: str, *, provider_budget: float) -> Path:
        """Writes the settings of the nodes. ``provider_budget``: of the provider ``budget``, in dollars a day. Returns
        the file.
        """
        url = f"http://127.0.0.1:{self._server.port}"
        operation = {
            "operationId": "look",
            "summary": "Look.",
            "parameters": [{"name": "text", "in": "query", "schema": {"type": "string"}}],
            "responses": {"200": {"description": "The text."}},
        }
        document = {
            "openapi": "3.1.0",
            "info": {"title": "Stand-in", "version": "1"},
            "paths": {"/look": {"get": operation}},
        }
        (directory / "api.json").write_text(json.dumps(document))
        providers = "".join(
            f"""
            [providers.{name}]
            base_url = "{url}/{name}/v1"
            api_key = {{ env = "{NODE_KEY}" }}
            sdk = "http"
            max_in_flight = {permits}
            {"daily_budget = '" + f"{provider_budget} USD'" if name == "budget" else ""}
            [models."{name}/large"]
            context_window = 200_000
            price = {{ currency = "USD", input = 1, output = {COST * 1e6 / ANSWER_TOKENS} }}
            """
            for name, permits in (("permits", PERMITS), ("budget", 50), ("free", 50))
        )
        path = directory / "limits.toml"
        path.write_text(f"""
            default_model = "free/large"
            {quotas}
            {providers}
            [sources.rated]
            type = "openapi"
            spec = "api.json"
            base_url = "{url}"
            allow_private = true
            retries = 0
            rate = {{ per_minute = {RATE_PER_MINUTE}, burst = {BURST} }}
        """)
        return path

    async def _answer(self, request: Request) -> Response:
        arrived = time.time()
        try:
            found = _PROMPT.search(json.dumps(await request.json()))
        except ClientDisconnect:  # its node was killed while it sent the request
            return Response()
        said, hold_ms = found.groups() if found else ("", None)
        node = request.headers["authorization"].removeprefix("Bearer ")
        seen = VendorRequest(request.path_params["provider"], node, said, arrived)
        self.requests.append(seen)
        closed = asyncio.ensure_future(_closed(request))
        hold_s = int(hold_ms or _HOLD_MS) / 1000
        await asyncio.wait({closed}, timeout=hold_s)
        seen.done = arrived + hold_s
        if closed.done():
            seen.gone = time.time()
        else:
            seen.answered = time.time()
        closed.cancel()
        usage = {"prompt_tokens": 1, "completion_tokens": ANSWER_TOKENS, "total_tokens": ANSWER_TOKENS + 1}
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": f"Simulated: {said}"},
            "finish_reason": "stop",
        }
        content: dict[str, Any] = {"id": "1", "object": "chat.completion", "model": "large"}
        return JSONResponse(content | {"choices": [choice], "usage": usage})

    async def _look(self, request: Request) -> Response:
        self.looks.append(time.time())
        return JSONResponse({"text": request.query_params["text"]})


async def _closed(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
