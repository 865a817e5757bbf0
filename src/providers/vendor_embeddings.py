"""Embeddings of vendors that use OpenAI's form (platform.openai.com/docs/api-reference/embeddings)."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import msgspec

from ..protocol.json_pieces import LONG_BYTES, TooComplexError, decode_in_pieces
from . import vendor_errors
from .embedding import EmbeddingRequest, Embeddings, embedding_body, read_embeddings
from .response_values import InvalidResponseError
from .vendor_dialect import Dialect
from .vendor_errors import VendorObjectNotFoundError
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiAnswer, ApiRequest, TransportErrors

P = ParamSpec("P")
T = TypeVar("T")

PATH: Final = "/embeddings"


class VendorEmbeddings:
    """``POST …/embeddings`` of one vendor. Long requests and answers are handled in threads."""

    def __init__(self, exchange: VendorExchange, errors: TransportErrors, dialect: Dialect) -> None:
        self._exchange = exchange
        self._errors = errors
        self._dialect = dialect

    async def embed(self, request: EmbeddingRequest, *, timeout_s: float) -> Embeddings:
        """Implements ``Provider.embed``."""
        body = await _in_thread(
            sum(map(len, request.inputs)), embedding_body, request, self._dialect, self._exchange.vendor.label
        )
        sent = ApiRequest(method="POST", path=PATH, body=body)
        try:
            answer = await self._exchange.send(sent, timeout_s=timeout_s, attempt_s=request.model.timeout_s)
        except VendorObjectNotFoundError as error:
            error.message = f"{error.message} It may not make embeddings, or may lack {request.model.id}."
            raise
        return await _in_thread(len(answer.content), self._read, answer, request)

    def _read(self, answer: ApiAnswer, request: EmbeddingRequest) -> Embeddings:
        try:
            return read_embeddings(self._document(answer), request, self._dialect, answer.headers)
        except InvalidResponseError as error:
            raise vendor_errors.not_understood(self._exchange.vendor, str(error)) from error

    def _document(self, answer: ApiAnswer) -> Any:
        if len(answer.content) <= LONG_BYTES:
            return self._errors.document(answer.content, answer.headers)
        try:
            return self._errors.checked(decode_in_pieces(answer.content, max_values=None))
        except (msgspec.DecodeError, RecursionError, TooComplexError) as error:
            raise self._errors.not_json(error) from error


async def _in_thread(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs work on the event loop if it is short."""
    return await asyncio.to_thread(work, *args, **kwargs) if size > LONG_BYTES else work(*args, **kwargs)
