"""Supabase's tables, through the asynchronous client of the ``supabase`` package."""

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
"""For each step of a request; a Supabase that is slow is not yet one that is down."""


class SupabaseWriteError(Exception):
    """Supabase did not take calls; ``failure`` says what that means. Some of their rows may be there."""

    def __init__(self, failure: DeliveryFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class AuditRemote(Protocol):
    """Where the audit's calls go."""

    async def write(self, rows: Sequence[ChainedRow]) -> None:
        """Have all rows of these calls there; what is there already stays once.

        Raises:
            NotWrittenError: not all of them are.
        """
        ...

    async def write_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Have these there as they are now.

        Raises:
            NotWrittenError: not all of them are.
        """
        ...

    async def write_copies(self, copies: Sequence[ConversationCopy]) -> None:
        """Have these messages, and what is known of their conversations, there; what is there already stays once.

        Raises:
            NotWrittenError: not all of them are.
        """
        ...

    async def close(self) -> None:
        """Let go of the connections."""
        ...


class SupabaseWriter:
    """A Supabase project, for one chain. Construct it in a thread: it imports ``supabase``, which takes half a second.

    Raises:
        ImportError: the package is not installed.
    """

    def __init__(self, url: str, key: SecretStr, chain: str) -> None:
        self._chain = chain
        supabase: Any = import_module("supabase")
        # A client of our own, for the answers' status, which the package's errors do not tell.
        self._http = httpx.AsyncClient(timeout=TIMEOUT_S, event_hooks={"response": [_check]})
        options = supabase.AsyncClientOptions(
            auto_refresh_token=False, persist_session=False, httpx_client=self._http, postgrest_client_retry=False
        )
        self._client: Any = supabase.AsyncClient(url, key.get_secret_value(), options)

    async def write(self, rows: Sequence[ChainedRow]) -> None:
        for table, some in records(rows, self._chain).items():
            if some:
                await self._upsert(table, some)

    async def write_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> None:
        await self._upsert("toold_checkpoints", [checkpoint_record(one, self._chain) for one in checkpoints])

    async def write_copies(self, copies: Sequence[ConversationCopy]) -> None:
        for table, some in (await asyncio.to_thread(copy_records, copies)).items():
            if some:
                await self._upsert(table, some)

    async def _upsert(self, table: str, some: list[dict[str, Any]]) -> None:
        request = self._client.table(table).upsert(some, on_conflict="id", returning="minimal")
        try:
            await request.execute()
        except httpx.TransportError as error:
            raise SupabaseWriteError(delivery_failure.unreachable(error)) from error

    async def close(self) -> None:
        await self._http.aclose()


async def _check(response: httpx.Response) -> None:
    if not response.is_success:
        raise SupabaseWriteError(delivery_failure.judge(response.status_code, await response.aread()))
