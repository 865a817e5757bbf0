"""The client of a ZenML server's REST API. It logs in with an API key, and again when the token has expired."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from ..protocol.error_codes import (
    CallError,
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
)
from ..sources import JsonAnswer, JsonServer, UnusableAnswerError
from ..tools import SecretUnavailableError
from .zenml_settings import ZenmlSettings

_API: Final = "/api/v1"
_TOKEN_MARGIN_S: Final = 30.0
"""A token is renewed this long before it expires."""
_SHORTEST_TOKEN_S: Final = 60.0
"""The assumed validity of a token if the server does not state it."""


class ZenmlClient:
    """One server. All methods but ``close`` raise a ``CallError`` if the server refuses, fails or cannot be reached."""

    def __init__(self, settings: ZenmlSettings) -> None:
        self._settings = settings
        self._server = JsonServer(
            settings.base,
            table="[zenml]",
            key=None,
            timeout_s=settings.timeout_s,
            allow_private=settings.allow_private,
        )
        self._token = ""
        self._token_ends = 0.0
        self._logging_in = asyncio.Lock()

    async def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """The newest object of a kind (``runs``, ``pipeline_snapshots``) with this name."""
        query = {"name": f"equals:{name}", "sort_by": "desc:created", "size": "1", "hydrate": "false"}
        page = await self._ask("GET", f"/{kind}?{self._query(query)}")
        items = page.get("items")
        return items[0] if isinstance(items, list) and items and isinstance(items[0], dict) else None

    async def newest(self, kind: str, filters: Mapping[str, str], size: int) -> tuple[list[dict[str, Any]], int]:
        """The newest objects of a kind, and their total number."""
        query = {**filters, "sort_by": "desc:created", "size": str(size), "hydrate": "true"}
        page = await self._ask("GET", f"/{kind}?{self._query(query)}")
        items = page.get("items")
        objects = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        total = page.get("total")
        return objects, total if isinstance(total, int) else len(objects)

    async def get(self, kind: str, object_id: str, *, hydrate: bool) -> dict[str, Any]:
        """The object of a kind with this id."""
        return await self._ask("GET", f"/{kind}/{quote(object_id, safe='')}?hydrate={str(hydrate).lower()}")

    async def run_snapshot(self, snapshot_id: str, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """Starts a pipeline from a snapshot. Returns the run."""
        path = f"/pipeline_snapshots/{quote(snapshot_id, safe='')}/runs"
        return await self._ask("POST", path, {"run_configuration": dict(configuration)})

    async def stop(self, run_id: str, *, graceful: bool) -> None:
        """Stops a run."""
        await self._ask("POST", f"/runs/{quote(run_id, safe='')}/stop?graceful={str(graceful).lower()}")

    async def close(self) -> None:
        """Closes the connections."""
        await self._server.close()

    def _query(self, values: Mapping[str, str]) -> str:
        project = {} if self._settings.project is None else {"project_name_or_id": self._settings.project}
        return urlencode({**values, **project})

    async def _ask(self, method: str, path: str, content: Any = None) -> dict[str, Any]:
        for may_log_in_again in (True, False):
            token = await self._valid_token()
            answer = await self._send(method, f"{_API}{path}", token=token, content=content)
            if answer.status != 401 or not may_log_in_again:
                break
            self._token_ends = 0.0
        if answer.status not in range(200, 300):
            raise _refusal(answer)
        decoded = await _decoded(answer)
        return decoded if isinstance(decoded, dict) else {}

    async def _valid_token(self) -> str:
        async with self._logging_in:
            if time.monotonic() >= self._token_ends:
                await self._log_in()
            return self._token

    async def _log_in(self) -> None:
        try:
            key = await asyncio.to_thread(self._settings.key.secret.read_header_value)
        except SecretUnavailableError as error:
            raise ServiceUnavailableError(f"The key of [zenml] cannot be read: {error}.", transient=False) from None
        form = {"grant_type": "zenml-api-key", "password": key}
        answer = await self._send("POST", f"{_API}/login", form=form)
        if answer.status not in range(200, 300):
            raise PermissionDeniedError(
                f"ZenML refuses the API key of [zenml] (HTTP {answer.status}); the operator replaces it."
            )
        decoded = await _decoded(answer)
        fields = decoded if isinstance(decoded, dict) else {}
        token, expires_in = fields.get("access_token"), fields.get("expires_in")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
            raise ServiceUnavailableError("ZenML's answer to the login has no token.", transient=False)
        valid_s = float(expires_in) if isinstance(expires_in, int) else _SHORTEST_TOKEN_S
        self._token, self._token_ends = token, time.monotonic() + max(0.0, valid_s - _TOKEN_MARGIN_S)

    async def _send(self, method: str, path: str, **request: Any) -> JsonAnswer:
        try:
            return await self._server.send(method, path, **request)
        except UnusableAnswerError as error:
            raise ServiceUnavailableError(
                f"ZenML: {error}.", executed="no" if method == "GET" else "maybe", transient=True
            ) from None


async def _decoded(answer: JsonAnswer) -> Any:
    if not answer.body:
        return None
    try:
        return await asyncio.to_thread(answer.decoded)
    except UnusableAnswerError as error:
        raise ServiceUnavailableError(f"ZenML: {error}.", executed="maybe", transient=False) from None


def _refusal(answer: JsonAnswer) -> CallError:
    """The error for a status. The server's text is left out, since it may quote the request."""
    status = answer.status
    if status == 404:
        return NotFoundError("ZenML has no such object, or the API key may not see it.")
    if status in {401, 403}:
        return PermissionDeniedError(f"The API key of [zenml] may not do this (HTTP {status}).")
    if status in {400, 409, 422}:
        return InvalidArgumentsError(f"ZenML refuses the request (HTTP {status}): check snapshot and configuration.")
    transient = status == 429 or status >= 500
    return ServiceUnavailableError(
        f"ZenML answers with HTTP {status}.", executed="no" if status == 429 else "maybe", transient=transient
    )
