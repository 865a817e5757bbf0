"""The interfaces of a provider: completions and its other capabilities."""

from typing import Protocol

from .completion import Completion, CompletionRequest, OnDelta
from .embedding import EmbeddingRequest, Embeddings
from .model_listing import ModelListing
from .request_body import Body
from .token_count import TokenCounter
from .vendor_files import VendorFiles
from .vendor_search import VendorSearch


class ProviderCapabilities(Protocol):
    """One object per capability, or None if the vendor does not have it.

    Like ``Provider.complete``, each method makes one vendor request, takes ``timeout_s`` for all attempts together, and
    raises ``CallError``. On cancellation it returns once the SDK's work has ended.
    """

    @property
    def models(self) -> ModelListing: ...

    @property
    def tokens(self) -> TokenCounter | None: ...

    @property
    def search(self) -> VendorSearch | None:
        """Web search without a model. With a model, use ``WebSearch``, a tool of the request."""
        ...

    def preview(self, request: CompletionRequest, *, stream: bool = False) -> Body:
        """Returns the JSON body that ``complete`` would send. Sends nothing.

        Raises:
            InvalidArgumentsError: the model or its vendor does not support the request.
        """
        ...


class Provider(ProviderCapabilities, Protocol):
    """The client of one vendor: converts a neutral request to one SDK call. Independent of tools and sessions."""

    name: str
    """The vendor's name, such as ``kimi``."""
    label: str
    """The vendor's display name, such as ``Kimi (Moonshot)``."""
    simulated: bool

    @property
    def files(self) -> VendorFiles | None:
        """The files of the account. Calls use them through ``ToolContext.vendor_files``, which knows their owners."""
        ...

    @property
    def transport_name(self) -> str:
        """The vendor transport for display, such as ``openai 3.54.0``, ``zhipuai 2.1.5`` or ``httpx 0.28.1``."""
        ...

    async def complete(
        self, request: CompletionRequest, *, timeout_s: float, on_delta: OnDelta | None = None
    ) -> Completion:
        """Makes one completion, streaming if ``on_delta`` is given. ``timeout_s`` covers all attempts together.

        On cancellation it closes the vendor's stream and returns only once the SDK's work has ended. So the caller
        holds its permit until then.

        Raises:
            CallError: a subclass for the vendor's failure (docs/protocol.md, Error codes).
        """
        ...

    async def embed(self, request: EmbeddingRequest, *, timeout_s: float) -> Embeddings:
        """Makes one embedding per input. Time and cancellation are as in ``complete``.

        Raises:
            CallError: a subclass for the vendor's failure, or for a model that does not make embeddings.
        """
        ...

    async def warm_up(self) -> None:
        """Imports the SDK in a thread. Optional, because ``complete`` imports it if necessary. Never raises."""
        ...

    async def close(self) -> None:
        """Closes connections. Does not wait for threads of the vendor's SDK."""
        ...
