"""What a vendor offers: completions, and what there is beside them."""

from typing import Protocol

from .completion import Completion, CompletionRequest, OnDelta
from .model_listing import ModelListing
from .request_body import Body
from .token_count import TokenCounter
from .vendor_files import VendorFiles
from .vendor_search import VendorSearch


class ProviderAbilities(Protocol):
    """One object an ability; None where the vendor has none.

    Their methods take ``timeout_s`` for all attempts together and raise ``CallError``, as ``Provider.complete`` does;
    cancelled, they return once the SDK's work has really ended. Each is one request to the vendor.
    """

    @property
    def models(self) -> ModelListing: ...

    @property
    def files(self) -> VendorFiles | None: ...

    @property
    def tokens(self) -> TokenCounter | None: ...

    @property
    def search(self) -> VendorSearch | None:
        """Web search without a model; with one it is a tool of the request (``WebSearch``)."""
        ...

    def preview(self, request: CompletionRequest, *, stream: bool = False) -> Body:
        """The JSON body that ``complete`` would send. Sends nothing.

        Raises:
            InvalidArgumentsError: the model or its vendor cannot do what is asked.
        """
        ...


class Provider(ProviderAbilities, Protocol):
    """One vendor's door: turns a neutral request into one SDK call. It knows no tool and no session."""

    name: str
    """``kimi`` or ``glm``."""
    label: str
    """The vendor's name for people, such as ``Kimi (Moonshot)``."""
    simulated: bool

    @property
    def transport_name(self) -> str:
        """What carries the call, such as ``openai 3.54.0``, ``zhipuai 2.1.5`` or ``httpx 0.28.1``; for people."""
        ...

    async def complete(
        self, request: CompletionRequest, *, timeout_s: float, on_delta: OnDelta | None = None
    ) -> Completion:
        """Ask once, streaming where ``on_delta`` is given, within ``timeout_s`` seconds for all attempts together.

        When cancelled it closes the vendor's stream, and returns only once the SDK's work has really ended: who
        holds a permit for it holds it for as long.

        Raises:
            CallError: a subclass by what the vendor said (docs/protocol.md, Error codes).
        """
        ...

    async def warm_up(self) -> None:
        """Import the SDK in a thread; ``complete`` waits for it by itself. Never raises."""
        ...

    async def close(self) -> None:
        """Close connections. Does not wait for threads that the vendor's SDK holds."""
        ...
