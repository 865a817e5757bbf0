"""A provider: checks the question, keeps the deadline, reads the answer."""

from dataclasses import replace
from typing import Any, Protocol

import structlog

from ..protocol.error_codes import CallError
from .completion import Completion, CompletionRequest, Delta, OnDelta
from .completion_parsing import CompletionAssembly, read_answer
from .model_listing import ModelListing
from .request_body import Body
from .request_check import check
from .response_headers import shown_headers
from .token_count import TokenCountApi, TokenCounter
from .transport_loader import TransportLoader
from .vendor_exchange import VendorExchange, within
from .vendor_files import FileRules, VendorFiles
from .vendor_search import Searching, VendorSearch
from .vendor_transport import plan_attempts

_log = structlog.get_logger(__name__)


class MakeBody(Protocol):
    """The vendor's form of a question.

    Raises:
        InvalidArgumentsError: the vendor has no form for it.
    """

    def __call__(self, request: CompletionRequest, *, stream: bool) -> Body: ...


class VendorProvider:
    """A ``Provider`` for either vendor, with its ``Abilities``: what they differ in is handed in."""

    def __init__(
        self,
        opening: TransportLoader,
        make_body: MakeBody,
        *,
        files: FileRules | None = None,
        counting: TokenCountApi | None = None,
        searching: Searching | None = None,
    ) -> None:
        self.name: str = opening.vendor.name
        self.label = opening.vendor.label
        self.simulated = opening.access.simulated
        self._opening = opening
        self._make_body = make_body
        exchange = VendorExchange(opening)
        self.models = ModelListing(exchange)
        self.files = None if files is None else VendorFiles(exchange, files)
        self.tokens = None if counting is None else TokenCounter(exchange, counting, self.preview)
        self.search = None if searching is None else VendorSearch(exchange, searching)

    def __repr__(self) -> str:
        return f"<VendorProvider {self.name} over {self.transport_name}{' (simulated)' if self.simulated else ''}>"

    @property
    def transport_name(self) -> str:
        return self._opening.name

    def preview(self, request: CompletionRequest, *, stream: bool = False) -> Body:
        """The JSON body that ``complete`` would send. Sends nothing.

        The GLM SDKs change a temperature of 0 or 1 on the way (docs/providers.md, What is sent).

        Raises:
            InvalidArgumentsError: the model or its vendor cannot do what is asked.
        """
        check(request)
        return self._make_body(request, stream=stream)

    async def complete(
        self, request: CompletionRequest, *, timeout_s: float, on_delta: OnDelta | None = None
    ) -> Completion:
        body = self.preview(request, stream=on_delta is not None)
        async with within(self._opening.vendor, timeout_s) as watch:
            road = await self._opening.road()
            attempts = plan_attempts(watch.left_s, request.model.attempt_timeout_s)
            if on_delta is None:
                document, headers = await road.ask(body, attempts)
                completion = read_answer(document, request.model)
            else:
                assembly = CompletionAssembly(request.model)

                def read(chunk: Any) -> Delta | None:
                    watch.heard()
                    return assembly.add(chunk)

                headers = await road.stream(body, attempts, read, on_delta)
                completion = assembly.completion()
            return replace(completion, headers=shown_headers(headers, self._secret))

    @property
    def _secret(self) -> str:
        return self._opening.access.api_key.get_secret_value()

    async def warm_up(self) -> None:
        try:
            await self._opening.road()
        except CallError as error:
            _log.warning("provider cannot be opened", provider=self.name, error=error.message)

    async def close(self) -> None:
        await self._opening.close()
