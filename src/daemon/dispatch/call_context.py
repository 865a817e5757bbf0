"""The context of a running call, which its tool gets."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import NamedTuple, TypeVar, Unpack

import msgspec

from ...protocol.error_codes import CallTimeoutError, ServiceUnavailableError
from ...protocol.input_request import InputDecision
from ...protocol.questions.client_question import ClientQuestion
from ...protocol.tool_call import (
    LOCAL,
    AnswerPiece,
    ApiResponse,
    ClientInfo,
    Json,
    Principal,
    Progress,
    ToolResult,
)
from ...protocol.user_credential import CredentialField, MissingCredentialError
from ...providers import (
    Completion,
    CompletionRequest,
    EmbeddingRequest,
    Embeddings,
    OnDelta,
    ProviderCapabilities,
    unknown_provider,
)
from ...tools import (
    CallInfo,
    Conversation,
    DaemonView,
    FileAccess,
    FormT,
    ModelQuestion,
    QuestionOptions,
    QuestionResult,
    Tool,
    ToolsetView,
    ValueMask,
    VendorFileAccess,
    VendorOperation,
    ask,
    expand_folders,
    form_answer,
    form_question,
    read_files,
    read_images,
)
from ..observability.logging_setup import bind_mask
from . import completion_cost
from .call_lookup import CallLookup
from .child_calls import ChildCalls
from .client_questions import ClientQuestions, root_of
from .context_services import ContextServices, ConversationCaller
from .detached_calls import DetachedCalls
from .principal_files import PrincipalFiles
from .provider_limiter import ProviderLimiter
from .provider_request import ProviderEmbedding, ProviderRequest
from .request_spending import RequestSpending
from .running_call import MESSAGE_CHARS, RunningCall
from .sendable_reports import finite_number, sendable, sendable_piece
from .side_calls import call_beside
from .vendor_admission import VendorAdmission

T = TypeVar("T")


class ContextParts(NamedTuple):
    """The parts that the contexts of all calls share."""

    services: ContextServices
    children: ChildCalls
    detached: DetachedCalls
    lookup: CallLookup
    questions: ClientQuestions


class CallContext:
    """The context of one call. Implements ``tools.LookupContext``."""

    __slots__ = ("_call", "_parts")

    def __init__(self, call: RunningCall, parts: ContextParts) -> None:
        self._call = call
        self._parts = parts

    @property
    def daemon(self) -> DaemonView:
        return self._parts.services.daemon

    @property
    def files(self) -> FileAccess:
        trusted = self.principal == LOCAL  # only users who can read the state directory have its token
        return self._parts.services.files.for_client(self.client.workspace, trusted=trusted)

    @property
    def call_id(self) -> str:
        return self._call.id

    @property
    def tool_name(self) -> str:
        return self._call.tool.name

    @property
    def principal(self) -> Principal:
        return self._call.session.principal

    @property
    def client(self) -> ClientInfo:
        return self._call.session.client

    @property
    def streaming(self) -> bool:
        call = self._call
        wanted = call.session.streaming if call.parent is None else call.on_chunk is not None
        # No streaming with bound arguments: the mask cannot recognize a value that is split between two chunks. No
        # streaming before a hook has seen the result.
        return wanted and call.mask is None and not call.result_checked

    @property
    def has_explicit_timeout(self) -> bool:
        return self._call.request.timeout_ms is not None

    def remaining(self) -> float:
        return max(0.0, self._call.deadline - time.monotonic())

    def extend_deadline(self, window_s: float) -> None:
        self._parts.questions.deadlines.extend(self._call, window_s)

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        mask = self._call.mask
        message = sendable(message) if mask is None else mask.text(sendable(message))
        progress = Progress(message[:MESSAGE_CHARS], finite_number(done), finite_number(total))
        self._call.report(progress, time.monotonic())

    def stream(self, text: str) -> None:
        call = self._call
        text = sendable(text)
        if not text or call.answered:
            return
        call.streamed_chars += len(text)  # even without a client: after a resume, it shows how much was missed
        if self.streaming:
            call.last_sent_at = time.monotonic()
            call.port.chunk(call, text)

    def stream_piece(self, piece: AnswerPiece) -> None:
        call = self._call
        if self.streaming and not call.answered:
            call.last_sent_at = time.monotonic()
            call.port.piece(call, sendable_piece(piece))

    def without_permit(self) -> AbstractAsyncContextManager[None]:
        return self._call.permit.paused()

    def conversation(self, continuation_id: str | None) -> AbstractAsyncContextManager[Conversation]:
        call = self._call
        return self._parts.services.conversations.hold(
            continuation_id,
            ConversationCaller(call.session.principal, call.session.id, call.id),
            call.permit,
            lambda: self.progress("waiting for another call of the same conversation"),
        )

    async def ask(
        self,
        prompt: str,
        *,
        files: Sequence[str] = (),
        images: Sequence[str] = (),
        stream: bool = False,
        **options: Unpack[QuestionOptions],
    ) -> QuestionResult:
        expanded = await expand_folders(files, self)
        attached = await read_files(expanded.paths, self, places=expanded.places)
        question = ModelQuestion(prompt, files=attached, images=await read_images(images, self), **options)
        result = await ask(question, self, stream=stream)
        return replace(result, omitted=(*result.omitted, *expanded.left_out()))

    async def complete(
        self, request: CompletionRequest, *, on_delta: OnDelta | None = None, model_choice_reason: str | None = None
    ) -> Completion:
        limiter, meter = self._limiter(request.model.provider), self._call.meter
        meter.model, meter.model_choice_reason = request.model.id, model_choice_reason
        model = request.model
        spending = RequestSpending(self._call, self._parts.services, limiter)
        counted = spending.needs_estimate
        expected = await asyncio.to_thread(completion_cost.expected_usage, request) if counted else None
        traces = self._parts.services.traces
        trace = None if traces is None else traces.completion(self._call, request, limiter.provider.name)
        sending = ProviderRequest(limiter.provider, request, on_delta, trace)
        with spending.reserved(model, expected) as admission:
            try:
                completion = await self._ask(limiter, sending, admission)
            except (asyncio.CancelledError, CallTimeoutError):
                if sending.sent:
                    used = completion_cost.interrupted(request, sending.received, simulated=meter.simulated)
                    spending.add(used, model, admission)
                raise
            meter.model = completion.model
            # The address may belong to a simulator; only the response shows this.
            meter.simulated = meter.simulated or completion.simulated
            used = completion_cost.completed(request, completion, simulated=meter.simulated)
            spending.add(used, model, admission)
        return completion

    async def embed(self, request: EmbeddingRequest, *, model_choice_reason: str | None = None) -> Embeddings:
        limiter, meter = self._limiter(request.model.provider), self._call.meter
        meter.model, meter.model_choice_reason = request.model.id, model_choice_reason
        spending = RequestSpending(self._call, self._parts.services, limiter)
        counted = spending.needs_estimate
        expected = await asyncio.to_thread(completion_cost.expected_tokens, request) if counted else None
        traces = self._parts.services.traces
        trace = None if traces is None else traces.completion(self._call, request, limiter.provider.name)
        sending = ProviderEmbedding(limiter.provider, request, trace)
        with spending.reserved(request.model, expected) as admission:
            try:
                answer = await self._ask(limiter, sending, admission)
            except (asyncio.CancelledError, CallTimeoutError):
                if sending.sent:
                    used = completion_cost.embedded(request, None, simulated=meter.simulated)
                    spending.add(used, request.model, admission)
                raise
            meter.model = answer.model
            meter.simulated = meter.simulated or answer.simulated
            used = completion_cost.embedded(request, answer, simulated=meter.simulated)
            spending.add(used, request.model, admission)
        return answer

    def capabilities(self, provider: str) -> ProviderCapabilities:
        return self._limiter(provider).provider

    def vendor_files(self, provider: str) -> VendorFileAccess:
        files = self._limiter(provider).provider.files
        if files is None:
            raise ServiceUnavailableError.content_free(f"The provider {provider} stores no files.", transient=False)
        return PrincipalFiles(provider, files, self._parts.services.file_owners, self)

    async def vendor(self, provider: str, operation: VendorOperation[T]) -> T:
        limiter = self._limiter(provider)
        with RequestSpending(self._call, self._parts.services, limiter).reserved() as admission:
            return await self._ask(limiter, operation, admission)

    def find_tool(self, name: str) -> Tool:
        return self._parts.children.find_tool(self._call, name)

    @property
    def toolset_view(self) -> ToolsetView:
        return self._parts.children.toolset_view(self._call)

    async def look_up_call(self, call_id: str) -> CallInfo:
        return await self._parts.lookup.look_up(self.principal, call_id)

    async def cancel_call(self, call_id: str) -> bool:
        return await self._parts.lookup.cancel(self.principal, call_id)

    async def decide(self, call_id: str, decisions: Sequence[tuple[str, InputDecision]]) -> list[str]:
        return await self._parts.lookup.decide(self._call, call_id, decisions)

    async def read_result(self, handle: str) -> Json:
        return await self._parts.services.results.read(self.principal, handle)

    @property
    def max_answer_bytes(self) -> int:
        return self._parts.children.max_answer_bytes(self._call)

    @property
    def former_client(self) -> bool:
        return self._call.session.former and not self._parts.children.strict_arguments

    def accept_former(self, notice: str, *, each_time: bool = False) -> bool:
        if self._parts.children.strict_arguments:
            return False
        if each_time:
            self._call.session.noticed.discard(notice)
        self._call.argument_notices += (notice,)
        return True

    async def user_credential(self, wanted: CredentialField) -> str:
        credentials = self._parts.services.credentials
        value = await credentials.value(self.principal.name, wanted)
        if value is None:
            raise MissingCredentialError(wanted, credentials.page)
        self._call.mask = (self._call.mask or ValueMask(())).with_secret(value)
        bind_mask(self._call.mask)
        return value

    @property
    def answered_kinds(self) -> tuple[str, ...]:
        self._call.asked_client = True
        return self.declared_kinds

    @property
    def declared_kinds(self) -> tuple[str, ...]:
        return root_of(self._call).request.answers

    async def call_hidden(
        self, tool: Tool, arguments: Mapping[str, Json], *, name: str, daily_budget: Mapping[str, float]
    ) -> ToolResult:
        self._track_side_task()
        return await call_beside(self._parts.children, self._call, tool, arguments, name, daily_budget)

    async def ask_client(self, question: ClientQuestion, *, name: str = "") -> dict[str, Json]:
        self._track_side_task()
        return await self._parts.questions.ask(self._call, question, name)

    async def elicit(self, message: str, form: type[FormT], *, name: str = "") -> FormT | None:
        self._track_side_task()
        answer = await self._parts.questions.ask(self._call, form_question(message, form), name)
        return form_answer(answer, form)

    def report_response(self, response: ApiResponse) -> None:
        mask = self._call.mask
        if mask is not None:
            headers = {name: mask.text(value) for name, value in response.headers.items()}
            response = msgspec.structs.replace(response, headers=headers)
        self._call.response = response

    def report_shaping(self, report: Mapping[str, Json]) -> None:
        self._call.shaping = dict(report)

    def _limiter(self, provider: str) -> ProviderLimiter:
        limiter = self._parts.services.limiters.get(provider)
        if limiter is None:
            missing = self._parts.services.unconfigured
            if provider not in missing:
                raise unknown_provider(provider, [*self._parts.services.limiters, *missing])
            raise ServiceUnavailableError.content_free(missing[provider], transient=False)
        return limiter

    async def _ask(
        self, limiter: ProviderLimiter, operation: VendorOperation[T], admission: VendorAdmission | None
    ) -> T:
        call, meter = self._call, self._call.meter
        meter.provider = limiter.provider.name
        meter.simulated = meter.simulated or limiter.provider.simulated
        self._track_side_task()
        return await limiter.ask(
            operation,
            deadline=call.deadline,
            permit=call.permit,
            meter=meter,
            ended=lambda: call.end_reason is not None,
            admission=admission,
        )

    def _track_side_task(self) -> None:
        """Registers the current task with the call, if the tool started the task, so that it ends with the call."""
        call, task = self._call, asyncio.current_task()
        if task is not None and task is not call.task:
            call.side_tasks = call.side_tasks or set()
            call.side_tasks.add(task)
            task.add_done_callback(call.side_tasks.discard)
