"""The audit rows of the dashboard's actions."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ...protocol.error_codes import CallError
from ...store import AuditTrail, CallRow
from ..transports.dashboard import Viewer

TRANSPORT: Final = "dashboard"


class ActionAudit:
    """Writes a row for each action, whether it succeeds or not."""

    def __init__(self, audit: AuditTrail) -> None:
        self._audit = audit

    @contextmanager
    def recorded(self, viewer: Viewer, action: str, **arguments: Any) -> Iterator[None]:
        """Records the action of the block; the row's tool is ``dashboard:`` followed by the action."""
        started = time.time()
        outcome = "INTERNAL_ERROR"
        try:
            yield
            outcome = "ok"
        except CallError as error:
            outcome = error.code
            raise
        finally:
            action_id = f"ui-{secrets.token_hex(8)}"
            self._audit.record(
                CallRow(
                    id=action_id,
                    started_at=started,
                    transport=TRANSPORT,
                    principal=viewer.name,
                    session_id=TRANSPORT,
                    session_label=TRANSPORT,
                    client=TRANSPORT,
                    request_id=f'"{action_id}"',
                    tool=f"{TRANSPORT}:{action}",
                    outcome=outcome,
                    arguments=arguments,
                    latency_ms=round((time.time() - started) * 1000, 3),
                )
            )
