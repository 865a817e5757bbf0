"""A router on scripted tools and a scripted provider, so that a test reads as calls and answers."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from toold.call_hooks import CallHooks
from toold.daemon.dispatch import (
    ByteLimits,
    CallPort,
    DispatchLimits,
    EndReason,
    PausePort,
    PrincipalLimits,
    ProviderLimiter,
    RateLimits,
    Router,
    RunningCall,
    Session,
)
from toold.daemon.dispatch.budget import Budget
from toold.fairness import Permits
from toold.protocol.frame_decoding import request_id_of
from toold.protocol.session_registry import hash_key
from toold.protocol.tool_call import LOCAL, ClientInfo, Principal, RequestId, ToolCall, ToolResult
from toold.sandbox import Sandbox, SandboxLimits
from toold.tools import DEFAULT_TOOLSET, FileAccess, NoCredentials, Tool, ToolCatalog, ToolRegistry, shipped_toolsets

from .fake_journal import FakeJournal, FakeRecorder
from .fake_pauses import FakePauses
from .fake_port import FakePort
from .fake_provider import FakeProvider, Script
from .fake_services import FakeConversations, FakeOwners, FakeResults, FakeView
from .scripted_tools import ask

BOUNDS = DispatchLimits(
    max_running_per_session=8,
    max_accepted_per_session=32,
    max_waiting=1000,
    max_orchestrations_per_session=8,
    max_depth=4,
    max_agent_depth=6,
    max_children=1000,
    max_detached=16,
    max_paused=100,
    agents_keep_days=30,
    default_timeout_s=30.0,
    max_timeout_s=1800.0,
    question_timeout_s=300.0,
    max_frame_bytes=100_000,
    spill_bytes=None,
    progress_interval_s=5.0,
    progress_window_s=120.0,
    result_ttl_s=60.0,
    max_cached_result_bytes=1_000_000,
    max_cached_result_bytes_total=10_000_000,
    unread_bytes=ByteLimits(session=1_000_000, principal=2_000_000, daemon=3_000_000),
    request_bytes=ByteLimits(session=1_000_000, principal=2_000_000, daemon=3_000_000),
)


class Resumed(NamedTuple):
    """The result of resuming a session."""

    session: Session
    port: FakePort
    superseded: CallPort | None
    missed: dict[RequestId, ToolResult]


class DispatchHarness:
    """A router with fakes of everything around it, in the running loop."""

    def __init__(
        self,
        tools: Sequence[Tool] = (),
        providers: Mapping[str, tuple[Script, int]] | None = None,
        max_running: int = 24,
        journal: FakeJournal | None = None,
        pauses: PausePort | None = None,
        epoch: str = "test",
        hooks: CallHooks | None = None,
        **bounds: Any,
    ) -> None:
        self.recorder = FakeRecorder()
        self.journal = journal or FakeJournal(self.recorder)
        """Another harness's journal stands for the disk of a previous process."""
        self.conversations = FakeConversations()
        self.budget = Budget({})
        self.results = FakeResults()
        self.sandbox = Sandbox(SandboxLimits(cpu_s=5.0, memory_bytes=64 * 1024**2, calls=20), programs=2)
        self.rates: dict[str, Any] = {}
        """By source."""
        self.port = FakePort()
        self.absent_port = FakePort()
        self.provider_errors: list[tuple[str, str]] = []
        self.providers = {name: FakeProvider(name, script) for name, (script, _) in (providers or {}).items()}
        self.limiters = {
            name: ProviderLimiter(
                self.providers[name], limit, on_error=lambda *error: self.provider_errors.append(error)
            )
            for name, (_, limit) in (providers or {}).items()
        }
        self.router = Router(
            catalog=ToolCatalog(ToolRegistry([*tools, ask]), shipped_toolsets(), DEFAULT_TOOLSET),
            limiters=self.limiters,
            unconfigured={"kimi": "set KIMI_API_KEY", "glm": "set GLM_API_KEY"},
            permits=Permits("running", max_running),
            limits=replace(BOUNDS, **bounds),
            daemon=FakeView(),
            files=FileAccess([Path.cwd()]),
            conversations=self.conversations,
            principal_limits=PrincipalLimits(self.budget),
            results=self.results,
            rate_limits=RateLimits(self.rates.get),
            sandbox=self.sandbox,
            file_owners=FakeOwners(),
            recorder=self.recorder,
            journal=self.journal,
            pauses=pauses or FakePauses(),
            epoch=epoch,
            credentials=NoCredentials(),
            hooks=hooks,
        )

    def session(
        self,
        label: str = "test",
        running: int = 8,
        *,
        streaming: bool = False,
        key: str | None = None,
        toolset: str = DEFAULT_TOOLSET,
        principal: Principal = LOCAL,
    ) -> Session:
        """A session that the harness's port holds; with a key it can be resumed."""
        session = self.router.sessions.open(
            label,
            principal,
            ClientInfo(),
            toolset=toolset,
            transport="test",
            streaming=streaming,
            absent_port=self.absent_port,
            key_hash=None if key is None else hash_key(key),
        )
        session.permits = Permits("session", running)
        self.router.connect(session, self.port)
        return session

    async def resume(self, key: str, principal: Principal = LOCAL) -> Resumed | None:
        """Let a new connection with this key hold its session; None if there is none."""
        session = await self.router.sessions.find(
            hash_key(key), principal, transport="test", absent_port=self.absent_port
        )
        if session is None:
            return None
        port = FakePort()
        superseded, stored = self.router.connect(session, port)
        missed = {request_id_of(item.key): item.result for item in stored}
        return Resumed(session, port, superseded, missed)

    def submit(
        self,
        session: Session,
        request_id: RequestId,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        timeout_ms: float | None = None,
        port: FakePort | None = None,
        on_disconnect: Literal["keep", "cancel"] | None = None,
        frame_bytes: int = 0,
        meta: dict[str, Any] | None = None,
    ) -> RunningCall | ToolResult | None:
        call = ToolCall(
            request_id, name, arguments or {}, timeout_ms, frame_bytes, on_disconnect=on_disconnect, meta=meta
        )
        return self.router.submit(session, call, port or self.port)

    async def call(self, session: Session, request_id: RequestId, name: str, **more: Any) -> ToolResult:
        """Submit a call and wait for its answer."""
        outcome = self.submit(session, request_id, name, **more)
        if isinstance(outcome, ToolResult):
            return outcome
        async with asyncio.timeout(20):
            while request_id not in self.port.answers:
                await asyncio.sleep(0.001)
        return self.port.answers[request_id]

    async def expire(self, running: RunningCall) -> ToolResult:
        """Let the deadline of a running call pass now, and return the call's answer: the test decides when."""
        self.router._execution.end(running, EndReason.DEADLINE)
        request_id = running.request.request_id
        await self.until(lambda: request_id in self.port.answers)
        return self.port.answers[request_id]

    async def answered(self) -> None:
        """Wait until all calls are answered."""
        async with asyncio.timeout(20):
            while self.router.accepted:
                await asyncio.sleep(0.001)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds."""
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.001)

    def counts(self) -> dict[str, int]:
        """All counts that a call may hold."""
        held = {"running": self.router.permits.in_use, "waiting": self.router.permits.waiting}
        held["accepted"] = self.router.accepted
        for name, gate in self.limiters.items():
            held[name] = gate.permits.in_use + gate.permits.waiting + gate.abandoned
        return held
