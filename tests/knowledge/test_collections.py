"""Collections of a real daemon: what is found, who finds it, and what becomes of documents."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from tests.tools.agents.hosted import calls, script
from toold.daemon.config.setting_sources import SettingsError, load_settings
from toold.protocol.error_codes import CallError, NotFoundError, RateLimitedError

from .conftest import Bakery

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_passage_has_its_source(bakery: Bakery) -> None:
    """A passage names document, heading, line and a stable id, in the data and in the text."""
    result = await bakery.client.call("knowledge_handbook", {"query": "When do I brush ashes?"})
    assert result.structured["searched"] == "full text"
    [passage] = result.structured["passages"]
    assert passage | {"score": 0, "text": ""} == {
        "id": "handbook:ovens.md#1",
        "collection": "handbook",
        "document": "ovens.md",
        "title": "Ovens",
        "heading": "Ovens",
        "line": 1,
        "score": 0,
        "ranks": {"text": 1},
        "text": "",
    }
    assert "[handbook:ovens.md#1] Ovens" in result.outputs[0]["text"]


async def test_the_folder_is_followed(bakery: Bakery) -> None:
    """A new file is found, a changed one by its new text, and a deleted one not."""
    path = bakery.directory / "handbook" / "sub" / "yeast.md"
    path.parent.mkdir()
    path.write_text("Yeast sleeps in the fridge.")
    await bakery.finds("sleeps", "sub/yeast.md")
    path.write_text("Yeast wakes at thirty degrees.")
    await bakery.finds("wakes", "sub/yeast.md")
    assert await bakery.documents("sleeps") == []
    path.unlink()
    await bakery.gone("wakes")


async def test_secrets_and_links_of_the_folder_are_left_out(bakery: Bakery) -> None:
    """Files that look like secrets, links and binary files are left out; the list says why."""
    outside = bakery.directory / "outside.md"
    outside.write_text("The combination of the safe.")
    handbook = bakery.directory / "handbook"
    (handbook / "safe.md").symlink_to(outside)
    (handbook / "secrets.txt").write_text("The combination of the safe.")
    (handbook / "image.txt").write_bytes(b"combination \0 safe")
    (handbook / "plain.txt").write_text("Combination is not the word.")
    await bakery.finds("combination", "plain.txt")
    assert await bakery.documents("combination safe") == ["plain.txt"]
    listed = await bakery.call("knowledge_list", collection="handbook")
    [collection] = listed["collections"]
    reasons = {entry["file"]: entry["reason"] for entry in collection["left_out"]}
    assert reasons["safe.md"] == "a link"
    assert "looks like a secret" in reasons["secrets.txt"]
    assert "binary" in reasons["image.txt"]


async def test_added_documents_belong_to_their_principal(bakery: Bakery) -> None:
    """Another principal does not find them, nor a collection whose tool its toolset does not have."""
    await bakery.call("knowledge_add", name="recipe", text="Cinnamon rolls need cardamom.")
    assert await bakery.documents("cardamom") == ["recipe"]
    async with bakery.guest() as guest:
        found = await guest.call("knowledge", {"query": "cardamom oven"})
        assert found.structured["passages"] == []
        listed = await guest.call("knowledge_list", {})
        assert [each["collection"] for each in listed.structured["collections"]] == ["notes"]
        with pytest.raises(NotFoundError, match="no collection 'handbook'"):
            await guest.call("knowledge", {"query": "oven", "collections": ["handbook"]})
    await bakery.call("knowledge_remove", names=["recipe"])
    assert await bakery.documents("cardamom") == []


async def test_a_document_is_replaced_by_its_name(bakery: Bakery) -> None:
    """The same document again changes nothing; another text replaces all of it."""
    first = await bakery.call("knowledge_add", name="price.md", text="# Prices\n\nA bun costs two francs.")
    again = await bakery.call("knowledge_add", name="price.md", text="# Prices\n\nA bun costs two francs.")
    assert (first["changed"], again["changed"], again["title"]) == (True, False, "Prices")
    await bakery.call("knowledge_add", name="price.md", text="A bun costs three crowns.")
    assert await bakery.documents("francs") == []
    assert await bakery.documents("crowns") == ["price.md"]


async def test_a_full_collection_refuses_documents(bakery: Bakery) -> None:
    """A document beyond max_documents is refused, and those that are in stay."""
    for name in ("a", "b", "c"):
        with suppress(RateLimitedError):
            await bakery.call("knowledge_add", name=f"full-{name}", text=f"Filling {name}.")
    with pytest.raises(RateLimitedError, match=r"4 documents, and 3 are allowed \(max_documents\)"):
        await bakery.call("knowledge_add", name="full-d", text="Filling d.")
    listed = await bakery.call("knowledge_list", collection="notes")
    assert listed["collections"][0]["documents"] == 3


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"name": "a"}, "either text"),
        ({"text": "a"}, "name: is required"),
        ({"name": "a", "text": "b", "collection": "handbok"}, "did you mean 'handbook'"),
        ({"name": "a", "text": "b", "collection": "handbook"}, "files of a folder"),
        ({"file": "../../etc/passwd"}, "outside the directories"),
        ({"name": "a\nb", "text": "b"}, "name"),
    ],
)
async def test_invalid_documents_are_refused(bakery: Bakery, arguments: dict[str, str], part: str) -> None:
    """The error says what is wrong."""
    with pytest.raises(CallError, match=part):
        await bakery.call("knowledge_add", **arguments)


async def test_an_agent_searches_the_collections_it_has(bakery: Bakery) -> None:
    """``knowledge`` in an agent's definition gives it the tools of these collections, and no others."""
    prompt = script(calls(("knowledge_handbook", {"query": "ashes"})), "Fridays.")
    result = await bakery.client.call("clerk", {"prompt": prompt})
    assert result.structured["answer"] == "Fridays."
    assert [call["tool"] for call in result.structured["calls"]] == ["knowledge_handbook"]
    assert "Fridays" in str(bakery.simulator.log[-1].body["messages"])


async def test_chinese_is_found_by_its_words(bakery: Bakery) -> None:
    """A word of a script without spaces is found within a sentence."""
    (bakery.directory / "handbook" / "zh.md").write_text("烤箱温度是二百六十度。")
    await bakery.finds("温度", "zh.md")


async def test_any_question_is_valid(bakery: Bakery) -> None:
    """Operators of the search language in a question are only words."""
    for query in ('oven" OR *', "NEAR(a b) AND", "-- : ^ (", "' \" *"):
        await bakery.call("knowledge", query=query)


async def test_without_the_extra_collections_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install; without a collection, nothing is needed."""
    monkeypatch.setattr("toold.knowledge.knowledge_settings.find_spec", lambda _: None)
    assert load_settings({}, env={}, cwd=tmp_path).knowledge == {}
    (tmp_path / "toold.toml").write_text("[knowledge.a]")
    with pytest.raises(SettingsError, match=r"pip install 'toold\[knowledge\]'"):
        load_settings({}, env={}, cwd=tmp_path)


@pytest.mark.parametrize(
    ("table", "part"),
    [
        ("[knowledge.add]", "'add' is not a name"),
        ("[knowledge.a]\nchunk_overlap = 500", "chunk_overlap must be less than half of chunk_size"),
        ("[knowledge.a]\nfolders = 'x'", "did you mean 'folder'"),
        ("[knowledge.a]\ninclude = ['*.md']", "include needs folder"),
        ("knowledge = 3", "must be set in toold.toml, as tables"),
        ("[knowledge.a]\nembedding_model = 'embeding-3'", "a: embedding_model: .*embedding-3"),
        ("[knowledge.a]\nembedding_model = 'glm-4.7'", "glm-4.7 makes completions, not embeddings"),
    ],
)
async def test_invalid_settings_are_refused(tmp_path: Path, table: str, part: str) -> None:
    """The error names the collection and the key."""
    (tmp_path / "toold.toml").write_text(table)
    with pytest.raises(SettingsError, match=part.replace("[", r"\[")):
        load_settings({}, env={"HOME": os.devnull}, cwd=tmp_path)
