"""Writes to Supabase with ``postgrest``, the part of Supabase's client that writes to tables."""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Protocol

import httpx
from pydantic import SecretStr

from ..store import ChainedRow, Checkpoint, ConversationCopy
from . import delivery_failure
from .delivery_failure import DeliveryFailure
from .supabase_rows import checkpoint_record, copy_records, records

TIMEOUT_S: Final = 30.0
"""The timeout of each step of a request. It is long because Supabase may be slow without being down."""


class SupabaseWriteError(Exception):
    """A write to Supabase failed; ``failure`` says why. Some of the rows may have been written."""

    def __init__(self, failure: DeliveryFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class AuditRemote(Protocol):
    """The destination of the audit. Writes raise SupabaseWriteError unless all rows were written."""

    async def write(self, rows: Sequence[ChainedRow]) -> None:
        """Writes all rows of these calls; existing rows are not duplicated."""
        ...

    async def write_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Writes the current version of these checkpoints."""
        ...

    async def write_copies(self, copies: Sequence[ConversationCopy]) -> None:
        """Writes these messages and their conversations; existing rows are not duplicated."""
        ...

    async def close(self) -> None:
        """Closes the connections."""
        ...


class SupabaseWriter:
    """Writes to a Supabase project, for one chain. Construct it in a thread: importing ``postgrest`` takes a moment.

    Raises:
        ImportError: the package is not installed.
    """

    def __init__(self, url: str, key: SecretStr, chain: str) -> None:
        self._chain = chain
        postgrest: Any = import_module("postgrest")
        # A separate HTTP client, whose hook reads the response's status: the package's errors omit it.
        self._http = httpx.AsyncClient(timeout=TIMEOUT_S, event_hooks={"response": [_check]})
        secret = key.get_secret_value()
        self._client: Any = postgrest.AsyncPostgrestClient(
            f"{url.rstrip('/')}/rest/v1",
            headers={"apiKey": secret, "Authorization": f"Bearer {secret}"},
            http_client=self._http,
            retry_enabled=False,  # the sender retries
        )

    async def write(self, rows: Sequence[ChainedRow]) -> None:
        for table, table_rows in records(rows, self._chain).items():
            if table_rows:
                await self._upsert(table, table_rows)

    async def write_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> None:
        await self._upsert(
            "toold_checkpoints", [checkpoint_record(checkpoint, self._chain) for checkpoint in checkpoints]
        )

    async def write_copies(self, copies: Sequence[ConversationCopy]) -> None:
        for table, table_rows in (await asyncio.to_thread(copy_records, copies)).items():
            if table_rows:
                await self._upsert(table, table_rows)

    async def _upsert(self, table: str, rows: list[dict[str, Any]]) -> None:
        request = self._client.table(table).upsert(rows, on_conflict="id", returning="minimal")
        try:
            await request.execute()
        except httpx.TransportError as error:
            raise SupabaseWriteError(delivery_failure.unreachable(error)) from error

    async def close(self) -> None:
        await self._http.aclose()


async def _check(response: httpx.Response) -> None:
    if not response.is_success:
        raise SupabaseWriteError(delivery_failure.classify_response(response.status_code, await response.aread()))
