"""A server on loopback that answers with recorded bytes, and the recorded contracts of ``tests/contracts``."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from pydantic import SecretStr
from toold.providers import (
    DIALECTS,
    CompletionRequest,
    Delta,
    FunctionTool,
    JsonFormat,
    Message,
    OpenProvider,
    ProviderTerms,
    VendorAccess,
    VendorInfo,
    VendorProvider,
    build_compatible,
)

CONTRACTS = {path.stem: json.loads(path.read_text()) for path in sorted(Path(__file__).parents[1].glob("contracts/*"))}
PROMPT = "Hello."
WEATHER = FunctionTool(
    "weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
SDKS = ("openai", "http")


@dataclass
class RecordedVendor:
    """Answers each request with ``pieces``, of which the first is the head, each in a packet."""

    pieces: Sequence[bytes] = ()
    following: list[Sequence[bytes]] = field(default_factory=list)
    """Answers of the first requests, before ``pieces``."""
    requests: list[tuple[dict[str, str], Any]] = field(default_factory=list)
    """Headers and body of each request."""
    paths: list[str] = field(default_factory=list)
    """The path of each request."""
    _server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def record(self, case: dict[str, Any]) -> None:
        """Answer with a recorded case."""
        self.pieces = recorded_response(case)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.paths.append(head.split(" ", 2)[1])
            self.requests.append((headers, json.loads(body) if body else None))
            for piece in self.following.pop(0) if self.following else self.pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()


def response_head(status: int, media_type: str, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase if status != 529 else 'Overloaded'}"]
    fields = {"content-type": media_type, "connection": "close", **headers}
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in fields.items()), "", ""]).encode()


def recorded_response(case: dict[str, Any]) -> list[bytes]:
    """The bytes of a recorded answer."""
    if "events" in case:
        head = response_head(200, "text/event-stream", case.get("headers", {}))
        return [head, *map(_event, case["events"])]
    body = json.dumps(case["body"], ensure_ascii=False).encode()
    return [response_head(case.get("status", 200), "application/json", case.get("headers", {})), body]


def _event(event: Any) -> bytes:
    """A text other than the marker of the end is a line between events, such as a comment."""
    if isinstance(event, str) and event != "[DONE]":
        return f"{event}\n\n".encode()
    return f"data: {event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}\n\n".encode()


def open_recorded(preset: str, sdk: str, base_url: str, key: str = "sk-recorded-0123456789") -> VendorProvider:
    """The provider of a preset at this address."""
    info = VendorInfo(
        name=preset,
        label=preset,
        key_setting=f"api_key in [providers.{preset}]",
        lists_all=False,
        base_url=base_url,
        attempt_timeout_s=60.0,
        concurrency=4,
    )
    access = VendorAccess(api_key=SecretStr(key), base_url=base_url, limit=4, simulated=True)
    return build_compatible(info, access, sdk, dialect=DIALECTS[preset])


def recorded_request(preset: str, model: str, wanted: dict[str, Any]) -> CompletionRequest:
    """The request of a recorded case."""
    schema = wanted.get("schema")
    return CompletionRequest(
        OpenProvider(preset, ProviderTerms(dialect=DIALECTS[preset])).model(model),
        (Message("user", wanted.get("prompt", PROMPT)),),
        thinking=wanted.get("thinking"),
        max_tokens=wanted.get("max_tokens"),
        response_format=None if schema is None else JsonFormat(schema),
        tools=(WEATHER,) if wanted.get("tools") else (),
    )


@dataclass
class Answered:
    """How a call ended, and what was streamed."""

    completion: Any
    deltas: list[Delta]


async def ask_recorded(provider: VendorProvider, request: CompletionRequest, *, stream: bool) -> Answered:
    """Makes one call, streamed or not."""
    deltas: list[Delta] = []
    completion = await provider.complete(request, timeout_s=30, on_delta=deltas.append if stream else None)
    return Answered(completion, deltas)
