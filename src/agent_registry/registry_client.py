"""Asks a registry for agents, and sends it the URLs of hosted agents."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ..sources import JsonAnswer, JsonServer, UnusableAnswerError
from .registry_settings import RegistrySettings

MAX_RECORD_BYTES: Final = 1024**2
"""The maximum size of one agent: about a hundred times the usual size. All agents together stay below 200 MiB."""

_OK: Final = 200
_NOT_MODIFIED: Final = 304
_NOT_FOUND: Final = 404
_MAX_ETAG_CHARS: Final = 1000
_FIELDS: Final = (
    *("agent_id", "name", "description", "url", "runtime_config"),
    *("is_public", "skills", "rag_configs", "rag_ids"),
)
"""The fields of a record that are used; the others are dropped."""
_ADVICE: Final[Mapping[int, str]] = {
    401: "it refuses the key, or needs one",
    403: "the key may not read agents",
    429: "it limits requests; raise poll_s",
}


class FetchedAgent(NamedTuple):
    """The registry's record of an agent."""

    record: Mapping[str, Any]
    etag: str | None


class UnchangedAgent(NamedTuple):
    """The record still has the ETag that was sent."""


class AbsentAgent(NamedTuple):
    """The registry reports that it has no such agent."""


class FailedFetch(NamedTuple):
    """The registry cannot be asked, or its answer cannot be used."""

    reason: str


FetchOutcome = FetchedAgent | UnchangedAgent | AbsentAgent | FailedFetch


class RegistryClient:
    """One registry. Its methods never raise, and each ends within ``timeout_s``."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._server = JsonServer(
            settings.base,
            table="[registry]",
            key=settings.key,
            timeout_s=settings.timeout_s,
            allow_private=settings.allow_private,
        )

    async def fetch(self, agent_id: str, etag: str | None) -> FetchOutcome:
        """Ask for an agent; ``etag`` is the ETag of its last answer."""
        try:
            return await self._server.ask(lambda: self._fetch(_path(agent_id), etag))
        except UnusableAnswerError as error:
            return FailedFetch(str(error))

    async def set_url(self, agent_id: str, url: str) -> str | None:
        """Send the URL of an agent to the registry; returns why it failed, or None."""
        try:
            answer = await self._server.send("PATCH", f"{_path(agent_id)}/url", content={"url": url})
        except UnusableAnswerError as error:
            return str(error)
        return None if answer.status in range(200, 300) else _unusable(answer).reason

    async def close(self) -> None:
        """Close the connections. Connections of running requests are closed when the requests end."""
        await self._server.close()

    async def _fetch(self, path: str, etag: str | None) -> FetchOutcome:
        conditions = {} if etag is None else {"If-None-Match": etag}
        answer = await self._server.request("GET", path, headers=conditions, max_bytes=MAX_RECORD_BYTES)
        if answer.status == _NOT_MODIFIED and etag is not None:
            return UnchangedAgent()
        if answer.status == _NOT_FOUND:
            # A proxy whose registry is down also answers 404, but without JSON.
            await asyncio.to_thread(_table, answer)
            return AbsentAgent()
        if answer.status != _OK:
            return _unusable(answer)
        table = await asyncio.to_thread(_table, answer)
        record: dict[str, Any] = {field: table[field] for field in _FIELDS if field in table}
        if isinstance(record.get("runtime_config"), dict):
            return FetchedAgent(record, _usable_etag(answer.etag))
        config = await self._server.request("GET", f"{path}/runtime-config", max_bytes=MAX_RECORD_BYTES)
        if config.status == _NOT_FOUND:
            return FailedFetch("it has no runtime_config for this agent, so it only lists an agent that runs elsewhere")
        if config.status != _OK:
            return _unusable(config)
        table = await asyncio.to_thread(_table, config)
        # Without an ETag, because the record's ETag does not change with the configuration.
        return FetchedAgent({**record, "runtime_config": table.get("runtime_config", table)}, None)


def _path(agent_id: str) -> str:
    return f"/agents/{quote(agent_id, safe='')}"


def _table(answer: JsonAnswer) -> dict[str, Any]:
    table = answer.decoded()
    if not isinstance(table, dict):
        raise UnusableAnswerError("its answer is not a JSON object")
    return table


def _usable_etag(etag: str | None) -> str | None:
    """An ETag that can be sent back."""
    return etag if etag and len(etag) <= _MAX_ETAG_CHARS and etag.isascii() and etag.isprintable() else None


def _unusable(answer: JsonAnswer) -> FailedFetch:
    advice = _ADVICE.get(answer.status, "")
    return FailedFetch(f"it answered HTTP {answer.status}" + (f": {advice}" if advice else ""))
