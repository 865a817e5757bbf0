"""Makes the embeddings that documents wait for, and those of questions, within calls: each is charged to its caller."""

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
"""Chunks of one request: half of what GLM accepts, the fewest of the vendors in the catalog."""
MAX_BATCH_CHARS: Final = 32_000
"""Their characters: some 8,000 tokens, so that no vendor refuses the request as too long."""


class QuestionVector(NamedTuple):
    """The embedding of a question."""

    model: str
    vector: bytes


class DocumentEmbedding:
    """Embeds documents. Of each scope, one call at a time does."""

    def __init__(self, index: KnowledgeIndex) -> None:
        self._index = index
        self._locks: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()

    async def embed_waiting(self, scope: Scope, name: str, context: ToolContext) -> int:
        """Make all embeddings of this model that documents of the scope wait for; returns how many chunks had none.

        Each batch is stored at once, so an interrupted call loses one request at most.

        Raises:
            CallError: the vendor's error, or the budget's; what was made before is stored.
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
            CallError: it is unknown, or makes no embeddings.
        """
        return _embedding_model(name, context).id

    async def question(self, text: str, name: str, context: ToolContext) -> QuestionVector:
        """The embedding of a question.

        Raises:
            CallError: the vendor's error, or the budget's.
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
    """The first chunks, one at least, that fit into a request."""
    batch: list[WaitingChunk] = []
    chars = 0
    for chunk in waiting:
        chars += len(_text_of(chunk))
        if batch and chars > MAX_BATCH_CHARS:
            break
        batch.append(chunk)
    return batch


def _text_of(chunk: WaitingChunk) -> str:
    """What is embedded: a passage alone often does not say what it is about."""
    return "\n".join(filter(None, (chunk.title, chunk.heading, chunk.text)))


async def _packed(answer: Embeddings) -> list[bytes]:
    return await asyncio.to_thread(_pack, answer)


def _pack(answer: Embeddings) -> list[bytes]:
    return [array("f", (float(number) for number in vector)).tobytes() for vector in answer.vectors]


def reason_of(error: CallError) -> str:
    """Why there are no embeddings, for an answer."""
    return error.message.rstrip(".")
