"""How often a search in a collection finds the right page: by full text, by embeddings, and by both.

The collection is docs/ of this repository. The embeddings are SIMULATED: they depend on the words of a text alone, so
they show that the two rankings are joined well, and not how well a vendor's embeddings find what is worded otherwise.
"""

import argparse
import asyncio
import tempfile
import tomllib
from array import array
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Final, NamedTuple

from toold.knowledge.knowledge_index import KnowledgeIndex
from toold.knowledge.knowledge_records import Scope
from toold.knowledge.knowledge_settings import CollectionSettings
from toold.providers.simulator.simulated_embeddings import DIMENSIONS, vector_of

DOCS: Final = Path(__file__).parents[2] / "docs"
SCOPE: Final = Scope("docs", "")
MODEL: Final = "simulated"
EXCLUDED: Final = frozenset({"knowledge.md", "README.md", "glossary.md", "decisions.md", "limits.md"})
"""The page about collections, and those that are about everything."""
TOP: Final = 5


class JudgedQuestion(NamedTuple):
    """A question and the pages that answer it."""

    text: str
    pages: Sequence[str]


class SearchScore(NamedTuple):
    """How well one kind of search does."""

    found: float
    """The share of questions with a right page in the first ``TOP`` passages."""
    first: float
    """The same for the first passage."""
    reciprocal_rank: float
    """The mean of 1 / the rank of the first right passage among the first ``TOP``."""


def judged_questions() -> list[JudgedQuestion]:
    """The questions of ``questions.toml``."""
    table = tomllib.loads((Path(__file__).parent / "questions.toml").read_text(encoding="utf-8"))
    return [JudgedQuestion(question["text"], question["pages"]) for question in table["question"]]


def simulated_vector(text: str) -> bytes:
    """The simulator's embedding."""
    return array("f", vector_of(text, DIMENSIONS)).tobytes()


async def filled_index(directory: Path) -> KnowledgeIndex:
    """An index of docs/ with simulated embeddings."""
    index = KnowledgeIndex(directory / "knowledge.db")
    settings = CollectionSettings()
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(DOCS).as_posix()
        if name not in EXCLUDED:
            await index.put(SCOPE, settings, name, path.read_text(encoding="utf-8"))
    while waiting := await index.waiting_chunks(SCOPE, MODEL, 200):
        vectors = {chunk.id: simulated_vector(f"{chunk.title}\n{chunk.heading}\n{chunk.text}") for chunk in waiting}
        await index.store_vectors(SCOPE, MODEL, vectors)
    return index


async def score(
    index: KnowledgeIndex, questions: Sequence[JudgedQuestion], kind: str, *, misses: bool = False
) -> SearchScore:
    """The score of ``full text``, ``embeddings`` or ``both``."""
    ranks: list[int | None] = []
    for question in questions:
        vectors = {} if kind == "full text" else {SCOPE: (MODEL, simulated_vector(question.text))}
        words = "" if kind == "embeddings" else question.text
        found = await index.search([SCOPE], words, TOP, vectors)
        pages = [each.passage.document for each in found]
        ranks.append(next((rank for rank, page in enumerate(pages, start=1) if page in question.pages), None))
        if misses and ranks[-1] is None:
            print(f"  {kind}: {question.text!r} found {', '.join(pages)}")
    return SearchScore(
        mean(rank is not None for rank in ranks),
        mean(rank == 1 for rank in ranks),
        mean(1 / rank if rank else 0.0 for rank in ranks),
    )


async def _measure(*, misses: bool) -> None:
    questions = judged_questions()
    with tempfile.TemporaryDirectory() as directory:
        index = await filled_index(Path(directory))
        documents = await index.documents(SCOPE)
        chunks = sum(document.chunks for document in documents.values())
        print(f"{len(questions)} questions, {len(documents)} pages, {chunks:,} chunks, SIMULATED embeddings")
        for kind in ("full text", "embeddings", "both"):
            started = perf_counter()
            result = await score(index, questions, kind, misses=misses)
            per_question_ms = (perf_counter() - started) / len(questions) * 1000
            print(
                f"{kind:11} top {TOP}: {result.found:4.0%}  top 1: {result.first:4.0%}  "
                f"reciprocal rank: {result.reciprocal_rank:.2f}  {per_question_ms:.1f} ms per question"
            )
        await index.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--misses", action="store_true", help="show the questions without a right page")
    asyncio.run(_measure(misses=parser.parse_args().misses))
