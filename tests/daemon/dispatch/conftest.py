"""A router on scripted tools and a scripted provider, so that a test reads as calls and answers."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import pytest
import structlog
from pydantic import BaseModel, ConfigDict
from structlog.dev import ConsoleRenderer, plain_traceback
from toold.daemon.dispatch import (
    ByteLimits,
    CallPort,
    ConversationCaller,
    DispatchLimits,
    Permits,
    PrincipalLimits,
    ProviderLimiter,
    RateLimits,
    Router,
    RunningCall,
    RunPermit,
    Session,
)
from toold.daemon.dispatch.budget import Budget
from toold.daemon.persistence.conversation_manager import LockedConversation
from toold.protocol.error_codes import CallError, ServiceUnavailableError
from toold.protocol.frame_decoding import request_id_of
from toold.protocol.session_calls import PendingResult, arguments_digest
from toold.protocol.session_registry import hash_key
from toold.protocol.tool_call import (
    LOCAL,
    Annotations,
    ClientInfo,
    Principal,
    Progress,
    RequestId,
    ToolCall,
    ToolResult,
    Usage,
    decode_result,
    encode_result,
)
from toold.providers import Completion, CompletionRequest, Delta, Message, Model, ModelCatalog, OnDelta, ProviderName
from toold.sandbox import Sandbox, SandboxLimits
from toold.store import CallRow, SessionRow, StoredCall, StoredCallState, StoredDetachedCall, StoredSession
from toold.tools import (
    DEFAULT_TOOLSET,
    FileAccess,
    ResultFormat,
    RetainedResult,
    Tool,
    ToolCatalog,
    ToolContext,
    ToolRegistry,
    shipped_toolsets,
)

BOUNDS = DispatchLimits(
    max_running_per_session=8,
    max_accepted_per_session=32,
    max_waiting=1000,
    max_orchestrations_per_session=8,
    max_depth=4,
    max_children=1000,
    max_detached=16,
    default_timeout_s=30.0,
    max_timeout_s=1800.0,
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


class AnyArguments(BaseModel):
    """Accepts any arguments."""

    model_config = ConfigDict(extra="allow")

    def get(self, name: str, default: Any = None) -> Any:
        return (self.model_extra or {}).get(name, default)


Function = Callable[[AnyArguments, ToolContext], Awaitable[Any]]


def make_tool(name: str, function: Function, *, read_only: bool = True, open_world: bool = False, **more: Any) -> Tool:
    """A tool with this function."""
    annotations = Annotations(read_only, False, False, open_world)
    return Tool(name, f"The tool {name} of a test.", AnyArguments, function, annotations, **more)


@dataclass(eq=False)
class FakePort:
    """A caller that records what it is sent."""

    answered: ClassVar[list[RunningCall]] = []
    """The answered calls of all ports, for ``one_answer_per_call``."""

    answers: dict[RequestId, ToolResult] = field(default_factory=dict)
    heard: list[tuple[RequestId, Progress]] = field(default_factory=list)
    chunks: list[tuple[RequestId, str]] = field(default_factory=list)
    heartbeats: int = 0
    reading: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.reading.set()

    def render(self, running: RunningCall, result: ToolResult) -> bytes:
        return encode_result(result)

    async def deliver(self, running: RunningCall, answer: bytes) -> None:
        await self.reading.wait()
        self.answered.append(running)
        self.answers[running.request.request_id] = decode_result(answer)

    def progress(self, running: RunningCall, progress: Progress) -> bool:
        self.heard.append((running.request.request_id, progress))
        return True

    def chunk(self, running: RunningCall, text: str) -> None:
        self.chunks.append((running.request.request_id, text))

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        self.heartbeats += 1
        self.heard.extend((call.request.request_id, call.heartbeat(now)) for call in calls)


@dataclass
class FakeRecorder:
    """Keeps the recorded calls."""

    ended_calls: list[tuple[RunningCall, ToolResult, int]] = field(default_factory=list)
    refused_calls: list[tuple[ToolCall, ToolResult]] = field(default_factory=list)

    def call_ended(self, running: RunningCall, result: ToolResult, result_bytes: int) -> None:
        self.ended_calls.append((running, result, result_bytes))

    def call_refused(
        self, session: Session, request: ToolCall, result: ToolResult, *, call_id: str, summary: str | None
    ) -> None:
        self.refused_calls.append((request, result))


class FakeJournal:
    """A journal in memory, whose writes can fail or wait."""

    def __init__(self, recorder: FakeRecorder) -> None:
        self.recorder = recorder
        self.events: list[tuple[str, str]] = []
        """All writes in order: ``start``, ``end``, ``keep``, ``forget``, ``close`` or ``seen``, each with its key."""
        self.sessions: dict[bytes, SessionRow] = {}
        self.calls: dict[tuple[str, str], StoredCall] = {}
        self.runs: dict[str, tuple[str, Principal, str]] = {}
        """Call → its tool, principal and run."""
        self.orders: dict[str, StoredDetachedCall] = {}
        """All detached calls so far."""
        self.refuses = False
        self.loses_ends = False
        """Ends of calls are recorded but not written, as if the disk failed at that moment."""
        self.asked: Counter[str] = Counter()
        """The number of calls of each method."""
        self.ready = asyncio.Event()
        """While it is cleared, writes and reads wait."""
        self.ready.set()

    @property
    def writable(self) -> bool:
        self.asked["writable"] += 1
        return not self.refuses

    async def start_call(self, running: RunningCall, *, replace: bool) -> bool:
        await self._disk("start")
        if self.refuses:
            raise ServiceUnavailableError("The disk refuses.", executed="no")
        known = self.calls.get((running.scope, running.key))
        if known is not None and not known.local and not replace:
            return False
        self.events.append(("start", running.key))
        self.calls[running.scope, running.key] = self._call(running, "interrupted", None)
        if running.creator is not None:
            self.runs[running.creator] = (running.tool.name, running.session.principal, running.id)
        if running.detached:
            (row,) = [row for row in self.sessions.values() if row.id == running.session.id]
            self.orders[running.id] = StoredDetachedCall(
                call_id=running.id,
                request_key=running.key,
                tool=running.tool.name,
                started_at=running.started_at,
                session=row,
                arguments=msgspec.json.encode(running.request.arguments),
                client=msgspec.json.encode(running.session.client),
                deadline_at=time.time() + running.deadline - time.monotonic(),
            )
        if running.tool.orchestration and running.parent is None:
            self.runs[running.id] = (running.tool.name, running.session.principal, running.id)
        return True

    async def end_call(self, running: RunningCall, result: ToolResult, answer: bytes) -> None:
        await self._disk("end")
        self.recorder.call_ended(running, result, len(answer))
        if self.loses_ends:
            return
        self.events.append(("end", running.key))
        self.calls[running.scope, running.key] = self._call(running, "done", encode_result(result))

    async def end_unstarted_call(self, running: RunningCall, result: ToolResult, answer: bytes) -> bool:
        await self._disk("end")
        self.recorder.call_ended(running, result, len(answer))
        known = self.calls.get((running.scope, running.key))
        if known is not None and not known.local and known.state != "interrupted":
            return False
        self.events.append(("end", running.key))
        ended = self._call(running, "done", encode_result(result))
        self.calls[running.scope, running.key] = msgspec.structs.replace(ended, started=False)
        return True

    async def earlier_call(self, running: RunningCall) -> StoredCall | None:
        await self._disk("earlier_call")
        return self.calls.get((running.session.id, running.key))

    async def call_states(self, session: Session, keys: Sequence[str]) -> dict[str, StoredCallState]:
        await self._disk("call_states")
        if self.refuses:
            raise ServiceUnavailableError("The disk refuses.")
        known = {key: self.calls.get((session.id, key)) for key in keys}
        return {key: call.state for key, call in known.items() if call is not None}

    async def earlier_child(self, running: RunningCall) -> StoredCall | None:
        await self._disk("earlier_child")
        return self.calls.get((running.scope, running.key))

    async def find_run(self, call_id: str, principal: Principal, tool: str) -> str | None:
        await self._disk("find_run")
        known = self.runs.get(call_id)
        return known[2] if known is not None and known[:2] == (tool, principal) else None

    async def resume_run(self, running: RunningCall, run: str) -> None:
        await self._disk("resume_run")
        self.runs[running.id] = (running.tool.name, running.session.principal, run)

    async def _disk(self, what: str) -> None:
        self.asked[what] += 1
        await self.ready.wait()

    def _call(self, running: RunningCall, state: StoredCallState, result: bytes | None) -> StoredCall:
        return StoredCall(
            session_id=running.scope,
            request_key=running.key,
            echo_id=running.request.echo_id,
            tool=running.tool.name,
            arguments_hash=arguments_digest(running.request.arguments),
            local=running.tool.local,
            state=state,
            result=result,
            at=time.time(),
        )

    def session_opened(self, session: Session) -> None:
        assert session.key_hash is not None
        self.sessions[session.key_hash] = SessionRow(
            id=session.id,
            key_hash=session.key_hash,
            principal=session.principal.name,
            label=session.label,
            toolset=session.toolset,
            opened_at=time.time(),
        )

    def acknowledged(self, session: Session, keys: Sequence[str]) -> None:
        self.events.extend(("forget", key) for key in keys)
        for key in keys:
            known = self.calls.pop((session.id, key), None)
            if known is not None and not known.local:
                self.calls[session.id, key] = msgspec.structs.replace(known, state="expired", result=None)

    def session_closed(self, session: Session) -> None:
        self.events.append(("close", session.label))

    def sessions_seen(self, sessions: Iterable[Session]) -> None:
        self.events.extend(("seen", session.label) for session in sessions)

    async def flush(self) -> None:
        await self._disk("flush")

    async def detached_calls(self) -> list[StoredDetachedCall]:
        await self._disk("detached_calls")
        return [kept for kept in self.orders.values() if self.calls[kept.session.id, kept.request_key].state != "done"]

    async def find_ended_call(
        self, call_id: str, child: tuple[str, str], principal: Principal
    ) -> StoredCall | CallRow | None:
        await self._disk("find_ended_call")
        return self.calls.get(child)

    async def persist_local_results(self, answers: Sequence[tuple[Session, PendingResult]]) -> bool:
        await self._disk("persist_local_results")
        if self.refuses:
            return False
        for session, kept in answers:
            self.events.append(("keep", kept.key))
            self.calls[session.id, kept.key] = StoredCall(
                session_id=session.id,
                request_key=kept.key,
                echo_id=kept.echo_id,
                tool=kept.name,
                arguments_hash=session.calls.arguments_hash(kept.key),
                local=True,
                state="done",
                result=encode_result(kept.result),
                at=kept.since + time.time() - time.monotonic(),
            )
        return True

    async def find_session(self, key_hash: bytes) -> StoredSession | None:
        await self._disk("find_session")
        if self.refuses:
            raise ServiceUnavailableError("The disk refuses.", executed="no")
        row = self.sessions.get(key_hash)
        if row is None:
            return None
        goes_on = {kept.session.id for kept in await self.detached_calls()}
        calls = [call for call in self.calls.values() if call.session_id == row.id and row.id not in goes_on]
        return StoredSession(row=row, calls=calls)


Script = Callable[[CompletionRequest, OnDelta | None], Awaitable[str]]


class FakeProvider:
    """A vendor that runs a script, and counts concurrent requests."""

    label = "Fake vendor"
    simulated = True
    transport_name = "a script"
    models: Any = None
    files: Any = None
    tokens: Any = None
    search: Any = None

    def preview(self, request: CompletionRequest, *, stream: bool = False) -> dict[str, Any]:
        return {"model": request.model.id}

    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self._script = script
        self.running = 0
        self.peak = 0
        self.asked = 0

    async def complete(
        self, request: CompletionRequest, *, timeout_s: float, on_delta: OnDelta | None = None
    ) -> Completion:
        self.asked += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            text = await self._script(request, on_delta)
        finally:
            self.running -= 1
        return Completion(text=text, model=request.model.id, finish_reason="stop", usage=Usage(3, 5))

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass


class FakeConversations:
    """Records the requested conversations and returns an empty one for each."""

    def __init__(self) -> None:
        self.wanted: list[tuple[str | None, ConversationCaller]] = []

    @asynccontextmanager
    async def hold(
        self, continuation_id: str | None, caller: ConversationCaller, permit: RunPermit, on_wait: Callable[[], None]
    ) -> AsyncIterator[LockedConversation]:
        on_wait()
        self.wanted.append((continuation_id, caller))
        yield LockedConversation(continuation_id or "new")


class FakeResults:
    """Retained results in memory, whose writes can fail or wait."""

    def __init__(self) -> None:
        self.kept: dict[tuple[Principal, str], Any] = {}
        self.refusal: CallError | None = None
        self.ready = asyncio.Event()
        self.ready.set()

    async def keep(
        self, principal: Principal, handle: str, value: Any, rows: list[Any] | None, file_format: ResultFormat
    ) -> RetainedResult:
        await self.ready.wait()
        if self.refusal is not None:
            raise self.refusal
        self.kept[principal, handle] = value if rows is None else rows
        return RetainedResult(handle, 1 if rows is None else len(rows), 7, file_format, "2026-01-01T00:00:00Z")

    async def read(self, principal: Principal, handle: str) -> Any:
        return self.kept[principal, handle]


class FakeOwners:
    """Owners of vendor files in memory."""

    def __init__(self) -> None:
        self.owners: dict[str, Principal] = {}

    async def record(self, provider: ProviderName, file_id: str, principal: Principal) -> None:
        self.owners[f"{provider} {file_id}"] = principal

    async def owned(self, provider: ProviderName, principal: Principal) -> frozenset[str]:
        named = (key.partition(" ") for key, owner in self.owners.items() if owner == principal)
        return frozenset(file_id for name, _, file_id in named if name == provider)

    def forget(self, provider: ProviderName, file_id: str) -> None:
        self.owners.pop(f"{provider} {file_id}", None)


class FakeView:
    """The tools' view of a daemon, with fixed values."""

    simulated = False

    def __init__(self) -> None:
        self.catalog = ModelCatalog.load()

    def default_model(self) -> str:
        return self.catalog.default("kimi").id

    def providers(self) -> list[dict[str, Any]]:
        return []

    def listed(self, model: Model) -> bool | None:
        return None

    def health(self, principal: Principal | None) -> dict[str, Any]:
        return {}

    async def self_check(self, principal: Principal) -> list[dict[str, Any]]:
        return []

    def running(self, principal: Principal) -> list[dict[str, Any]]:
        return []

    async def ended(
        self, principal: Principal, limit: int, *, tool: str | None = None, outcome: str | None = None
    ) -> list[dict[str, Any]]:
        return []

    async def status(self, principal: Principal, *, recent: int, days: int) -> dict[str, Any]:
        return {"recent": recent}


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
            epoch="test",
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
        superseded, kept = self.router.connect(session, port)
        missed = {request_id_of(one.key): one.result for one in kept}
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
    ) -> RunningCall | ToolResult | None:
        call = ToolCall(request_id, name, arguments or {}, timeout_ms, frame_bytes, on_disconnect=on_disconnect)
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


async def _ask(arguments: AnyArguments, context: ToolContext) -> str:
    model = context.daemon.catalog.default(arguments.get("vendor", "kimi"))
    request = CompletionRequest(model=model, messages=(Message("user", arguments.get("prompt", "")),))

    def pass_on(delta: Delta) -> None:
        context.stream(delta.text)

    return (await context.complete(request, on_delta=pass_on)).text


ask = make_tool("ask", _ask, open_world=True)
"""A tool that asks the vendor named by its argument."""


@pytest.fixture(autouse=True)
def plain_logs() -> Iterator[None]:
    """Plain tracebacks in the log: rendering one with colours and frames takes a second."""
    before = structlog.get_config()
    structlog.configure(processors=[ConsoleRenderer(exception_formatter=plain_traceback)])
    yield
    structlog.configure(**before)


@pytest.fixture(autouse=True)
def one_answer_per_call() -> Iterator[None]:
    """No test may answer a call twice. Checked afterwards, since a call's task does not raise in the test."""
    FakePort.answered.clear()
    yield
    twice = [running.key for running, times in Counter(FakePort.answered).items() if times > 1]
    assert not twice, "a second terminal answer"


@pytest.fixture(scope="session")
def make_harness() -> type[DispatchHarness]:
    """The harness class: each test creates its own in its loop."""
    return DispatchHarness


@pytest.fixture(scope="session")
def make() -> Callable[..., Tool]:
    """``make_tool``."""
    return make_tool
