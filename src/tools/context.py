"""What a tool gets from the daemon while it runs. A tool knows no socket, no session store and no provider object."""

from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from ..protocol.calls import ClientInfo, Principal
from ..providers import Abilities, Catalogue, Completion, CompletionRequest, OnDelta, ProviderName
from .conversation import Conversation
from .files import FileAccess

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class DaemonView(Protocol):
    """What ``status``, ``listmodels`` and their like may know of the daemon. Reads only; never takes a permit."""

    @property
    def catalogue(self) -> Catalogue: ...

    def default_model(self) -> str:
        """The model id that ``chat`` uses when the caller names none.

        Raises:
            ServiceUnavailableError: no provider is configured; the message says which keys to set.
        """
        ...

    def providers(self) -> list[dict[str, Any]]:
        """One object a provider: name, label, available, simulated, road, missing.

        ``missing`` says what to set, where it is not available; else it is empty.
        """
        ...

    async def status(self, *, recent: int) -> dict[str, Any]:
        """Version, uptime_s, limits and what is in use, connections, providers, sums of calls and the last ones."""
        ...


class Operation(Protocol[T_co]):
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

    def abilities(self, provider: ProviderName) -> Abilities:
        """What a vendor offers beside completions. What sends nothing (``preview``, ``files.check``) is called as it
        is; what sends goes through ``vendor``.

        Raises:
            ServiceUnavailableError: the provider is not configured; the message says what to set.
        """
        ...

    async def vendor(self, provider: ProviderName, operation: Operation[T]) -> T:
        """Send a vendor a request that is no completion, as ``complete`` does: within this call's deadline and the
        provider's permits, counted on the call.

        Raises:
            CallError: what the vendor said, or ServiceUnavailableError where the provider is not configured.
        """
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
