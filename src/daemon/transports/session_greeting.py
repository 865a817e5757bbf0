"""What a good hello leads to: the session that its client comes back to, or a new one, and the ack that says which."""

from dataclasses import dataclass
from secrets import token_urlsafe

from ...protocol.frames import PROTOCOL_VERSION, FrameLimits, HelloAck, ServerInfo
from ...protocol.handshake import HelloAccepted
from ...protocol.session_registry import hash_key
from ...protocol.tool_call import ClientInfo
from ..dispatch import Router, Session
from .websocket_connection import AWAY

_KEY_BYTES = 32
"""Of randomness in a resume key, so that it cannot be guessed, and a plain hash of it tells nothing."""


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """The session that a connection enters."""

    session: Session
    resume_key: str | None
    """None where the client does not speak of resuming."""
    resumed: bool
    """It is the session that the client came back to."""
    workspace_objection: str | None = None
    """Why files cannot be read from the directory that the client names."""


async def enter(router: Router, standing: HelloAccepted) -> SessionEntry:
    """The session of the key that the client brings, where it is its principal's and of a toolset that it may
    use; else a new one.

    Raises:
        ServiceUnavailableError: the key cannot be looked up at present.
    """
    objection = await router.files.objection_to(standing.client.workspace)
    sessions, streaming = router.sessions, "stream" in standing.features
    if standing.resume_key is not None:
        key_hash = hash_key(standing.resume_key)
        session = await sessions.find(key_hash, standing.principal, transport="websocket", away=AWAY)
        # A principal's token of today may be for fewer toolsets than the one that the session was opened with.
        if session is not None and standing.access.may_use(session.toolset):
            if standing.label_objection is None:
                session.label = standing.label
            if standing.client != ClientInfo():
                session.client = standing.client
            session.streaming, session.usable = streaming, standing.access.toolsets
            return SessionEntry(session, standing.resume_key, resumed=True, workspace_objection=objection)
    resume_key = token_urlsafe(_KEY_BYTES) if standing.resumable else None
    session = sessions.open(
        standing.label,
        standing.principal,
        standing.client,
        toolset=standing.toolset or standing.access.default(router.offer.names, router.offer.default),
        transport="websocket",
        streaming=streaming,
        away=AWAY,
        usable=standing.access.toolsets,
        key_hash=None if resume_key is None else hash_key(resume_key),
    )
    if resume_key is not None:
        await sessions.written()
    return SessionEntry(session, resume_key, resumed=False, workspace_objection=objection)


def acknowledge(
    standing: HelloAccepted,
    entry: SessionEntry,
    router: Router,
    *,
    server: ServerInfo,
    instructions: str,
    ping_interval_s: float,
) -> HelloAck:
    """The ack. What was not taken as it was asked for, a resume above all, is said in ``notice``."""
    bounds, session = router.bounds, entry.session
    notices: list[str] = []
    if standing.label_objection is not None:
        instead = "the session keeps its own" if entry.resumed else "the server made one"
        notices.append(f"session_id: {standing.label_objection}, so {instead}")
    if standing.notice is not None:
        notices.append(standing.notice)
    if entry.workspace_objection is not None:
        notices.append(f"client.workspace: {entry.workspace_objection}")
    if standing.resume_key is not None and not entry.resumed:
        notices.append("resume: no session of yours has this key any more; this is a new one")
    if standing.toolset not in {None, session.toolset}:
        notices.append(f"toolset: a session keeps its own, {session.toolset!r}; open a new one for another")
    return HelloAck(
        ok=True,
        session_id=session.label,
        session_id_generated=True if standing.label_objection is not None and not entry.resumed else None,
        notice="; ".join(notices) or None,
        protocol=PROTOCOL_VERSION,
        server=server,
        features=standing.features,
        toolset=session.toolset,
        tools_rev=router.offer.of(session.toolset).rev,
        instructions=instructions,
        resumed=entry.resumed,
        resume_key=entry.resume_key,
        durability="disk" if router.durable else "memory",
        limits=FrameLimits(
            max_frame_bytes=bounds.max_frame_bytes,
            max_inflight=session.calls.max_accepted,
            ping_interval_s=ping_interval_s,
            default_timeout_s=bounds.default_timeout_s,
            max_timeout_s=bounds.max_timeout_s,
            progress_window_s=bounds.progress_window_s,
            result_ttl_s=bounds.result_ttl_s,
        ),
    )
