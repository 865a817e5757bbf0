"""Makes the embeddings of waiting documents and of questions, within calls, so that each caller pays for its own."""

import asyncio
from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from ..protocol.error_codes import CallError, ServiceUnavailableError
from ..providers import EmbeddingRequest, Embeddings, Model
from ..tools import ToolContext
from .knowledge_index import KnowledgeIndex
from .knowledge_records import Scope, WaitingChunk

MAX_BATCH_CHUNKS: Final = 32
"""The maximum number of chunks in one request: half of GLM's limit, which is the lowest of the vendors in the
catalog.
"""
MAX_BATCH_CHARS: Final = 32_000
"""The maximum characters of these chunks: some 8,000 tokens, so that vendors do not refuse the request as too long."""


class QuestionVector(NamedTuple):
    """The embedding of a question."""

    model: str
    vector: bytes


class DocumentEmbedding:
    """Embeds documents, one call at a time per scope."""

    def __init__(self, index: KnowledgeIndex) -> None:
        self._index = index
        self._locks: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()

    async def embed_waiting(self, scope: Scope, name: str, context: ToolContext) -> int:
        """Make the missing embeddings of this model for documents of the scope; returns the number of new embeddings.

        Each batch is stored at once, so an interrupted call loses at most one request.

        Raises:
            CallError: the vendor failed, or the budget is spent. The embeddings so far are stored.
        """
        model = _embedding_model(name, context)
        lock = self._locks.get(scope)
        if lock is None:
            self._locks[scope] = lock = asyncio.Lock()
        made = 0
        async with lock:
            while batch := _batch(await self._index.waiting_chunks(scope, model.id, MAX_BATCH_CHUNKS)):
                answer = await context.embed(EmbeddingRequest(model, tuple(map(_text_of, batch))))
                vectors = dict(zip((chunk.id for chunk in batch), await _packed(answer), strict=True))
                await self._index.store_vectors(scope, model.id, vectors)
                made += len(batch)
                context.progress(f"embeddings of {made:,} chunks", made)
        return made

    def model_id(self, name: str, context: ToolContext) -> str:
        """The full name of a model.

        Raises:
            CallError: the model is unknown, or makes no embeddings.
        """
        return _embedding_model(name, context).id

    async def question(self, text: str, name: str, context: ToolContext) -> QuestionVector:
        """The embedding of a question.

        Raises:
            CallError: the vendor failed, or the budget is spent.
        """
        model = _embedding_model(name, context)
        answer = await context.embed(EmbeddingRequest(model, (text,)))
        [vector] = await _packed(answer)
        return QuestionVector(model.id, vector)


def _embedding_model(name: str, context: ToolContext) -> Model:
    model = context.daemon.catalog.resolve(name)
    if model.kind == "chat":
        raise ServiceUnavailableError(f"{model.id} makes completions, not embeddings.", transient=False)
    return model


def _batch(waiting: Sequence[WaitingChunk]) -> list[WaitingChunk]:
    """The first chunks that fit into a request, at least one."""
    batch: list[WaitingChunk] = []
    chars = 0
    for chunk in waiting:
        chars += len(_text_of(chunk))
        if batch and chars > MAX_BATCH_CHARS:
            break
        batch.append(chunk)
    return batch


def _text_of(chunk: WaitingChunk) -> str:
    """The text to embed. It includes title and heading, because a passage alone often lacks its subject."""
    return "\n".join(filter(None, (chunk.title, chunk.heading, chunk.text)))


async def _packed(answer: Embeddings) -> list[bytes]:
    return await asyncio.to_thread(_pack, answer)


def _pack(answer: Embeddings) -> list[bytes]:
    return [array("f", (float(number) for number in vector)).tobytes() for vector in answer.vectors]


def reason_of(error: CallError) -> str:
    """Why there are no embeddings, as a text for an answer."""
    return error.message.rstrip(".")
