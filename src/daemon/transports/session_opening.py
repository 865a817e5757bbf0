"""Opens or resumes the session of a valid hello, and builds the ``hello_ack``."""

from dataclasses import dataclass
from secrets import token_urlsafe

from ...protocol.frames import PROTOCOL_VERSION, FrameLimits, HelloAck, ServerInfo
from ...protocol.handshake import HelloAccepted, HelloRefused, stale_hello
from ...protocol.session_registry import hash_key
from ...protocol.tool_call import LOCAL, ClientInfo
from ..dispatch import Router, Session
from .absent_port import ABSENT_PORT

_KEY_BYTES = 32
"""Random bytes in a resume key: enough that the key cannot be guessed and that a plain hash of it is safe to store."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """The session of a connection."""

    session: Session
    resume_key: str | None
    """None if the client does not support resuming."""
    resumed: bool
    """The client asked to resume this session."""
    workspace_problem: str | None = None
    """Why files in the client's workspace cannot be read; None if they can."""


async def open_or_resume(router: Router, hello: HelloAccepted) -> OpenedSession | HelloRefused:
    """Returns the session of the client's resume key if the principal is the same and its toolset is permitted;
    otherwise a new session. Refuses a hello if the client has sent a later one meanwhile.

    Raises:
        ServiceUnavailableError: the key cannot be looked up at present.
    """
    problem = await router.files.start_problem(hello.client.workspace, trusted=hello.principal == LOCAL)
    sessions, streaming = router.sessions, "stream" in hello.features
    if hello.resume_key is not None:
        key_hash = hash_key(hello.resume_key)
        session = await sessions.find(key_hash, hello.principal, transport="websocket", absent_port=ABSENT_PORT)
        # The principal's current token may permit fewer toolsets than when the session was opened.
        if session is not None and hello.access.may_use(session.toolset):
            if session.overtaken(hello.connection_number):
                return stale_hello(hello.connection_number or 0, session.connection_number)
            if hello.label_problem is None:
                session.label = hello.label
            if hello.client != ClientInfo():
                session.client = hello.client
            session.streaming, session.usable = streaming, hello.access.toolsets
            session.result_text = hello.result_text
            session.principal = hello.principal  # with the rights of the current token
            return OpenedSession(session, hello.resume_key, resumed=True, workspace_problem=problem)
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
    session.result_text = hello.result_text
    session.former = hello.plain and router.catalog.former_clients
    if resume_key is not None:
        await sessions.flush()
    return OpenedSession(session, resume_key, resumed=False, workspace_problem=problem)


def build_ack(
    hello: HelloAccepted,
    opened: OpenedSession,
    router: Router,
    *,
    server: ServerInfo,
    instructions: str,
    ping_interval_s: float,
) -> HelloAck:
    """Builds the ack. Its ``notice`` lists the requests of the hello that were not granted, such as a failed resume."""
    bounds, session = router.limits, opened.session
    notices: list[str] = []
    if hello.label_problem is not None:
        instead = "the session keeps its label" if opened.resumed else "the server generated one"
        notices.append(f"session_id: {hello.label_problem}, so {instead}")
    if hello.notice is not None:
        notices.append(hello.notice)
    if opened.workspace_problem is not None:
        notices.append(f"client.workspace: {opened.workspace_problem}")
    if hello.resume_key is not None and not opened.resumed:
        notices.append("resume: no session of this principal has this key; this is a new session")
    if hello.toolset not in {None, session.toolset}:
        notices.append(
            f"toolset: a resumed session keeps its toolset {session.toolset!r}; use a new session for another"
        )
    return HelloAck(
        ok=True,
        session_id=session.label,
        session_id_generated=True if hello.label_problem is not None and not opened.resumed else None,
        notice="; ".join(notices) or None,
        protocol=PROTOCOL_VERSION,
        server=server,
        features=hello.features,
        toolset=session.toolset,
        tools_rev=router.catalog.view(session.toolset).rev,
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
