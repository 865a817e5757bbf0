"""The provider, for every vendor: checks the request, enforces the deadline, and parses the response."""

from dataclasses import replace
from typing import Any, Protocol

import structlog

from ..protocol.error_codes import CallError
from .completion import Completion, CompletionRequest, Delta, OnDelta
from .completion_parsing import CompletionAssembly, read_answer
from .embedding import EmbeddingRequest, Embeddings
from .model_details import ModelDetails
from .model_listing import ModelListing
from .request_body import Body
from .request_check import check, check_results
from .response_headers import shown_headers
from .token_count import TokenCountApi, TokenCounter
from .transport_loader import TransportLoader
from .usage_parsing import dollars
from .vendor_dialect import COMPATIBLE, Dialect
from .vendor_embeddings import VendorEmbeddings
from .vendor_exchange import VendorExchange, exchange_deadline
from .vendor_files import FileRules, VendorFiles
from .vendor_search import SearchApi, VendorSearch
from .vendor_transport import TransportErrors, plan_attempts

_log = structlog.get_logger(__name__)


class MakeBody(Protocol):
    """Converts a request to the vendor's JSON body.

    Raises:
        InvalidArgumentsError: the vendor does not support the request.
    """

    def __call__(self, request: CompletionRequest, *, stream: bool) -> Body: ...


class VendorProvider:
    """Implements ``Provider`` for every vendor. The constructor's parameters are the differences between vendors."""

    def __init__(
        self,
        loader: TransportLoader,
        make_body: MakeBody,
        *,
        files: FileRules | None = None,
        token_count: TokenCountApi | None = None,
        search: SearchApi | None = None,
        dialect: Dialect = COMPATIBLE,
    ) -> None:
        self.name: str = loader.vendor.name
        self.label = loader.vendor.label
        self.simulated = loader.access.simulated
        self._loader = loader
        self._make_body = make_body
        self._dialect = dialect
        exchange = VendorExchange(loader)
        source = dialect.details
        details = None if source is None else ModelDetails(loader.vendor, loader.access, source)
        self.models = ModelListing(exchange, details)
        self._embeddings = VendorEmbeddings(exchange, TransportErrors(loader.vendor, loader.access), dialect)
        self.files = None if files is None else VendorFiles(exchange, files)
        self.tokens = None if token_count is None else TokenCounter(exchange, token_count, self.preview)
        self.search = None if search is None else VendorSearch(exchange, search)

    def __repr__(self) -> str:
        return f"<VendorProvider {self.name} over {self.transport_name}{' (simulated)' if self.simulated else ''}>"

    @property
    def transport_name(self) -> str:
        return self._loader.name

    def preview(self, request: CompletionRequest, *, stream: bool = False) -> Body:
        """Returns the JSON body that ``complete`` would send. Sends nothing.

        The GLM SDKs change a temperature of 0 or 1 before sending (docs/providers.md, What is sent).

        Raises:
            InvalidArgumentsError: the model or its vendor does not support the request.
        """
        check(request)
        return self._make_body(request, stream=stream)

    async def complete(
        self, request: CompletionRequest, *, timeout_s: float, on_delta: OnDelta | None = None
    ) -> Completion:
        check_results(request.messages)
        body = self.preview(request, stream=on_delta is not None)
        async with exchange_deadline(self._loader.vendor, timeout_s) as watch:
            transport = await self._loader.transport()
            attempt_s = request.model.timeout_s or self._loader.vendor.attempt_timeout_s
            attempts = plan_attempts(watch.remaining_s, attempt_s)
            if on_delta is None:
                document, headers = await transport.ask(body, attempts)
                completion = read_answer(document, request.model, cost_in_usage=self._dialect.cost_in_usage)
                if (name := self._dialect.cost_header) is not None and (cost := dollars(headers.get(name))) is not None:
                    completion = replace(completion, cost=cost)
            else:
                assembly = CompletionAssembly(request.model, cost_in_usage=self._dialect.cost_in_usage)

                def read(chunk: Any) -> Delta | None:
                    watch.note_activity()
                    return assembly.add(chunk)

                headers = await transport.stream(body, attempts, read, on_delta)
                completion = assembly.completion()
            return replace(completion, headers=shown_headers(headers, self._secret))

    async def embed(self, request: EmbeddingRequest, *, timeout_s: float) -> Embeddings:
        return await self._embeddings.embed(request, timeout_s=timeout_s)

    @property
    def _secret(self) -> str:
        return self._loader.access.api_key.get_secret_value()

    async def warm_up(self) -> None:
        try:
            await self._loader.transport()
        except CallError as error:
            _log.warning("vendor transport failed to load", provider=self.name, error=error.message)

    async def close(self) -> None:
        await self._loader.close()
        await self.models.close()
