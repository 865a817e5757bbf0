"""What a vendor offers beside completions."""

from typing import Protocol

from .completion import CompletionRequest
from .files import Files
from .listing import Listing
from .question import Body
from .search import Search
from .tokens import Tokens


class Abilities(Protocol):
    """One object an ability; None where the vendor has none.

    Their methods take ``timeout_s`` for all attempts together and raise ``CallError``, as ``Provider.complete`` does;
    cancelled, they return once the SDK's work has really ended. Each is one request to the vendor.
    """

    @property
    def models(self) -> Listing: ...

    @property
    def files(self) -> Files | None: ...

    @property
    def tokens(self) -> Tokens | None: ...

    @property
    def search(self) -> Search | None:
        """Web search without a model; with one it is a tool of the request (``WebSearch``)."""
        ...

    def preview(self, request: CompletionRequest, *, stream: bool = False) -> Body:
        """The JSON body that ``complete`` would send. Sends nothing.

        Raises:
            InvalidArgumentsError: the model or its vendor cannot do what is asked.
        """
        ...
