"""What a tool gets from the daemon while it runs. A tool knows no socket, no session store and no provider object."""

import re
from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ..protocol.tool_call import ClientInfo, Json, Principal, ToolResult
from ..providers import Completion, CompletionRequest, Model, ModelCatalog, OnDelta, ProviderAbilities, ProviderName
from ..sandbox import Sandbox
from .call_info import CallInfo
from .conversation import Conversation
from .retained_results import ResultFormat, RetainedResult
from .workspace_files import FileAccess

if TYPE_CHECKING:  # a tool is made of functions that take a context
    from .tool import Tool
    from .tool_catalog import ToolsetView

CHILD_NAME: Final = re.compile(r"[A-Za-z0-9_.:#\[\]-]{1,80}")
"""What a child call may be named by the call that makes it."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class DaemonView(Protocol):
    """What ``status``, ``listmodels`` and their like may know of the daemon. Reads only; never takes a permit."""

    @property
    def catalog(self) -> ModelCatalog: ...

    @property
    def simulated(self) -> bool:
        """Whether a simulator answers for any vendor."""
        ...

    def default_model(self) -> str:
        """The model id that ``chat`` uses when the caller names none.

        Raises:
            ServiceUnavailableError: no provider is configured; the message says which keys to set.
        """
        ...

    def providers(self) -> list[dict[str, Any]]:
        """One object a provider: name, label, available, simulated, road, missing, lists_all.

        ``missing`` says what to set, where it is not available; else it is empty. With ``lists_all``, a model that is
        not ``listed`` cannot be asked.
        """
        ...

    def listed(self, model: Model) -> bool | None:
        """Whether the model's vendor lists it for the key in use; None where that is not known."""
        ...

    def health(self) -> dict[str, Any]:
        """Whether calls are taken (``status``: ``ready`` or ``stopping``), and what else is wrong (``problems``)."""
        ...

    async def self_check(self) -> list[dict[str, Any]]:
        """An object for each thing that was looked at: check, ok, status, why, what_to_do. Harmless; asks no vendor."""
        ...

    def running(self, principal: Principal) -> list[dict[str, Any]]:
        """A principal's calls that are not answered yet, the oldest first."""
        ...

    async def ended(
        self, principal: Principal, limit: int, *, tool: str | None = None, outcome: str | None = None
    ) -> list[dict[str, Any]]:
        """A principal's calls that ended last, as the audit keeps them, the last one first; ``outcome`` may be
        ``error`` for every code.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        ...

    async def status(self, *, recent: int, days: int) -> dict[str, Any]:
        """Version, uptime_s, limits and what is in use, connections, providers, budget, sums of calls, what was spent
        on the last ``days`` days, and the ``recent`` last calls.
        """
        ...


class VendorOperation(Protocol[T_co]):
    """One request to a vendor: a method of its abilities, with all but its time given, such as
    ``partial(files.upload, name, content, purpose)``.
    """

    def __call__(self, *, timeout_s: float) -> Awaitable[T_co]: ...


class ToolContext(Protocol):
    """One running call, as its tool sees it."""

    @property
    def call_id(self) -> str: ...

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
        """Whether somebody reads ``stream`` (a client with the feature)."""
        ...

    def remaining(self) -> float:
        """Seconds until this call's deadline; never negative."""
        ...

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """Report what the call is at, ``done`` of ``total`` in whatever unit the message names. Never blocks."""
        ...

    def stream(self, text: str) -> None:
        """Pass a piece of the answer's text to clients that stream. Never blocks."""
        ...

    async def complete(
        self, request: CompletionRequest, *, on_delta: OnDelta | None = None, chosen_because: str | None = None
    ) -> Completion:
        """Ask the model that the request names, within this call's deadline and its provider's permits.

        Usage, cost, provider and time are booked on the call, and why it is this model, where the tool chose it.

        Raises:
            CallError: what the vendor said, or ServiceUnavailableError where the provider is not configured.
        """
        ...

    def abilities(self, provider: ProviderName) -> ProviderAbilities:
        """What a vendor offers beside completions. What sends nothing (``preview``, ``files.check``) is called as it
        is; what sends goes through ``vendor``.

        Raises:
            ServiceUnavailableError: the provider is not configured; the message says what to set.
        """
        ...

    async def vendor(self, provider: ProviderName, operation: VendorOperation[T]) -> T:
        """Send a vendor a request that is no completion, as ``complete`` does: within this call's deadline and the
        provider's permits, counted on the call.

        Raises:
            CallError: what the vendor said, or ServiceUnavailableError where the provider is not configured.
        """
        ...

    def aside(self) -> AbstractAsyncContextManager[None]:
        """For the time of the block the call holds no permit: it waits for somebody else, and is to delay nobody."""
        ...

    def conversation(self, continuation_id: str | None) -> AbstractAsyncContextManager[Conversation]:
        """The principal's conversation of this id, or a new one where it is None, held for the time of the block.

        Where another call holds it, this one waits, within its deadline and without its permits.

        Raises:
            NotFoundError: there is none, or it is another principal's.
            ServiceUnavailableError: conversations cannot be read or stored at present.
            InvalidArgumentsError: at the block's end: its ``state`` is over ``MAX_STATE_BYTES``.
        """
        ...

    def find_tool(self, name: str) -> "Tool":
        """The tool of this name, as the call's session may call it.

        Raises:
            ToolNotFoundError: there is none in its toolset; the message has the names that are close.
        """
        ...

    @property
    def selection(self) -> "ToolsetView":
        """What the call's session may call: with its toolset, its index, and the functions that code calls."""
        ...

    @property
    def sandbox(self) -> Sandbox:
        """Where programs run."""
        ...

    async def call(
        self, tool: str, arguments: Mapping[str, Json], *, name: str, timeout_s: float | None = None
    ) -> ToolResult:
        """Run another tool as a child of this call; for tools that are ``composing``.

        A child goes the road of every call, within this call's time, and ends with it. It has ``timeout_s`` seconds,
        or the time of its tool. ``name`` tells it from this call's other children (``CHILD_NAME``; a step's id, an
        item's index), and its id is ``<this call's id>/<name>``.

        Returns its result: outputs, or the error of whatever went wrong, an unknown tool and wrong arguments
        included. One with ``metadata.replayed`` was not run: it is the result of a call that was taken up.

        Raises:
            asyncio.CancelledError: this call is to end. The child has ended.
            ValueError: ``name`` is none, or was given before.
            RuntimeError: this call's tool is not ``composing``.
        """
        ...

    async def take_up(self, call_id: str) -> None:
        """Go on with an earlier call of this tool and principal, for seven days after it: a child that has ended
        there under the same name is not run again but answered from there.

        Children of local tools are not known there, and run. One that was cut off is ``OUTCOME_UNKNOWN``, unless its
        tool may be called twice: then it runs. One that has a result, and had other arguments, is
        ``REQUEST_ID_CONFLICT``. To have an attempt more of one that failed, give it a name of its own.

        Raises:
            NotFoundError: there is none of this tool, or it is another principal's.
            RequestIdConflictError: it is still under way, or another call goes on with it.
            ServiceUnavailableError: the journal cannot be read or written.
        """
        ...

    async def keep_result(
        self, value: Json, rows: list[Json] | None, file_format: ResultFormat, *, name: str | None = None
    ) -> RetainedResult:
        """Keep ``rows``, or where they are None the one ``value``, as a file that ``read_result`` finds by its handle:
        this call's id, or that of its child ``name``.

        Raises:
            ResultTooLargeError: it is more than all files together may be.
            ServiceUnavailableError: the disk refuses.
        """
        ...

    async def read_result(self, handle: str) -> Json:
        """What the principal has under a handle.

        Raises:
            NotFoundError: nothing, as far as is known.
            ResultExpiredError: it was kept for its time, or until others took its room.
            ServiceUnavailableError: the disk refuses.
        """
        ...

    @property
    def detached(self) -> bool:
        """Whether this call runs apart from whoever made it, and nobody waits for its answer."""
        ...

    async def detach(self, *, changed: Mapping[str, Json], timeout_s: float) -> str:
        """Have the same tool run once more, apart from this call, with its arguments as they were sent but for those
        that are ``changed``; for tools that are ``composing``. It may take ``timeout_s`` seconds from now on.

        Returns the id of the call, which is on the disk by then: it goes on at the daemon's next start, where it has
        not ended before. It is the same session's toolset and principal's.

        Raises:
            OverCapacityError: the principal has as many as it may.
            ServiceUnavailableError: the journal cannot be written, or the daemon goes down.
        """
        ...

    async def look_up(self, call_id: str) -> CallInfo:
        """What is known of a call of the principal's, whichever session made it.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        ...

    def cancel_call(self, call_id: str) -> bool:
        """Tell a call of the principal's to end. False where none of this id runs, or it is ending already."""
        ...

    @property
    def answer_bytes(self) -> int:
        """An answer that is larger when it is sent, text and data together, is kept as a file instead."""
        ...

    def note_shaping(self, report: Mapping[str, Json]) -> None:
        """Say in the answer's metadata what was done to its value."""
        ...

    @property
    def time_was_named(self) -> bool:
        """Whether whoever made this call said how long it may take; else it has the time of its tool."""
        ...
