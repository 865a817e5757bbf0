"""What a good hello leads to: the session that its client comes back to, or a new one, and the ack that says which."""

from dataclasses import dataclass
from secrets import token_urlsafe

from ...protocol.frames import PROTOCOL_VERSION, FrameLimits, HelloAck, ServerInfo
from ...protocol.handshake import HelloAccepted
from ...protocol.session_registry import hash_key
from ...protocol.tool_call import ClientInfo
from ..dispatch import Router, Session
from .websocket_connection import ABSENT_PORT

_KEY_BYTES = 32
"""Of randomness in a resume key, so that it cannot be guessed, and a plain hash of it tells nothing."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """The session that a connection enters."""

    session: Session
    resume_key: str | None
    """None where the client does not speak of resuming."""
    resumed: bool
    """It is the session that the client came back to."""
    workspace_problem: str | None = None
    """Why files cannot be read from the directory that the client names."""


async def open_or_resume(router: Router, hello: HelloAccepted) -> OpenedSession:
    """The session of the key that the client brings, where it is its principal's and of a toolset that it may
    use; else a new one.

    Raises:
        ServiceUnavailableError: the key cannot be looked up at present.
    """
    objection = await router.files.objection_to(hello.client.workspace)
    sessions, streaming = router.sessions, "stream" in hello.features
    if hello.resume_key is not None:
        key_hash = hash_key(hello.resume_key)
        session = await sessions.find(key_hash, hello.principal, transport="websocket", absent_port=ABSENT_PORT)
        # A principal's token of today may be for fewer toolsets than the one that the session was opened with.
        if session is not None and hello.access.may_use(session.toolset):
            if hello.label_problem is None:
                session.label = hello.label
            if hello.client != ClientInfo():
                session.client = hello.client
            session.streaming, session.usable = streaming, hello.access.toolsets
            return OpenedSession(session, hello.resume_key, resumed=True, workspace_problem=objection)
    resume_key = token_urlsafe(_KEY_BYTES) if hello.resumable else None
    session = sessions.open(
        hello.label,
        hello.principal,
        hello.client,
        toolset=hello.toolset or hello.access.default_toolset(router.catalog.names, router.catalog.default),
        transport="websocket",
        streaming=streaming,
        absent_port=ABSENT_PORT,
        usable=hello.access.toolsets,
        key_hash=None if resume_key is None else hash_key(resume_key),
    )
    if resume_key is not None:
        await sessions.flush()
    return OpenedSession(session, resume_key, resumed=False, workspace_problem=objection)


def build_ack(
    hello: HelloAccepted,
    opened: OpenedSession,
    router: Router,
    *,
    server: ServerInfo,
    instructions: str,
    ping_interval_s: float,
) -> HelloAck:
    """The ack. What was not taken as it was asked for, a resume above all, is said in ``notice``."""
    bounds, session = router.limits, opened.session
    notices: list[str] = []
    if hello.label_problem is not None:
        instead = "the session keeps its own" if opened.resumed else "the server made one"
        notices.append(f"session_id: {hello.label_problem}, so {instead}")
    if hello.notice is not None:
        notices.append(hello.notice)
    if opened.workspace_problem is not None:
        notices.append(f"client.workspace: {opened.workspace_problem}")
    if hello.resume_key is not None and not opened.resumed:
        notices.append("resume: no session of yours has this key any more; this is a new one")
    if hello.toolset not in {None, session.toolset}:
        notices.append(f"toolset: a session keeps its own, {session.toolset!r}; open a new one for another")
    return HelloAck(
        ok=True,
        session_id=session.label,
        session_id_generated=True if hello.label_problem is not None and not opened.resumed else None,
        notice="; ".join(notices) or None,
        protocol=PROTOCOL_VERSION,
        server=server,
        features=hello.features,
        toolset=session.toolset,
        tools_rev=router.catalog.of(session.toolset).rev,
        instructions=instructions,
        resumed=opened.resumed,
        resume_key=opened.resume_key,
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
