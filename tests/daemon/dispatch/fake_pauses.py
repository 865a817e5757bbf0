"""A store without paused calls: ``test_paused_calls`` tests pauses on a real one."""

from collections.abc import Mapping, Sequence

from toold.daemon.dispatch import RunningCall
from toold.protocol.error_codes import CallError, ServiceUnavailableError
from toold.protocol.input_request import InputDecision
from toold.protocol.tool_call import Principal
from toold.store import CallPause, StoredDetachedCall


class FakePauses:
    """Has no paused calls and refuses to store any."""

    async def start_paused(self, call: RunningCall, pause: CallPause) -> None:
        raise ServiceUnavailableError("The disk refuses.")

    async def pause(self, pause: CallPause) -> None:
        raise ServiceUnavailableError("The disk refuses.")

    async def find(self, call_id: str, principal: Principal | None) -> StoredDetachedCall | None:
        return None

    async def paused_calls(self, principal: Principal | None) -> list[StoredDetachedCall]:
        return []

    async def count(self, principal: Principal) -> int:
        return 0

    async def paused_on(self, run: str) -> str | None:
        return None

    async def due(self) -> list[StoredDetachedCall]:
        return []

    async def waiting_for_credentials(self) -> list[StoredDetachedCall]:
        return []

    async def next_expiry_s(self) -> float | None:
        return None

    async def decision_hashes(self, call_id: str, principal: Principal) -> Mapping[str, bytes]:
        return {}

    async def adopt(self, call_id: str) -> bool:
        return True

    async def decide(
        self, stored: StoredDetachedCall, decisions: Sequence[tuple[str, InputDecision]], by: RunningCall | None
    ) -> None:
        raise ServiceUnavailableError("The disk refuses.")

    async def end(self, stored: StoredDetachedCall, error: CallError) -> None:
        raise ServiceUnavailableError("The disk refuses.")
