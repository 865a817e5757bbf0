"""Relays HTTP requests to the node that must serve them: requests about a session that another node holds, such as a
repeat with an idempotency key, and requests of browsers that are signed in at another node.

A request about a session is first served here. If another node holds the session, and nothing was answered yet, the
request is sent to the holder unchanged.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...store import NodeRow, SessionHeldError, StoreError
from ..transports.http_port import refusal
from .browser_node import BrowserNode
from .membership import Membership
from .node_address import address_of, is_refused
from .peer_api import PEER_PATH
from .peer_key import RELAYED_HEADER, PeerKey

_CONNECT_S: Final = 3.0
_HOP_HEADERS: Final = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"trailer"})
"""Headers that describe one connection (RFC 9110, 7.6.1)."""

_log = structlog.get_logger("toold.cluster")


class HttpRelay:
    """The ASGI app of the HTTP port of a node: serves ``/peer`` and all other paths, and relays if necessary."""

    def __init__(
        self, app: ASGIApp, peer_app: ASGIApp, membership: Membership, key: PeerKey, browsers: BrowserNode
    ) -> None:
        self._app = app
        self._peer_app = peer_app
        self._membership = membership
        self._key = key
        self._browsers = browsers
        self._relayed: defaultdict[str, set[asyncio.Timeout]] = defaultdict(set)  # by the epoch of the holder
        membership.on_declared_dead.append(self._give_up)
        # No timeout: the holder answers when the call ends, and the client has its own timeout.
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=_CONNECT_S), trust_env=False)

    async def close(self) -> None:
        """Closes the connections to the other nodes."""
        await self._http.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(f"{PEER_PATH}/"):
            below = {**scope, "path": scope["path"][len(PEER_PATH) :]}
            await self._peer_app(below, receive, send)
            return
        received: list[Message] = []
        started = False
        named = self._browsers.other_node(scope)
        signed_in_at = None if named is None else self._membership.named(named)
        if signed_in_at is not None and await self._serve_held(scope, received, receive, send, signed_in_at):
            return

        async def record() -> Message:
            message = await receive()
            received.append(message)
            return message

        async def watch(message: Message) -> None:
            nonlocal started
            started = True
            received.clear()
            await send(message)

        while True:
            try:
                await self._app(scope, record if not received else _replayed(received, receive), watch)
            except SessionHeldError as held:
                if started:
                    raise
                if await self._serve_held(scope, received, receive, send, held.holder):
                    return
            else:
                return

    async def _serve_held(
        self, scope: Scope, received: list[Message], receive: Receive, send: Send, holder: NodeRow
    ) -> bool:
        """Passes the request to the holder, and the holder's answer back. Returns False if the holder is dead: then
        this node serves the request.
        """
        address = address_of(holder)
        relayed = any(name == RELAYED_HEADER.encode() for name, _ in scope["headers"])
        if address is None or relayed:
            await _unavailable(scope, receive, send)
            return True
        request = self._request(scope, holder.epoch, address.http, _body(received, receive))
        answer: httpx.Response | None = None
        try:
            async with self._while_alive(holder):
                answer = await self._http.send(request, stream=True)
                await _pass_on(answer, receive, send)
        except TimeoutError:  # the holder is dead
            if answer is None and received and not received[-1].get("more_body", False):
                return False
        except httpx.ConnectError as error:
            if is_refused(error) and await self._is_dead(holder):
                return False
        except httpx.TransportError as error:
            _log.warning("a relayed request failed", node=holder.name, reason=type(error).__name__)
        else:
            return True
        finally:
            if answer is not None:
                await answer.aclose()
        if answer is None:  # else the connection is closed: the answer is not complete
            await _unavailable(scope, receive, send)
        return True

    def _request(self, scope: Scope, epoch: str, url: str, body: AsyncIterator[bytes]) -> httpx.Request:
        target = url.rstrip("/") + scope["raw_path"].decode("latin-1")
        if scope["query_string"]:
            target += f"?{scope['query_string'].decode('latin-1')}"
        headers = [(name, value) for name, value in scope["headers"] if name not in _HOP_HEADERS]
        signature = self._key.sign(epoch, RELAYED_HEADER, scope["path"])
        signed = [*headers, (RELAYED_HEADER.encode(), signature.encode())]
        return self._http.build_request(scope["method"], target, headers=signed, content=body)

    @asynccontextmanager
    async def _while_alive(self, holder: NodeRow) -> AsyncIterator[None]:
        """Ends the block with TimeoutError when the holder is declared dead: a node that is paused does not close its
        connections.
        """
        relayed = self._relayed[holder.epoch]
        async with asyncio.timeout(None) as timeout:
            relayed.add(timeout)
            try:
                yield
            finally:
                relayed.discard(timeout)

    def _give_up(self, epoch: str) -> None:
        for timeout in self._relayed.pop(epoch, ()):
            timeout.reschedule(asyncio.get_running_loop().time())

    async def _is_dead(self, holder: NodeRow) -> bool:
        try:
            return await self._membership.declare_dead(holder, "unreachable")
        except StoreError:
            return False


def _replayed(received: list[Message], receive: Receive) -> Receive:
    """A ``receive`` that first returns what was already received, then the rest."""
    earlier = list(received)

    async def again() -> Message:
        if earlier:
            return earlier.pop(0)
        message = await receive()
        received.append(message)
        return message

    return again


async def _body(received: list[Message], receive: Receive) -> AsyncIterator[bytes]:
    messages = list(received)
    while True:
        message = messages.pop(0) if messages else await receive()
        if message["type"] != "http.request":
            return
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body", False):
            return


async def _pass_on(answer: httpx.Response, receive: Receive, send: Send) -> None:
    """Passes the holder's answer on, until the client disconnects."""
    headers = [(name.lower(), value) for name, value in answer.headers.raw if name.lower() not in _HOP_HEADERS]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})

    async def send_body() -> None:
        async for part in answer.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def until_disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    sending, waiting = asyncio.create_task(send_body()), asyncio.create_task(until_disconnected())
    try:
        await asyncio.wait({sending, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        sending.cancel()
        waiting.cancel()
        await asyncio.gather(sending, waiting, return_exceptions=True)


async def _unavailable(scope: Scope, receive: Receive, send: Send) -> None:
    refused = refusal(503, "SERVICE_UNAVAILABLE", "another node holds the session and does not answer; try again later")
    refused.headers["retry-after"] = "1"
    await refused(scope, receive, send)
