"""Cached results of read-only tools of sources: they answer equal calls of the same principal for ``cache_s`` seconds.

Only for the event loop's thread.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ...protocol.arguments_digest import arguments_digest
from ...protocol.error_codes import ServiceUnavailableError
from ...protocol.json_pieces import LONG_BYTES
from ...protocol.mcp.mcp_result import METADATA_KEY, RETAINED_KEY
from ...protocol.request_meta import may_change_answer
from ...protocol.tool_call import ToolResult, decode_result, encode_result
from ...tools import CredentialLookup, Tool, ToolRegistry
from ..off_loop import off_loop
from . import call_outcome
from .call_phase import JournalRecord
from .client_questions import root_of
from .running_call import RunningCall

MAX_CACHE_BYTES: Final = 64 * 1024**2
"""The limit for all cached results. Beyond it, the principal with the most bytes loses its least recently used
results."""
MAX_CACHED_BYTES: Final = 1024**2
"""Larger results are not cached."""
MIN_COUNTED_BYTES: Final = 16 * 1024
"""A smaller result counts as this many bytes, so that the number of results is bounded, too."""
_SWEEP_S: Final = 10.0


class _CachedResult(NamedTuple):
    tool: Tool
    """The tool that returned the result. If the source lists its tools again, the new ``Tool`` objects do not get it.
    """
    result: bytes
    cached_at: float

    @property
    def size(self) -> int:
        return max(len(self.result), MIN_COUNTED_BYTES)

    def expired(self, now: float) -> bool:
        return now >= self.cached_at + self.tool.cache_s


class _Share:
    """The results of one principal, the least recently used first."""

    __slots__ = ("results", "size")

    def __init__(self) -> None:
        self.results: OrderedDict[bytes, _CachedResult] = OrderedDict()
        self.size = 0


class CallCache:
    """The results in memory, by principal. ``credentials`` returns the credentials that calls of some sources use."""

    def __init__(self, credentials: CredentialLookup, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._credentials = credentials
        self._clock = clock
        self._shares: dict[str, _Share] = {}
        self._cleared_at = float("-inf")

    def __repr__(self) -> str:
        return f"<CallCache of {len(self)} results>"

    def __len__(self) -> int:
        return sum(len(share.results) for share in self._shares.values())

    @property
    def held_bytes(self) -> int:
        """The size of all results, as the limit counts it."""
        return sum(share.size for share in self._shares.values())

    async def find(self, call: RunningCall) -> ToolResult | None:
        """Returns the cached result for a call that is about to start. If it is None, pass the call's result to
        ``add``.

        The credential is read here, before the tool reads it, so a result is never cached for a credential that was
        stored later.
        """
        # The journal already has the start of a detached call, and of a child of an earlier run.
        if call.detached or call.argument_notices or call.journal_record is not JournalRecord.NONE:
            return None
        key = call.cache_key = await self._key(call)
        share = self._shares.get(call.session.principal.name)
        cached = share.results.get(key) if share is not None and key is not None else None
        if (
            share is None
            or key is None
            or cached is None
            or cached.tool is not call.tool
            or cached.expired(self._clock())
        ):
            return None
        share.results.move_to_end(key)
        long = len(cached.result) > LONG_BYTES
        result = await off_loop(decode_result, cached.result) if long else decode_result(cached.result)
        now = self._clock()
        metadata = replace(
            call_outcome.metadata_of(call, now),
            response=result.metadata.response,
            cache_age_s=round(now - cached.cached_at, 3),
        )
        return replace(result, metadata=metadata)

    async def add(self, call: RunningCall, result: ToolResult) -> ToolResult:
        """Caches the result of a call for which ``find`` returned None, unless the result is valid only for this call.
        Returns the result.
        """
        if call.cache_key is not None and call.end_reason is None and _reusable(call, result):
            await self._keep(call, call.cache_key, result)
        return result

    async def _keep(self, call: RunningCall, key: bytes, result: ToolResult) -> None:
        try:
            stored = await off_loop(encode_result, result) if call.long_result else encode_result(result)
        except (TypeError, ValueError, RecursionError):  # not JSON: the answer will be an error
            return
        if len(stored) > MAX_CACHED_BYTES or call.started < self._cleared_at:
            return
        principal = call.session.principal.name
        self._remove(principal, key)
        share = self._shares.setdefault(principal, _Share())
        entry = share.results[key] = _CachedResult(call.tool, stored, self._clock())
        share.size += entry.size
        while self.held_bytes > MAX_CACHE_BYTES:
            fullest = max(self._shares, key=lambda name: self._shares[name].size)
            self._remove(fullest, next(iter(self._shares[fullest].results)))

    def clear(self) -> None:
        """Delete all results. Results of calls that have already started will not be cached."""
        self._shares.clear()
        self._cleared_at = self._clock()

    def keep_only(self, registry: ToolRegistry) -> None:
        """Delete the results of tools that this registry does not have: they were removed or listed again."""
        self._delete(lambda cached: not registry.has(cached.tool))

    def delete_expired(self) -> None:
        """Delete the results that are too old."""
        now = self._clock()
        self._delete(lambda cached: cached.expired(now))

    async def sweep(self) -> None:
        """Delete expired results regularly, until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.delete_expired()

    async def _key(self, call: RunningCall) -> bytes | None:
        """The key of a call's result; None if the call must run. Calls with the same key share a result.

        The credentials of the caller are part of the key, so a new credential does not get results of the old one.
        """
        if may_change_answer(call.request.meta):
            return None
        principal, values = call.session.principal.name, []
        for wanted in call.tool.credentials:
            try:
                value = await self._credentials.value(principal, wanted)
            except ServiceUnavailableError:
                return None
            if value is None:
                return None
            values.append(value)
        if call.changed_by is not None:
            arguments = arguments_digest(call.current_arguments or {})
        else:
            arguments = call.request.arguments_hash or arguments_digest(call.request.arguments)
        # A server learns which questions the client can answer (decision 125), and its result may depend on this.
        answers = sorted(root_of(call).request.answers)
        parts = [call.tool.source, call.tool.name, arguments.hex(), answers, *values]
        return hashlib.blake2b(msgspec.json.encode(parts), digest_size=32).digest()

    def _delete(self, condition: Callable[[_CachedResult], bool]) -> None:
        for principal, share in tuple(self._shares.items()):
            for key in [key for key, cached in share.results.items() if condition(cached)]:
                self._remove(principal, key)

    def _remove(self, principal: str, key: bytes) -> None:
        share = self._shares.get(principal)
        if share is None or key not in share.results:
            return
        share.size -= share.results.pop(key).size
        if not share.results:
            del self._shares[principal]


def _reusable(call: RunningCall, result: ToolResult) -> bool:
    """Whether a result can answer other calls: it has no error, is complete, does not depend on an answer of the
    client, and has no handle of a file that expires, here or in another toold.
    """
    metadata = result.metadata
    if call.asked_client or metadata.parts is not None or metadata.shaping is not None:
        return False
    meta = result.meta if isinstance(result.meta, dict) else {}
    upstream = meta.get(METADATA_KEY)
    return RETAINED_KEY not in meta and not (isinstance(upstream, dict) and upstream.get("spilled"))
