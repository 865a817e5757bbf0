"""An API on loopback that the test scripts, and a call context without a daemon."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from toold.protocol.tool_call import LOCAL, ApiResponse, Principal
from toold.serving import HttpServer
from toold.tools import FileAccess

Answering = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Asked:
    """One received request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Api:
    """Answers with each of ``answers`` in turn, then repeats the last one; records the requests."""

    port: int = 0
    answers: list[Response | Answering] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: Request) -> Response:
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        raw = request.scope["raw_path"].decode() + (f"?{request.url.query}" if request.url.query else "")
        body = await request.body()
        self.asked.append(Asked(request.method, raw or target, dict(request.headers), body))
        if not self.answers:
            return JSONResponse({"ok": True})
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Response) else await answer(request)


@asynccontextmanager
async def serving(api: Api) -> AsyncIterator[Api]:
    methods = ["GET", "PUT", "POST", "DELETE", "PATCH"]
    server = HttpServer(Starlette(routes=[Route("/{path:path}", api.answer, methods=methods)]), "127.0.0.1", 0, "--api")
    await server.start()
    api.port = server.port
    try:
        yield api
    finally:
        await server.close()


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving(Api()) as api:
        yield api


@pytest.fixture
async def other_api() -> AsyncIterator[Api]:
    """A second API, with another origin."""
    async with serving(Api()) as api:
        yield api


class Context:
    """The part of a call context that source tools use."""

    def __init__(self, directory: Path, timeout_s: float = 60.0, principal: Principal = LOCAL) -> None:
        self.principal = principal
        self.files = FileAccess([directory])
        self.reports: list[str] = []
        self.permit_releases = 0
        self.response: ApiResponse | None = None
        self._deadline = asyncio.get_running_loop().time() + timeout_s
        self._latest = self._deadline
        """A test may set it to the time until which progress extends the deadline."""

    def remaining(self) -> float:
        return max(0.0, self._deadline - asyncio.get_running_loop().time())

    def extend_deadline(self, window_s: float) -> None:
        now = asyncio.get_running_loop().time()
        self._deadline = max(self._deadline, min(now + window_s, self._latest))

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self.reports.append(message)

    former_client = False

    def accept_former(self, notice: str, *, each_time: bool = False) -> bool:
        return False

    @property
    def answered_kinds(self) -> tuple[str, ...]:
        return ()

    @property
    def declared_kinds(self) -> tuple[str, ...]:
        return self.answered_kinds

    async def call_hidden(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def ask_client(self, question: Any, *, name: str = "") -> Any:
        raise NotImplementedError

    async def elicit(self, message: str, form: type[Any], *, name: str = "") -> Any:
        raise NotImplementedError

    def report_response(self, response: ApiResponse) -> None:
        self.response = response

    @asynccontextmanager
    async def without_permit(self) -> AsyncIterator[None]:
        self.permit_releases += 1
        yield


@pytest.fixture
async def context(tmp_path: Path) -> Any:
    return Context(tmp_path)


@pytest.fixture
async def context_with(tmp_path: Path) -> Callable[[float], Any]:
    """A function that creates the context of a call with this timeout."""
    return lambda timeout_s: Context(tmp_path, timeout_s)


@pytest.fixture
async def context_of(tmp_path: Path) -> Callable[[str], Any]:
    """A function that creates the context of a call of the principal with this name."""
    return lambda name: Context(tmp_path, principal=Principal(name))
