"""The contexts of built-in tools that look up tools, calls and results, and of tools that call other tools."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from ..protocol.input_request import InputDecision
from ..protocol.tool_call import Json, ModelUsage, PartsOutcome, ToolResult
from ..protocol.user_credential import CredentialField
from ..providers import Model
from ..sandbox import Sandbox
from .call_info import CallInfo
from .retained_results import ResultFormat, RetainedResult
from .tool_catalog import ToolsetView
from .tool_context import ToolContext
from .tool_definition import Tool

CHILD_NAME: Final = re.compile(r"[A-Za-z0-9_.:#\[\]-]{1,80}")
"""The names that an orchestration tool may give its child calls."""


class RateState(msgspec.Struct, frozen=True):
    """The rate limit of a source for one principal: calls ``per_minute`` on average, in bursts of up to ``burst``."""

    per_minute: int
    burst: int
    tokens: int
    """The number of calls that could start now."""
    wait_ms: int
    """How long a new call would wait for its token."""


class EarlierSteps(NamedTuple):
    """The calls and requests of an earlier run of a resumed call."""

    children: Mapping[str, tuple[str, bytes]] = {}
    """Its child calls by name: the tool and the digest of the arguments (``arguments_digest``)."""
    decided: frozenset[str] = frozenset()
    """The ids of its requests, without those of its children, on which a person has decided."""


class LookupContext(ToolContext, Protocol):
    """For tools that look up the session's tools and the principal's calls and results."""

    @property
    def toolset_view(self) -> ToolsetView:
        """The tools that the call's session may call: its toolset, their search index and their stubs."""
        ...

    def find_tool(self, name: str) -> Tool:
        """The tool with this name that the call's session may call.

        Raises:
            ToolNotFoundError: the toolset does not contain it; the message lists similar names.
        """
        ...

    async def call_hidden(
        self, tool: Tool, arguments: Mapping[str, Json], *, name: str, daily_budget: Mapping[str, float]
    ) -> ToolResult:
        """Call a tool that is in no catalog, as a child call with this name; the result is an error if it fails. All
        such calls of the tool, of all principals, may together spend at most ``daily_budget`` per day, by currency.
        While the child runs, this call holds no permit.
        """
        ...

    async def look_up_call(self, call_id: str) -> CallInfo:
        """The state of a call of this principal, from any session.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        ...

    async def cancel_call(self, call_id: str) -> bool:
        """Cancel a call of this principal. Returns False if no call with this id is running or paused, or if the call
        is ending already.

        Raises:
            ServiceUnavailableError: the database cannot be read or written.
        """
        ...

    async def decide(self, call_id: str, decisions: Sequence[tuple[str, InputDecision]]) -> list[str]:
        """Record decisions, by request id, on requests of a paused call of this principal: all or none. After the last
        decision, the call runs again. Repeating a decision has no effect. Returns the ids of the requests that are
        still open.

        Raises:
            NotFoundError: the principal has no such call.
            InvalidArgumentsError: a request does not exist or has another decision, or the decision does not fit it.
            ServiceUnavailableError: the database cannot be read or written.
        """
        ...

    async def read_result(self, handle: str) -> Json:
        """The principal's retained result with this handle.

        Raises:
            NotFoundError: there is no such result.
            ResultExpiredError: its retention has passed, or newer results took its space.
            ServiceUnavailableError: the disk cannot be read.
        """
        ...

    @property
    def has_explicit_timeout(self) -> bool:
        """Whether the caller set this call's timeout; otherwise the tool's default applies."""
        ...

    @property
    def max_answer_bytes(self) -> int:
        """The largest answer that is sent, text and data together. A larger one spills to a file."""
        ...

    def report_shaping(self, report: Mapping[str, Json]) -> None:
        """Report in the answer's metadata how its value was shaped."""
        ...


class RunSpending(Protocol):
    """The spending of a call and all its descendants, including running ones and those of earlier runs."""

    @property
    def usage_by_model(self) -> tuple[ModelUsage, ...]:
        """The exact bill, one entry per model. Simulated requests cost nothing."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers."""
        ...

    @property
    def spent(self) -> Mapping[str, float]:
        """Money by currency, as the limits count it: simulated requests at their list price."""
        ...

    @property
    def left_tokens(self) -> int | None:
        """The tokens that this call and its parents have neither used nor reserved; None without such a limit."""
        ...

    @property
    def left(self) -> Mapping[str, float]:
        """The money by currency that this call and its parents have neither spent nor reserved."""
        ...


class OrchestrationContext(LookupContext, Protocol):
    """For orchestration tools, which are made with ``@tool(orchestration=True)``."""

    @property
    def sandbox(self) -> Sandbox:
        """Runs programs."""
        ...

    async def call(
        self,
        tool: str | Tool,
        arguments: Mapping[str, Json],
        *,
        name: str,
        timeout_s: float | None = None,
        journal: bool = False,
        within: frozenset[str] | None = None,
        on_chunk: Callable[[str], None] | None = None,
    ) -> ToolResult:
        """Run another tool as a child of this call.

        A child takes the same call path as every call and ends with its parent. Its timeout is ``timeout_s`` seconds,
        or its tool's default, and at most the parent's remaining time. ``name`` (``CHILD_NAME``; a step's id, an
        item's index) is unique among the children, and the child's id is ``<this call's id>/<name>``.

        ``tool`` is the name of a tool that this call may call, or a ``Tool``. A ``Tool`` that is not in the daemon's
        registry is a hidden tool: no client lists, finds or calls it, and neither the toolset nor ``within`` limits
        who may call it; everything else on the call path applies.

        ``journal``: the child is journalled even if its tool is local, so a resumed run returns its stored result, as
        long as it has the same tool name and arguments, even if the tool has gone or changed since. If the result has
        expired, the child results in ``RESULT_EXPIRED``. Its tool does not run again, because it might answer
        differently.

        ``within``: the names of the tools that the child and its descendants may find and call, among those that this
        call may call. It does not apply to ``tool`` itself.

        ``on_chunk`` gets the text that the child streams, in order, on the event loop, and must not block or raise;
        the child's ``streaming`` is then true. Without it, the child's stream is dropped. A stored result streams
        nothing.

        Returns its result: outputs, or the error, for example for an unknown tool or invalid arguments. A result with
        ``metadata.replayed`` was stored by a resumed call; the tool did not run again.

        Raises:
            asyncio.CancelledError: this call is ending. The child has ended.
            CallPausedError: the child waits for a person. Unless this call catches it, it pauses as well. The ids of
                its requests begin with the child's name and a slash.
            ValueError: ``name`` is invalid or was used before.
        """
        ...

    @property
    def resumed(self) -> bool:
        """Whether this call continues an earlier run, after a pause, a restart or ``resume``."""
        ...

    @property
    def will_resume(self) -> bool:
        """Whether this call, which is being cancelled, will run again from here after a restart."""
        ...

    @property
    def cancel_requested(self) -> bool:
        """Whether a caller or an operator has cancelled this call or a parent. False for deadlines, lost connections
        and shutdowns.
        """
        ...

    def decision(self, request_id: str) -> InputDecision | None:
        """The decision on a request with which this call paused (``CallPausedError``); None if the call has not paused
        with this request, or if the request is still open.
        """
        ...

    def needed_credentials(self, tool: str) -> tuple[CredentialField, ...]:
        """The caller's credentials that a tool needs; none if this call may not call a tool of this name."""
        ...

    async def missing_credential(self, wanted: CredentialField) -> str | None:
        """A text that tells where to enter a credential; None if the credential is stored.

        Raises:
            ServiceUnavailableError: the vault cannot be read.
        """
        ...

    async def earlier_steps(self) -> EarlierSteps:
        """The steps of earlier runs of this call, if it is resumed, for a tool that checks whether it repeats them.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        ...

    async def limit_spending(
        self,
        owner: str,
        *,
        amounts: Mapping[str, float] | None = None,
        max_tokens: int | None = None,
        daily: Mapping[str, float] | None = None,
        models: Iterable[Model] = (),
    ) -> RunSpending:
        """Limit the future spending of this call and all its descendants at vendors; returns their bill.

        Before each request, its estimated tokens and cost (its prompt, and ``max_tokens`` or a typical answer) must fit
        into the rest of ``amounts`` (money by currency) and ``max_tokens`` of this call and of each call around it. So
        an agent that is called by another agent shares the rest of its limits. Otherwise the request is not sent, and
        its call fails with ``RATE_LIMITED``, which is retryable only while other requests have reserved the rest. An
        answer may be longer than estimated, so the last answer can exceed a limit; no request follows it.

        ``daily`` limits the cost per day of all runs of ``owner``, of all principals; it survives a restart.
        ``owner``, an agent's name, appears in errors, and its calls must be those of the tool with this name.

        ``models`` are the models that the run will ask. With ``amounts`` or ``daily``, a model without a price in these
        currencies is refused at once, and any other such model before its first request.

        In a resumed call, the earlier spending of its run counts too, except for requests that a crash interrupted.

        Raises:
            ServiceUnavailableError: a model's cost cannot be counted, and the message names the setting; or the
            database cannot be read.
            RateLimitedError: as for ``ServiceUnavailableError``, for ``daily``.
            RuntimeError: this call has limited its spending before.
        """
        ...

    async def resume(self, call_id: str) -> None:
        """Resume an earlier call of this tool and principal, up to seven days after it: a child that ended in that
        call under the same name does not run again; its stored result is returned.

        Results of local tools are not stored, so those children run again. A child that was interrupted results in
        ``OUTCOME_UNKNOWN``; if its tool is idempotent, it runs again. A child that succeeded with other arguments
        results in ``REQUEST_ID_CONFLICT``. To retry a child that failed, give it a new name. A child with failed parts
        runs again under its own name, and resumes: its parts that ended do not run again.

        Raises:
            NotFoundError: there is no such call of this tool, or it belongs to another principal.
            RequestIdConflictError: it is still running, or another call has resumed it.
            ServiceUnavailableError: the journal cannot be read or written.
            RuntimeError: this call has made child calls already.
        """
        ...

    async def retain_result(
        self, value: Json, rows: list[Json] | None, file_format: ResultFormat, *, name: str | None = None
    ) -> RetainedResult:
        """Write ``rows``, or ``value`` if they are None, to a file that ``read_result`` finds by its handle: this
        call's id, or that of its child ``name``.

        Raises:
            ResultTooLargeError: it exceeds the limit of all retained results together.
            ServiceUnavailableError: the disk cannot be written.
        """
        ...

    async def rate_state(self, tool: Tool) -> RateState | None:
        """The rate limit of the tool's source for this principal; None if the source has none."""
        ...

    def report_parts(self, parts: PartsOutcome) -> None:
        """Report in the answer's metadata how the parts of this call ended, for the calls that contain this call."""
        ...

    @property
    def detached(self) -> bool:
        """Whether this is a detached call: no client waits for its answer."""
        ...

    async def detach(self, *, changed: Mapping[str, Json], timeout_s: float) -> str:
        """Run this tool once more as a detached call, with the same arguments except those in ``changed``, and
        ``timeout_s`` seconds from now. It has the same principal and toolset.

        Returns the call's id after the call is persisted: if the daemon stops before the call has ended, the call
        resumes at the next start.

        Raises:
            OverCapacityError: the principal has as many detached calls as it may.
            ServiceUnavailableError: the journal cannot be written, or the daemon is shutting down.
            InvalidArgumentsError: an agent or ``within`` limits this call; a detached call would outlive that limit.
            RuntimeError: this call is detached itself.
        """
        ...
