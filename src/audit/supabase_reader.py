"""Reads the audit from Supabase, in pages, over the HTTP interface of PostgREST."""

import decimal
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Final, Self

import httpx
import msgspec
from pydantic import SecretStr

from . import delivery_failure
from .delivery_failure import DeliveryFailure
from .supabase_rows import Record

PAGE: Final = 1000
"""The number of rows per request: Supabase's default maximum."""
TIMEOUT_S: Final = 30.0

_REQUIRED_COLUMNS: Final = {
    "toold_calls": "chain,seq,mac,parent_id",
    "toold_provider_calls": "chain,seq",
    "toold_sessions": "id",
    "toold_checkpoints": "id",
    "toold_conversations": "id,ended_at",
    "toold_messages": "id",
}
"""Tables and columns that exist after all migrations."""


class SupabaseReadError(Exception):
    """A read from Supabase failed; ``failure`` says why."""

    def __init__(self, failure: DeliveryFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class SupabaseReader:
    """Reads a Supabase project. Use it as ``async with SupabaseReader(url, key) as reader``.

    Every method raises SupabaseReadError if Supabase does not respond, or its response is invalid.
    """

    def __init__(self, url: str, key: SecretStr, *, timeout_s: float = TIMEOUT_S) -> None:
        secret = key.get_secret_value()
        self._http = httpx.AsyncClient(
            base_url=f"{url.rstrip('/')}/rest/v1/",
            headers={"apikey": secret, "Authorization": f"Bearer {secret}"},
            timeout=timeout_s,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def check_tables(self) -> None:
        """Checks that each table to which a daemon writes has its columns. Reads no rows."""
        for table, columns in _REQUIRED_COLUMNS.items():
            await self._get(table, {"select": columns, "limit": "0"})

    async def calls(self, chain: str, *, up_to: int) -> AsyncIterator[tuple[Record, Record | None]]:
        """Yields the calls of a chain by seq, each with its row of ``toold_provider_calls``, if it has one."""
        async for page in self._pages("toold_calls", chain, first=0, last=up_to):
            seqs = {"first": page[0]["seq"], "last": page[-1]["seq"]}
            pages = self._pages("toold_provider_calls", chain, **seqs)
            by_id = {row["id"]: row async for provider_calls in pages for row in provider_calls}
            for row in page:
                yield row, by_id.get(row["id"])

    async def last_seq(self, chain: str) -> int:
        """Returns the seq of the chain's last call; 0 if it has no calls."""
        query = {"select": "seq", "chain": f"eq.{chain}", "order": "seq.desc", "limit": "1"}
        rows = await self._get("toold_calls", query)
        return int(rows[0]["seq"]) if rows else 0

    async def checkpoints(self, chain: str) -> list[Record]:
        """Returns the chain's rows of ``toold_checkpoints``."""
        records: list[Record] = []
        while True:
            query = {"select": "*", "chain": f"eq.{chain}", "order": "number", "limit": str(PAGE)}
            page = await self._get("toold_checkpoints", query | {"offset": str(len(records))})
            if not page:
                return records
            records += page

    async def _pages(self, table: str, chain: str, *, first: int, last: int) -> AsyncIterator[list[Record]]:
        """Yields the rows of a chain by seq, each once, even if several have the same seq."""
        seen: set[str] = set()
        while True:
            query = {
                "select": "*",
                "and": f"(seq.gte.{first},seq.lte.{last})",
                "chain": f"eq.{chain}",
                "order": "seq,id",
                "limit": str(PAGE + len(seen)),
            }
            page = [row for row in await self._get(table, query) if row["id"] not in seen]
            if not page:
                return
            yield page
            seen = {row["id"] for row in page if row["seq"] == page[-1]["seq"]} | (
                seen if page[-1]["seq"] == first else set()
            )
            first = page[-1]["seq"]

    async def _get(self, table: str, query: dict[str, str]) -> list[Record]:
        try:
            answer = await self._http.get(table, params=query)
        except httpx.HTTPError as error:
            raise SupabaseReadError(delivery_failure.unreachable(error)) from error
        if not answer.is_success:
            raise SupabaseReadError(delivery_failure.classify_response(answer.status_code, answer.content))
        try:
            return _rows(answer.content)
        except (msgspec.MsgspecError, ValueError):
            raise SupabaseReadError(
                DeliveryFailure("setup", "the response is not a list of rows", "check TOOLD_SUPABASE_URL")
            ) from None


_rows = msgspec.json.Decoder(list[dict[str, Any]], float_hook=decimal.Decimal).decode
"""Decodes JSON; numbers keep the notation of the response."""
