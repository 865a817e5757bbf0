"""A call context for tools under test, with a real catalog, real files and a scripted model."""

import datetime as dt
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, Unpack

from toold.protocol.error_codes import CallError, NotFoundError, ServiceUnavailableError, ToolNotFoundError
from toold.protocol.input_request import InputDecision
from toold.protocol.tool_call import (
    LOCAL,
    AnswerPiece,
    ApiResponse,
    ClientInfo,
    Json,
    PartsOutcome,
    Principal,
    ToolResult,
)
from toold.protocol.user_credential import CredentialField, MissingCredentialError
from toold.providers import (
    Completion,
    CompletionRequest,
    Delta,
    EmbeddingRequest,
    Embeddings,
    Model,
    ModelCatalog,
    ModelPrice,
    OnDelta,
    ProviderCapabilities,
)
from toold.sandbox import Sandbox, SandboxLimits
from toold.tools import (
    CallInfo,
    FileAccess,
    ModelQuestion,
    QuestionOptions,
    QuestionResult,
    RateState,
    ResultFormat,
    RetainedResult,
    Tool,
    ToolRegistry,
    Toolset,
    ToolsetView,
    Turn,
    VendorFileAccess,
    VendorOperation,
    ask,
    expand_folders,
    read_files,
    read_images,
)

T = TypeVar("T")

known = partial(Model, source="https://example.com/models", date=dt.date(2026, 1, 1))
MODELS = (
    known(
        "kimi-see",
        "kimi",
        200_000,
        inputs=("text", "image"),
        thinking="switch",
        image_urls=False,
        web_search=True,
        search_excludes_thinking=True,
        structured="object",
        default=True,
    ),
    known("kimi-small", "kimi", 8_000, max_output=4_000, price=ModelPrice("USD", 1.0, 4.0), aliases=("small",)),
    known("glm-muse", "glm", 1_000_000, thinking="always", efforts=("low", "max"), default=True),
    known("glm-gone", "glm", 2_000_000, inputs=("text", "image"), retired=dt.date(2020, 1, 1)),
)


class Daemon:
    """The daemon as the tools see it; ``available`` names the providers that have a key."""

    def __init__(self) -> None:
        self.catalog = ModelCatalog(MODELS)
        self.simulated = False
        self.locale: str | None = None
        self.fallbacks: dict[str, tuple[str, ...]] = {}
        """By tool or provider."""
        self.available = ["kimi", "glm"]
        self.lists: set[str] | None = None
        """The model ids that the vendors list; None if unknown."""
        self.checks: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.pauses: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []
        self.wanted: dict[str, Any] = {}
        """The parameters of the last request for the log."""

    def default_model(self) -> str:
        if not self.available:
            raise ServiceUnavailableError("no provider is configured: set KIMI_API_KEY or GLM_API_KEY")
        return "kimi-see"

    def fallback(self, tool: str, provider: str) -> tuple[str, ...]:
        return self.fallbacks.get(tool, self.fallbacks.get(provider, ()))

    def providers(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "label": name.upper(),
                "available": name in self.available,
                "simulated": False,
                "transport": "scripted",
                "missing": "" if name in self.available else f"set {name.upper()}_API_KEY",
                "lists_all": name == "kimi",
            }
            for name in ("kimi", "glm")
        ]

    def listed(self, model: Model) -> bool | None:
        return None if self.lists is None else model.id in self.lists

    def health(self, principal: Principal | None) -> dict[str, Any]:
        return {"status": "ready", "problems": []}

    async def self_check(self, principal: Principal) -> list[dict[str, Any]]:
        return self.checks

    def running(self, principal: Principal) -> list[dict[str, Any]]:
        return [row for row in self.runs if row["principal"] == principal.name]

    async def paused(self, principal: Principal) -> list[dict[str, Any]]:
        return [dict(row) for row in self.pauses]

    async def ended(
        self, principal: Principal, limit: int, *, tool: str | None = None, outcome: str | None = None
    ) -> list[dict[str, Any]]:
        self.wanted = {"principal": principal.name, "limit": limit, "tool": tool, "outcome": outcome}
        return self.log[:limit]

    async def status(self, principal: Principal, *, recent: int, days: int) -> dict[str, Any]:
        return {"uptime_s": 1.5, "calls": {"recent": list(range(recent))}, "usage": list(range(days))}


@dataclass
class Thread:
    """A conversation in memory."""

    id: str
    turns: list[Turn] = field(default_factory=list)
    state: Any = None

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)


@dataclass
class Context:
    """Records the tool's completion requests, reports and chunks; answers with ``completion`` after ``deltas``."""

    files: FileAccess
    daemon: Daemon = field(default_factory=Daemon)
    completion: Completion = field(default_factory=lambda: Completion("Hello.", "kimi-see-2026", "stop", None))
    replies: dict[str, Completion | Exception] = field(default_factory=dict)
    """Replies per model, used instead of ``completion``; an exception is raised."""
    deltas: tuple[Delta, ...] = ()
    streaming: bool = False
    call_id: str = "call-1"
    tool_name: str = "a_tool"
    principal: Principal = LOCAL
    client: ClientInfo = field(default_factory=ClientInfo)
    requests: list[CompletionRequest] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)
    pieces: list[AnswerPiece] = field(default_factory=list)
    model_choice_reason: str | None = None
    """The reason that was given with the last completion."""
    strict: bool = False
    """The setting ``strict_arguments``."""
    former_client: bool = False
    notices: list[str] = field(default_factory=list)
    threads: dict[str, Thread] = field(default_factory=dict)
    """The stored conversations."""
    tools: dict[str, Tool] = field(default_factory=dict)
    """The tools that can be called."""
    toolset: Toolset = field(default_factory=lambda: Toolset("full"))
    results: dict[str, ToolResult] = field(default_factory=dict)
    """The results of child calls by child name."""
    called: list[tuple[str, str, dict[str, Any], float | None]] = field(default_factory=list)
    """The name, tool, arguments and timeout of each child call."""
    decisions: dict[str, InputDecision] = field(default_factory=dict)
    """The decisions on earlier requests by id."""
    taken_up: str | None = None
    kept: dict[str, Json] = field(default_factory=dict)
    """Retained results by handle."""
    disk_refuses: CallError | None = None
    shaping: dict[str, Json] | None = None
    response: ApiResponse | None = None
    parts: PartsOutcome | None = None
    sandbox: Sandbox = field(default_factory=lambda: Sandbox(SandboxLimits(5.0, 64 * 1024**2, 20), programs=2))
    rate: RateState | None = None
    """The rate limit of every tool's source."""
    detached: bool = False
    detached_calls: list[tuple[dict[str, Any], float]] = field(default_factory=list)
    """The changed arguments and the timeout of each detached call."""
    known: dict[str, CallInfo] = field(default_factory=dict)
    """The known calls by id."""
    cancelled: list[str] = field(default_factory=list)
    decided: list[tuple[str, list[tuple[str, InputDecision]]]] = field(default_factory=list)
    max_answer_bytes: int = 20 * 1024 * 1024
    has_explicit_timeout: bool = False

    def find_tool(self, name: str) -> Tool:
        if name not in self.tools:
            raise ToolNotFoundError(f"There is no tool {name!r}.")
        return self.tools[name]

    @property
    def toolset_view(self) -> ToolsetView:
        return ToolsetView(ToolRegistry(self.tools.values()), self.toolset)

    async def call(
        self, tool: str, arguments: Mapping[str, Json], *, name: str, timeout_s: float | None = None
    ) -> ToolResult:
        self.called.append((name, tool, dict(arguments), timeout_s))
        return self.results[name]

    async def retain_result(
        self, value: Json, rows: list[Json] | None, file_format: ResultFormat, *, name: str | None = None
    ) -> RetainedResult:
        if self.disk_refuses is not None:
            raise self.disk_refuses
        handle = self.call_id if name is None else f"{self.call_id}/{name}"
        self.kept[handle] = value if rows is None else rows
        return RetainedResult(handle, 1 if rows is None else len(rows), 7, file_format, "2026-01-01T00:00:00Z")

    async def read_result(self, handle: str) -> Json:
        if handle not in self.kept:
            raise NotFoundError("There is no such result.")
        return self.kept[handle]

    def accept_former(self, notice: str, *, each_time: bool = False) -> bool:
        if not self.strict:
            self.notices.append(notice)
        return not self.strict

    async def user_credential(self, wanted: CredentialField) -> str:
        raise MissingCredentialError(wanted, None)

    @property
    def answered_kinds(self) -> tuple[str, ...]:
        return ()

    @property
    def declared_kinds(self) -> tuple[str, ...]:
        return self.answered_kinds

    async def call_hidden(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def ask_client(self, question: Any, *, name: str = "") -> Any:
        raise NotImplementedError

    async def elicit(self, message: str, form: type[Any], *, name: str = "") -> Any:
        raise NotImplementedError

    def report_response(self, response: ApiResponse) -> None:
        self.response = response

    def report_shaping(self, report: Mapping[str, Json]) -> None:
        self.shaping = dict(report)

    def report_parts(self, parts: PartsOutcome) -> None:
        self.parts = parts

    async def rate_state(self, _tool: Tool) -> RateState | None:
        return self.rate

    def decision(self, request_id: str) -> InputDecision | None:
        return self.decisions.get(request_id)

    async def resume(self, call_id: str) -> None:
        self.taken_up = call_id

    async def detach(self, *, changed: Mapping[str, Json], timeout_s: float) -> str:
        self.detached_calls.append((dict(changed), timeout_s))
        return "call-2"

    async def look_up_call(self, call_id: str) -> CallInfo:
        return self.known.get(call_id, CallInfo(id=call_id, state="unknown"))

    async def decide(self, call_id: str, decisions: Sequence[tuple[str, InputDecision]]) -> list[str]:
        self.decided.append((call_id, list(decisions)))
        return []

    async def cancel_call(self, call_id: str) -> bool:
        known = self.known.get(call_id)
        if known is None or not known.is_unfinished:
            return False
        self.cancelled.append(call_id)
        return True

    def remaining(self) -> float:
        return 30.0

    def extend_deadline(self, window_s: float) -> None:
        pass

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self.reports.append(message)

    def stream(self, text: str) -> None:
        self.streamed.append(text)

    def stream_piece(self, piece: AnswerPiece) -> None:
        self.pieces.append(piece)

    def capabilities(self, provider: str) -> ProviderCapabilities:
        raise ServiceUnavailableError(f"set {provider.upper()}_API_KEY", transient=False)

    def vendor_files(self, provider: str) -> VendorFileAccess:
        raise ServiceUnavailableError(f"set {provider.upper()}_API_KEY", transient=False)

    async def vendor(self, provider: str, operation: VendorOperation[T]) -> T:
        return await operation(timeout_s=self.remaining())

    @asynccontextmanager
    async def without_permit(self) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def conversation(self, continuation_id: str | None) -> AsyncIterator[Thread]:
        thread = Thread(f"thread-{len(self.threads) + 1}")
        if continuation_id is not None:
            if continuation_id not in self.threads:
                raise NotFoundError("There is no such conversation.")
            stored = self.threads[continuation_id]
            thread = Thread(stored.id, list(stored.turns), deepcopy(stored.state))
        yield thread
        self.threads[thread.id] = thread

    async def ask(
        self,
        prompt: str,
        *,
        files: Sequence[str] = (),
        images: Sequence[str] = (),
        stream: bool = False,
        **options: Unpack[QuestionOptions],
    ) -> QuestionResult:
        attached = await read_files((await expand_folders(files, self)).paths, self)
        question = ModelQuestion(prompt, files=attached, images=await read_images(images, self), **options)
        return await ask(question, self, stream=stream)

    async def complete(
        self, request: CompletionRequest, *, on_delta: OnDelta | None = None, model_choice_reason: str | None = None
    ) -> Completion:
        self.model_choice_reason = model_choice_reason
        self.requests.append(request)
        if on_delta is not None:
            for delta in self.deltas:
                on_delta(delta)
        reply = self.replies.get(request.model.id, self.completion)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def embed(self, request: EmbeddingRequest, *, model_choice_reason: str | None = None) -> Embeddings:
        raise NotImplementedError
