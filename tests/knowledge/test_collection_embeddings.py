"""Collections with embeddings, which the simulator makes: they depend on the words alone, not on their meaning."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from tests.simulated_daemon import TOKEN, simulated_environment
from tests.waiting import until
from toold.client import MCPWebSocketClient
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.knowledge.knowledge_index import KnowledgeIndex
from toold.knowledge.knowledge_records import Scope
from toold.knowledge.knowledge_settings import CollectionSettings
from toold.protocol.tool_call import LOCAL
from toold.providers.simulator import Simulator

from .conftest import OVEN, Bakery

pytestmark = pytest.mark.asyncio(loop_scope="module")

EMBEDDED: Final = """
[knowledge.handbook]
folder = "handbook"
refresh_s = 0.1
embedding_model = "embedding-3"

[knowledge.notes]
embedding_model = "embedding-3"
"""
NOTES: Final = Scope("notes", "local")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bakery]:
    """A bakery whose documents have embeddings."""
    directory = tmp_path_factory.mktemp("embedded")
    (directory / "toold.toml").write_text(EMBEDDED)
    (directory / "handbook").mkdir()
    (directory / "handbook" / "ovens.md").write_text(OVEN)
    async with Simulator() as simulator:
        settings = load_settings({}, env=simulated_environment(directory / "state", simulator), cwd=directory)
        async with running(settings) as daemon, MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
            made = Bakery(daemon, client, simulator, directory)
            await until(made.is_embedded)
            yield made


async def test_a_folder_gets_embeddings_by_calls_of_the_daemon(embedded: Bakery) -> None:
    """The daemon makes them by a recorded call of ``knowledge_embed`` as the operator's principal."""
    answer = await embedded.call("knowledge", query="ashes")
    assert answer["searched"] == "full text and embeddings"
    assert answer["passages"][0]["ranks"] == {"text": 1, "embeddings": 1}
    ended = await embedded.daemon.view.ended(LOCAL, 100, tool="knowledge_embed")
    assert [(call["outcome"], call["model"]) for call in ended] == [("ok", "embedding-3")]


async def test_an_added_document_gets_embeddings_in_its_call(embedded: Bakery) -> None:
    """Embeddings are made in the call that adds the document; a removed one is found by neither search."""
    added = await embedded.call("knowledge_add", name="bun", text="A bun is small.")
    assert added["notes"] == []
    answer = await embedded.call("knowledge_notes", query="bun")
    assert answer["passages"][0]["ranks"] == {"text": 1, "embeddings": 1}
    await embedded.call("knowledge_remove", names=["bun"])
    assert (await embedded.call("knowledge_notes", query="bun small"))["passages"] == []


async def test_without_the_vendor_full_text_is_searched(embedded: Bakery) -> None:
    """The answer says why there is no embedding; a document that was added meanwhile waits, and is completed later."""
    embedded.simulator.plan("glm", "embeddings", "status=400")
    added = await embedded.call("knowledge_add", name="roll", text="A roll is round.")
    assert "waits for its embeddings" in added["notes"][0]
    answer = await embedded.call("knowledge_notes", query="roll")
    assert answer["searched"] == "full text"
    assert answer["notes"] == ["notes: 1 documents wait for embeddings; they are found by full text."]
    assert answer["passages"][0]["document"] == "roll"
    assert (await embedded.call("knowledge_embed", collection="notes"))["chunks"] == 1
    embedded.simulator.plan("glm", "embeddings", "status=400")
    answer = await embedded.call("knowledge_notes", query="roll")
    assert "full text only, because embedding-3 returned no embedding" in answer["notes"][0]
    assert answer["passages"][0]["document"] == "roll"


async def test_a_document_is_searched_by_embeddings_once_it_has_all(tmp_path: Path) -> None:
    """What an interrupted call stored stays; the rest continues; another model begins again."""
    index = KnowledgeIndex(tmp_path / "knowledge.db")
    settings = CollectionSettings(chunk_size=100, chunk_overlap=0)
    await index.put(NOTES, settings, "long", " ".join(f"Sentence {number} of the document." for number in range(8)))
    first, *rest = await index.waiting_chunks(NOTES, "m", 10)
    vector = bytes.fromhex("0000803f00000000")
    await index.store_vectors(NOTES, "m", {first.id: vector})
    await index.close()  # as after a crash
    index = KnowledgeIndex(tmp_path / "knowledge.db")
    assert await index.embedded_and_waiting(NOTES, "m") == (0, 1)
    assert await index.waiting_chunks(NOTES, "m", 10) == rest
    await index.store_vectors(NOTES, "m", {chunk.id: vector for chunk in rest})
    assert await index.embedded_and_waiting(NOTES, "m") == (1, 0)
    found = await index.search([NOTES], "nothing", 9, {NOTES: ("m", vector)})
    assert len(found) == len(rest) + 1
    assert await index.search([NOTES], "nothing", 9, {NOTES: ("m", vector + vector)}) == []
    assert await index.waiting_owners("notes", "m") == []
    assert await index.waiting_owners("notes", "other") == ["local"]
    assert len(await index.waiting_chunks(NOTES, "other", 10)) == len(rest) + 1
    assert await index.embedded_and_waiting(NOTES, "other") == (0, 1)
    await index.close()
