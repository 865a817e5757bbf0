"""The limits of collections, each exceeded once."""

from pathlib import Path
from typing import Any

import pytest
from toold.knowledge import KnowledgeSettingsError, knowledge_database, passage_search, read_collections
from toold.knowledge.collection_folder import CollectionFolder
from toold.knowledge.full_text_query import MAX_QUERY_WORDS, match_expression
from toold.knowledge.knowledge_index import KnowledgeIndex
from toold.knowledge.knowledge_records import Scope
from toold.knowledge.knowledge_settings import CollectionSettings
from toold.protocol.error_codes import CallError, RateLimitedError
from toold.tools import MAX_TEXT_BYTES, FileAccess

from .conftest import Bakery

SHARED = Scope("books", "")


def test_too_many_collections_are_refused() -> None:
    """Each collection is a tool in every listing."""
    with pytest.raises(KnowledgeSettingsError, match="51 collections, at most 50"):
        read_collections({f"c{number}": {} for number in range(51)})


def test_only_the_first_words_of_a_question_are_searched() -> None:
    """Further words, and repeated ones, cost nothing."""
    expression = match_expression(" ".join(["same"] * 100 + [f"w{number}" for number in range(1000)]))
    assert expression is not None
    assert expression.count(" OR ") == MAX_QUERY_WORDS - 1


@pytest.mark.parametrize(
    ("limits", "kept", "reason"),
    [
        ({"max_documents": 2}, ["a.md", "b.md"], "(max_documents)"),
        ({"max_bytes": 250}, ["a.md", "b.md"], "(max_bytes)"),
        ({"max_chunks": 2}, ["a.md", "b.md"], "(max_chunks)"),
    ],
)
async def test_a_full_folder_leaves_files_out(
    tmp_path: Path, limits: dict[str, Any], kept: list[str], reason: str
) -> None:
    """Files beyond a limit are left out with the reason, and a later look changes nothing."""
    folder = tmp_path / "books"
    folder.mkdir()
    for name in ("a.md", "b.md", "c.md"):
        (folder / name).write_text("word " * 20)
    index = KnowledgeIndex(tmp_path / "knowledge.db")
    following = CollectionFolder(index, SHARED)
    settings = CollectionSettings(folder=folder, **limits)
    for _ in range(2):
        report = await following.update(settings, folder, FileAccess((folder,)))
        assert [name for name, _ in report.left_out] == ["c.md"]
        assert reason in report.left_out[0][1]
        assert list(await index.documents(SHARED)) == kept
    await index.close()


async def test_entries_beyond_the_limit_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says that there are further files."""
    monkeypatch.setattr("toold.knowledge.collection_folder.MAX_ENTRIES", 1)
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("word")
    index = KnowledgeIndex(tmp_path / "knowledge.db")
    report = await CollectionFolder(index, SHARED).update(CollectionSettings(), tmp_path, FileAccess((tmp_path,)))
    assert report.left_out == (("further files", "only 1 files and folders are scanned"),)
    await index.close()


async def test_a_missing_folder_keeps_its_documents(tmp_path: Path) -> None:
    """While a folder cannot be read, its documents stay; a file that has gone is removed at the next look."""
    folder, moved = tmp_path / "books", tmp_path / "moved"
    folder.mkdir()
    (folder / "a.md").write_text("word")
    index = KnowledgeIndex(tmp_path / "knowledge.db")
    following, settings = CollectionFolder(index, SHARED), CollectionSettings(folder=folder)
    await following.update(settings, folder, FileAccess((folder,)))
    folder.rename(moved)
    report = await following.update(settings, folder, FileAccess((folder,)))
    assert report.problem == "cannot be read: No such file or directory"
    assert list(await index.documents(SHARED)) == ["a.md"]
    moved.rename(folder)
    (folder / "a.md").unlink()
    await following.update(settings, folder, FileAccess((folder,)))
    assert await index.documents(SHARED) == {}
    await index.close()


async def test_too_many_principals_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each principal's documents have separate tables, so their number is limited."""
    monkeypatch.setattr(knowledge_database, "_MAX_SCOPES", 1)
    index = KnowledgeIndex(tmp_path / "knowledge.db")
    await index.put(Scope("notes", "ann"), CollectionSettings(), "a", "text")
    with pytest.raises(RateLimitedError, match="1 collections of principals"):
        await index.put(Scope("notes", "bob"), CollectionSettings(), "a", "text")
    await index.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_has_limited_text(bakery: Bakery, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passages that do not fit are left out, and counted."""
    monkeypatch.setattr(passage_search, "MAX_ANSWER_CHARS", 10)
    answer = await bakery.call("knowledge", query="oven flour")
    assert len(answer["passages"]) == 1
    assert answer["notes"] == ["1 more passages did not fit into the answer."]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("knowledge", {"query": "x" * 4_001}),
        ("knowledge", {"query": "x", "top_k": 51}),
        ("knowledge_add", {"name": "a", "text": "é" * (MAX_TEXT_BYTES // 2 + 1)}),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_too_long_arguments_are_refused(bakery: Bakery, tool: str, arguments: dict[str, Any]) -> None:
    """The error names the argument or the limit."""
    with pytest.raises(CallError) as error:
        await bakery.call(tool, **arguments)
    assert error.value.code == "VALIDATION_ERROR"
