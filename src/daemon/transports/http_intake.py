"""Receives the requests of all protocols of the HTTP port: limits their number, and reads their bodies."""

from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, TypeVar

from starlette.types import Receive

from ...protocol.long_texts import is_quick
from ...serving import HttpPeer
from ..dispatch import Router
from ..off_loop import off_loop
from .body_turn import BodyTurn, NoTurnError
from .http_io import BodyTooLargeError, ClientDisconnectedError, read_body
from .large_frames import LargeFrames, TurnLimits
from .request_guard import RequestRefused

T = TypeVar("T")

_INTAKE_ERRORS: Final = (BodyTooLargeError, NoTurnError, TimeoutError)
"""The errors of ``HttpIntake.receive`` for a refused body; ``refusal_of`` returns the answer."""


class Refuse(Protocol):
    """Answers a refused request in the format of its protocol; with ``close``, the connection ends after the answer."""

    async def __call__(self, refused: RequestRefused, *, close: bool) -> None: ...


class HttpIntake:
    """The requests that are being served, and the large bodies that are being received."""

    def __init__(self, router: Router, *, max_requests: int, max_body_bytes: int) -> None:
        self._router = router
        self._max_requests = max_requests
        self._max_body_bytes = max_body_bytes
        self._large_bodies = LargeFrames(self._turn_limits)
        self.active = 0
        """The requests that are being served."""

    def __repr__(self) -> str:
        return f"<HttpIntake requests={self.active}/{self._max_requests}>"

    def refuse_excess(self, peer: HttpPeer) -> RequestRefused | None:
        """Refuses an authorized request if there are too many; otherwise takes a place among the authenticated
        connections.
        """
        if self.active < self._max_requests and peer.authenticate():
            return None
        message = f"All {self._max_requests} connections of this port are in use; try again later."
        return RequestRefused(503, message, (("retry-after", "1"),))

    def serving(self, refuse: Refuse) -> "_Serving":
        """The block in which one request is served. If its client disconnects, the request ends; if its body is
        refused, ``refuse`` answers.
        """
        return _Serving(self, refuse)

    async def receive(
        self,
        receive: Receive,
        principal: str,
        decode: Callable[[bytes], T],
        decode_long: Callable[[bytes], T],
        *,
        whole: bool,
    ) -> tuple[T, int]:
        """Reads and decodes a request's body, outside of the event loop if that takes long; also returns its size.

        ``whole``: the whole body has already arrived.

        Raises:
            ClientDisconnectedError: the client disconnected.
            BodyTooLargeError, NoTurnError, TimeoutError: the body is refused (``refusal_of``).
        """
        if whole:
            body = await read_body(receive, self._max_body_bytes, whole=True)
            return decode(body) if is_quick(body) else await off_loop(decode_long, body), len(body)
        turn = BodyTurn(self._large_bodies, principal)
        try:
            body = await read_body(receive, self._max_body_bytes, turn=turn)
            return decode(body) if is_quick(body) else await off_loop(decode_long, body), len(body)
        finally:
            turn.release()

    def refusal_of(self, error: Exception) -> tuple[RequestRefused, bool]:
        """Returns the answer to one of ``INTAKE_ERRORS``, and whether the connection must be closed after it."""
        if isinstance(error, BodyTooLargeError):
            return RequestRefused(413, f"The body exceeds the limit of {self._max_body_bytes} bytes."), False
        if isinstance(error, NoTurnError):
            message = "Too many large requests are being received."
            return RequestRefused(503, message, (("retry-after", "1"),)), False
        return RequestRefused(408, "The rest of the body did not arrive in time."), True

    def _turn_limits(self) -> TurnLimits:
        """The number of bodies of the maximum size that fit into the limits for requests."""
        bounds, body = self._router.limits.request_bytes, self._max_body_bytes
        return TurnLimits(bounds.principal // body, bounds.daemon // body)


class _Serving:
    __slots__ = ("_intake", "_refuse")

    def __init__(self, intake: HttpIntake, refuse: Refuse) -> None:
        self._intake = intake
        self._refuse = refuse

    async def __aenter__(self) -> None:
        self._intake.active += 1

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        try:
            if isinstance(exc, _INTAKE_ERRORS):
                refused, close = self._intake.refusal_of(exc)
                await self._refuse(refused, close=close)
                return True
            return isinstance(exc, ClientDisconnectedError)
        finally:
            self._intake.active -= 1
