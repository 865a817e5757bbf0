"""Sessions that a request finds by its key: a repeat of the request gets the answer of the first."""

import asyncio

from ...protocol.authorization import Authorization
from ...protocol.session_registry import hash_key
from ...protocol.tool_call import ClientInfo
from ..dispatch import CallPort, Router, Session


class KeyedSessions:
    """The sessions of one transport."""

    def __init__(self, router: Router, *, transport: str, absent_port: CallPort) -> None:
        self._router = router
        self._transport = transport
        self._absent_port = absent_port
        # Only one request at a time finds or opens a session, so that no key gets two sessions.
        self._finding = asyncio.Lock()

    async def find_or_open(
        self, access: Authorization, toolset: str, client: ClientInfo, *, key: str, label: str, streams: bool
    ) -> Session:
        """Returns the session of a principal's key, or a new session.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        principal = access.principal
        key_hash = hash_key(f"{self._transport}\n{principal.name}\n{toolset}\n{key}")
        async with self._finding:
            session = await self._router.sessions.find(
                key_hash, principal, transport=self._transport, absent_port=self._absent_port
            )
            if session is None:
                return self.open(access, toolset, client, label=label, streams=streams, key_hash=key_hash)
        session.streaming, session.usable, session.principal = streams, access.toolsets, principal
        return session

    def open(
        self,
        access: Authorization,
        toolset: str,
        client: ClientInfo,
        *,
        label: str,
        streams: bool,
        key_hash: bytes | None = None,
    ) -> Session:
        """Opens a session. Without ``key_hash``, no other request can find it."""
        return self._router.sessions.open(
            label,
            access.principal,
            client,
            toolset=toolset,
            transport=self._transport,
            streaming=streams,
            absent_port=self._absent_port,
            usable=access.toolsets,
            key_hash=key_hash,
        )
