"""Finds the results of ended calls that are still stored: in memory, in the journal, or in a file."""

import json
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from ...protocol.error_codes import CallError
from ...protocol.frame_decoding import request_key
from ...protocol.tool_call import Principal, ToolResult
from ...store import CallRow, Store, StoredCall, StoreError
from ...tools import RetainedResults
from ..config.settings import Settings
from ..dispatch import Router, journalled_child, load_result
from ..transports.dashboard import KeptResult, Viewer
from .action_audit import TRANSPORT as ACTIONS

MAX_SHOWN_BYTES: Final = 1024 * 1024
"""The size limit of shown results: rendering a larger one would delay the daemon's calls."""


class CallResults:
    """Finds the result of an ended call."""

    def __init__(
        self, router: Router, store: Store, results: RetainedResults, settings: Callable[[], Settings]
    ) -> None:
        self._router = router
        self._store = store
        self._results = results
        self._settings = settings

    async def find(self, viewer: Viewer, row: CallRow) -> KeptResult:
        """The result of a call that the viewer sees, or why it is not shown."""
        settings = self._settings()
        if row.principal != viewer.name and settings.audit_content != "full":
            return KeptResult(
                missing=f"The call belongs to {row.principal}. Its result is shown to others only with "
                f'audit_content = "full"; it is "{settings.audit_content}".'
            )
        if row.session_id == ACTIONS:
            return KeptResult(missing="An action of the dashboard has no result.")
        if row.result_bytes > MAX_SHOWN_BYTES:
            return KeptResult(
                missing=f"This result has {row.result_bytes:,} bytes, which are too many to be shown here."
            )
        try:
            result = self._in_memory(row)
            stored = await self._stored(row) if result is None else None
            if stored is not None:
                result = await load_result(stored)
        except StoreError as error:
            return KeptResult(missing=f"This result cannot be read at present ({error.reason}); try again later.")
        if result is not None and _is_of(row, result):
            return KeptResult(await self._with_file(row, result))
        hours = settings.result_ttl_s / 3600
        return KeptResult(
            missing="This result is not kept. The daemon keeps a result only while its client may ask for it again: "
            f"until the client has confirmed it, for at most {hours:g} h (result_ttl_s), and as long as newer results "
            "of its principal leave space for it."
        )

    def audit_content(self) -> str:
        return self._settings().audit_content

    def _in_memory(self, row: CallRow) -> ToolResult | None:
        session = next((session for session in self._router.sessions if session.id == row.session_id), None)
        return None if session is None else self._router.result_of(session, json.loads(row.request_id))

    async def _stored(self, row: CallRow) -> StoredCall | None:
        child = journalled_child(row.id)
        if child is not None:
            return await self._store.journal.child_call(*child, row.principal)
        return await self._store.sessions.ended_call(row.session_id, request_key(json.loads(row.request_id)))

    async def _with_file(self, row: CallRow, result: ToolResult) -> ToolResult:
        """The result, with the content of its file if it was spilled and is short enough."""
        retained = result.structured
        if not result.metadata.spilled or not isinstance(retained, dict) or retained["bytes"] > MAX_SHOWN_BYTES:
            return result
        try:
            return replace(result, structured=await self._results.read(Principal(row.principal), retained["handle"]))
        except CallError:  # the file has expired: the stored result says when
            return result


def _is_of(row: CallRow, result: ToolResult) -> bool:
    """Whether a result belongs to this call: a session may reuse the id of an earlier local call."""
    return result.outcome == row.outcome and result.metadata.latency_ms == row.latency_ms
