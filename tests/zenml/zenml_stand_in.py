"""A stand-in for a ZenML server on loopback. Its routes and fields are those of ZenML's REST API (src/zenml/zen_server
of zenml-io/zenml); it runs nothing: a test moves the status of its runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from toold.serving import HttpServer

SNAPSHOT = "11111111-1111-4111-8111-111111111111"
KEY = "ZENKEY_a-key-for-tests"


@dataclass
class ZenmlStandIn:
    """What it has, and what it was asked."""

    url: str = ""
    runs: list[dict[str, Any]] = field(default_factory=list)
    configurations: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[str] = field(default_factory=lambda: ["completed"])
    """The statuses of a run at each look; the last one stays."""
    logins: int = 0
    token: str = ""
    failures: list[int] = field(default_factory=list)
    """Statuses of the next answers to looks at a run."""
    drops_next_start: bool = False
    """Whether the next run starts, but the answer is an error."""

    def toml(self, **settings: Any) -> str:
        """A table of the settings."""
        values = "".join(f"{name} = {value}\n" for name, value in settings.items())
        return f'[zenml]\nurl = "{self.url}"\nallow_private = true\npoll_s = 0.05\n{values}'

    async def login(self, request: Request) -> Response:
        form = (await request.body()).decode()
        if form != f"grant_type=zenml-api-key&password={KEY}":
            return JSONResponse({"detail": "no"}, 401)
        self.logins += 1
        self.token = f"token-{self.logins}"
        return JSONResponse({"access_token": self.token, "token_type": "bearer", "expires_in": 3600})

    def answer(self, request: Request, value: Any) -> Response:
        """The value, if the token is valid."""
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return JSONResponse({"detail": "no"}, 401)
        return JSONResponse(value)

    async def find_runs(self, request: Request) -> Response:
        name = request.query_params["name"].removeprefix("equals:")
        return self.answer(request, page([run for run in self.runs if run["name"] == name]))

    async def find_snapshots(self, request: Request) -> Response:
        known = request.query_params["name"] == "equals:training"
        return self.answer(request, page([{"id": SNAPSHOT, "name": "training"}] if known else []))

    async def start(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return JSONResponse({}, 401)
        if request.path_params["id"] != SNAPSHOT:
            return JSONResponse({"detail": ["KeyError"]}, 404)
        configuration = (await request.json())["run_configuration"]
        self.configurations.append(configuration)
        run_id = f"22222222-2222-4222-8222-{len(self.runs):012}"
        run = {"id": run_id, "name": configuration["run_name"], "body": {"status": "initializing", "created": "now"}}
        self.runs.append(run)
        if self.drops_next_start:
            self.drops_next_start = False
            return JSONResponse({}, 502)
        return JSONResponse(run)

    async def look(self, request: Request) -> Response:
        if self.failures:
            return JSONResponse({}, self.failures.pop(0))
        run = next((run for run in self.runs if run["id"] == request.path_params["id"]), None)
        if run is None:
            return JSONResponse({"detail": ["KeyError"]}, 404)
        if run["body"]["status"] != "stopping":
            run["body"]["status"] = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return self.answer(request, run)

    async def stop(self, request: Request) -> Response:
        next(run for run in self.runs if run["id"] == request.path_params["id"])["body"]["status"] = "stopping"
        return self.answer(request, None)

    async def artifacts(self, request: Request) -> Response:
        version = {
            "id": "33333333-3333-4333-8333-333333333333",
            "body": {
                "artifact": {"name": "model"},
                "version": "7",
                "type": "ModelArtifact",
                "uri": "s3://bucket/model/7",
                "data_type": {"module": "torch.nn", "attribute": "Module"},
                "producer_pipeline_run_id": "22222222-2222-4222-8222-000000000000",
            },
            "metadata": {"run_metadata": {"accuracy": 0.9}},
        }
        known = request.query_params.get("artifact") in {None, "equals:model"}
        return self.answer(request, page([version] if known else []))


def page(items: list[dict[str, Any]]) -> dict[str, Any]:
    """A list as ZenML answers it."""
    return {"index": 1, "max_size": 20, "total_pages": 1, "total": len(items), "items": items}


@asynccontextmanager
async def zenml_stand_in() -> AsyncIterator[ZenmlStandIn]:
    """The stand-in, on a free port."""
    stand_in = ZenmlStandIn()
    api = "/api/v1"
    app = Starlette(
        routes=[
            Route(f"{api}/login", stand_in.login, methods=["POST"]),
            Route(f"{api}/runs", stand_in.find_runs),
            Route(f"{api}/pipeline_snapshots", stand_in.find_snapshots),
            Route(f"{api}/pipeline_snapshots/{{id}}/runs", stand_in.start, methods=["POST"]),
            Route(f"{api}/runs/{{id}}", stand_in.look),
            Route(f"{api}/runs/{{id}}/stop", stand_in.stop, methods=["POST"]),
            Route(f"{api}/artifact_versions", stand_in.artifacts),
        ]
    )
    server = HttpServer(app, "127.0.0.1", 0, "--port")
    await server.start()
    stand_in.url = f"http://127.0.0.1:{server.port}"
    try:
        yield stand_in
    finally:
        await server.close()
