"""The interface between a running tool and the daemon. It exposes no sockets, sessions or provider objects."""

from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar, Unpack

from ..protocol.questions.client_question import ClientQuestion
from ..protocol.tool_call import AnswerPiece, ApiResponse, ClientInfo, Json, Principal
from ..protocol.user_credential import CredentialField
from ..providers import (
    Completion,
    CompletionRequest,
    EmbeddingRequest,
    Embeddings,
    Model,
    ModelCatalog,
    OnDelta,
    ProviderCapabilities,
)
from .conversation import Conversation
from .form_questions import FormT
from .model_question import QuestionOptions, QuestionResult
from .vendor_file_access import VendorFileAccess
from .workspace_files import FileAccess

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class DaemonView(Protocol):
    """Read-only view of the daemon for ``status``, ``listmodels`` and similar tools. Never takes a permit."""

    @property
    def catalog(self) -> ModelCatalog: ...

    @property
    def locale(self) -> str | None:
        """The language in which models answer, such as ``fr-FR``; None: the language of the question."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether a simulator replaces any vendor."""
        ...

    def default_model(self) -> str:
        """The id of the model that ``chat`` uses if the caller names none, or ``auto``.

        Raises:
            ServiceUnavailableError: no provider is configured; the message names the keys to set.
        """
        ...

    def fallback(self, tool: str, provider: str) -> tuple[str, ...]:
        """The operator's fallback models, which are asked if a model of this provider fails in a call of this tool."""
        ...

    def providers(self) -> list[dict[str, Any]]:
        """One object per provider: name, label, available, simulated, transport, missing, lists_all.

        ``missing`` names the settings that an unavailable provider needs; otherwise it is empty. If ``lists_all`` is
        true, a
        model that is not ``listed`` cannot be used.
        """
        ...

    def listed(self, model: Model) -> bool | None:
        """Whether the model's vendor lists it for the key in use; None if that is unknown."""
        ...

    def health(self, principal: Principal | None) -> dict[str, Any]:
        """Whether the daemon accepts calls (``status``: ``ready`` or ``stopping``), and its ``problems``. Only
        operators see the details of problems. ``principal`` is None for a caller without a token.
        """
        ...

    async def self_check(self, principal: Principal) -> list[dict[str, Any]]:
        """One object per check: check, ok, status, message, remedy. Has no side effects and calls no vendor. Only
        operators see messages with details of other principals or the machine.
        """
        ...

    def running(self, principal: Principal) -> list[dict[str, Any]]:
        """The principal's unanswered calls, oldest first."""
        ...

    async def paused(self, principal: Principal) -> list[dict[str, Any]]:
        """The principal's paused calls, oldest first, with the kinds of their open requests, but not with the content.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        ...

    async def ended(
        self, principal: Principal, limit: int, *, tool: str | None = None, outcome: str | None = None
    ) -> list[dict[str, Any]]:
        """The principal's latest ended calls from the audit trail, newest first. The ``outcome`` ``error`` matches
        every error code.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        ...

    async def status(self, principal: Principal, *, recent: int, days: int) -> dict[str, Any]:
        """Version, uptime_s, limits and their use, connections, providers, budget. Also the totals, the spending of the
        last ``days`` days, the ``recent`` latest calls and the paused calls, of this principal or, for an operator, of
        all principals.
        """
        ...


class VendorOperation(Protocol[T_co]):
    """One request to a vendor: a method of its capabilities with all arguments bound except the timeout, for example
    ``partial(search.search, query)``.
    """

    def __call__(self, *, timeout_s: float) -> Awaitable[T_co]: ...


class ToolContext(Protocol):
    """One running call, as every tool sees it."""

    @property
    def call_id(self) -> str: ...

    @property
    def tool_name(self) -> str:
        """The name of the called tool."""
        ...

    @property
    def principal(self) -> Principal: ...

    @property
    def client(self) -> ClientInfo: ...

    @property
    def daemon(self) -> DaemonView: ...

    @property
    def files(self) -> FileAccess: ...

    @property
    def streaming(self) -> bool:
        """Whether the client receives what ``stream`` sends."""
        ...

    def remaining(self) -> float:
        """Seconds until this call's deadline; never negative."""
        ...

    def extend_deadline(self, window_s: float) -> None:
        """Extend the deadline of a call that makes progress to ``window_s`` from now, at most ``max_timeout_s`` after
        its start. Has no effect if the caller set the timeout.
        """
        ...

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """Report progress: ``done`` of ``total``, in a unit that the message names. Never blocks."""
        ...

    def stream(self, text: str) -> None:
        """Send a chunk of the answer's text to clients that stream. Never blocks."""
        ...

    def stream_piece(self, piece: AnswerPiece) -> None:
        """Send reasoning or a piece of a tool call to clients that stream, if their protocol supports it, like OpenAI's
        API. Never blocks. The tool's answer must contain the same pieces.
        """
        ...

    async def ask(
        self,
        prompt: str,
        *,
        files: Sequence[str] = (),
        images: Sequence[str] = (),
        stream: bool = False,
        **options: Unpack[QuestionOptions],
    ) -> QuestionResult:
        """Ask a model, as the tool ``chat`` does: the answer is ``(await context.ask("Why?")).text``.

        ``files`` are paths of text files or folders in the workspace; ``omitted`` of the result lists the skipped
        content of folders. ``images`` are paths in the workspace, or ``https:`` or ``data:image/`` URLs. ``stream``
        sends the answer to the caller while it is written, for a tool that returns the model's answer.

        The deadline, permits and budget of this call apply, and usage, cost, model and provider are recorded with it.

        Raises:
            InvalidArgumentsError: the model is unknown or does not support an option, or a path is invalid.
            NotFoundError, PermissionDeniedError: a file is missing or may not be read.
            ContextLengthExceededError: the prompt does not fit into the model's context window.
            CallError: the vendor failed; ServiceUnavailableError if the provider is not configured.
        """
        ...

    async def complete(
        self, request: CompletionRequest, *, on_delta: OnDelta | None = None, model_choice_reason: str | None = None
    ) -> Completion:
        """Ask the model that the request names, within this call's deadline and its provider's permits.

        Usage, cost, provider and duration are recorded with the call, and so is ``model_choice_reason``, the tool's
        reason for choosing this model.

        Raises:
            CallError: the vendor's error, or ServiceUnavailableError if the provider is not configured.
        """
        ...

    async def embed(self, request: EmbeddingRequest, *, model_choice_reason: str | None = None) -> Embeddings:
        """Make embeddings with the model that the request names; everything else is as in ``complete``."""
        ...

    def capabilities(self, provider: str) -> ProviderCapabilities:
        """The further capabilities of a vendor, besides completions. Call methods that send nothing (``preview``)
        directly, and call methods that send a request through ``vendor``.

        Raises:
            ServiceUnavailableError: the provider is not configured; the message names the setting.
        """
        ...

    def vendor_files(self, provider: str) -> VendorFileAccess:
        """The files at a vendor that the principal may use.

        Raises:
            ServiceUnavailableError: the provider is not configured, or stores no files.
        """
        ...

    async def vendor(self, provider: str, operation: VendorOperation[T]) -> T:
        """Send a vendor a request other than a completion, within this call's deadline and the provider's permits.
        The request is counted with the call.

        Raises:
            CallError: the vendor's error, or ServiceUnavailableError if the provider is not configured.
        """
        ...

    @property
    def former_client(self) -> bool:
        """Whether the client was written for an earlier server. Always False with ``strict_arguments``."""
        ...

    def accept_former(self, notice: str, *, each_time: bool = False) -> bool:
        """Whether the tool may treat the call as an earlier server did, although the arguments do not show that the
        client expects it; False with ``strict_arguments``. If True, adds the sentence ``notice`` to
        ``metadata.argument_notices``, and to the answer's text the first time in a session or ``each_time``.
        """
        ...

    async def user_credential(self, wanted: CredentialField) -> str:
        """The current value of the principal's credential; other principals' credentials are out of reach. From now on,
        the value is masked in the call's results, reports and log lines.

        Raises:
            MissingCredentialError: the credential is not stored; the message names the place to enter it.
            ServiceUnavailableError: the vault cannot be read.
        """
        ...

    @property
    def answered_kinds(self) -> tuple[str, ...]:
        """The kinds of questions that the client of this call, or of the call around it, answers."""
        ...

    @property
    def declared_kinds(self) -> tuple[str, ...]:
        """Like ``answered_kinds``, to declare them to a server. The result can still be cached, because the kinds are
        part of the cache key."""
        ...

    async def elicit(self, message: str, form: type[FormT], *, name: str = "") -> FormT | None:
        """Ask the person behind the client to fill in a form: a pydantic model whose fields are texts, numbers,
        booleans, and choices (``Literal`` of texts, or a list of it). Returns None if the person declines.

        While the question waits, at most ``question_timeout_s``, the call holds no permit and its deadline moves
        accordingly.
        ``name`` identifies the question within the call.

        Raises:
            QuestionRefusedError: the client cannot show forms, did not answer in time, or answered with an error.
        """
        ...

    async def ask_client(self, question: ClientQuestion, *, name: str = "") -> dict[str, Json]:
        """Ask the client a question in MCP's format (``read_question``); the answer is checked against it. Otherwise
        like ``elicit``."""
        ...

    def report_response(self, response: ApiResponse) -> None:
        """Report the status and headers of a REST API's answer in the metadata of this call's answer."""
        ...

    def without_permit(self) -> AbstractAsyncContextManager[None]:
        """Release the call's permit during the block, while the call waits for something else. Does nothing in a call
        without a permit, such as a call of an orchestration tool.
        """
        ...

    def conversation(self, continuation_id: str | None) -> AbstractAsyncContextManager[Conversation]:
        """The principal's conversation with this id, or a new one if the id is None. Locked for the duration of the
        block.

        If another call has locked it, this call waits, at most until its deadline, and holds no permits meanwhile.

        Raises:
            NotFoundError: the conversation does not exist or belongs to another principal.
            ServiceUnavailableError: conversations cannot be read or stored at present.
            InvalidArgumentsError: its ``state`` exceeds ``MAX_STATE_BYTES``; raised at the end of the block.
        """
        ...
