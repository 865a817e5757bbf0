"""Tool search: which tools a query finds."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.tool_call import Annotations, ToolInfo
from toold.tools import load_registry
from toold.tools.tool_ranking import ToolIndex, rank, words

ANNOTATIONS = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
INFOS = [tool.info for tool in load_registry().tools]


def info(name: str, description: str, **arguments: str) -> ToolInfo:
    properties: dict[str, Any] = {argument: {"description": text} for argument, text in arguments.items()}
    return ToolInfo(name, description, {"properties": properties}, ANNOTATIONS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("glm_web_search", ["glm", "web", "search"]),
        ("listFilesByID", ["list", "file", "id"]),
        ("The files of a class", ["file", "class"]),
        ("HTTPServer2", ["http", "server", "2"]),
        ("Ünï ÄÖ", ["ünï", "äö"]),
        ("", []),
    ],
)
def test_text_is_split_into_words(text: str, found: list[str]) -> None:
    """Names are split at their word boundaries; stop words are removed and plurals are reduced to the singular."""
    assert words(text) == found


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("search the web", "glm_web_search"),
        ("review my code for bugs", "codereview"),
        ("which models are there", "listmodels"),
        ("upload a file to kimi", "kimi_upload_files"),
        ("security audit", "secaudit"),
        ("echo", "echo"),
        ("download", "smart_file_download"),
    ],
)
def test_built_in_tools_are_found(query: str, tool: str) -> None:
    """Everyday queries find the right tool among the first three."""
    assert tool in [found.name for found, _ in rank(query, INFOS)[:3]]


def test_a_match_in_the_name_ranks_above_description_and_arguments() -> None:
    """For the same word, a match in the name ranks first, in the description second and in an argument third."""
    tools = [
        info("x", "Does this.", invoice="its number"),
        info("y", "Makes an invoice."),
        info("invoice", "Makes it."),
        info("z", "Else."),
    ]
    assert [tool.name for tool, _ in rank("invoices", tools)] == ["invoice", "y", "x"]


def test_a_rare_word_ranks_above_a_common_one() -> None:
    """A word that all tools share does not affect the order."""
    tools = [info("a", "github issue list"), info("b", "github pull list"), info("c", "github list list list list")]
    assert rank("github issue", tools)[0][0].name == "a"


@given(st.text(max_size=60))
def test_results_are_unique_known_tools_in_order(query: str) -> None:
    """For any query, each tool appears at most once, scores descend, and every score is positive."""
    found = rank(query, INFOS)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    names = [tool.name for tool, _ in found]
    assert len(names) == len(set(names))


def test_an_index_is_reusable() -> None:
    """A query does not change the results of later queries on the same index."""
    index = ToolIndex(INFOS)
    queries = ("search the web", "filed", "websearches", "echo", "search the web")
    assert [rank(query, index) for query in queries] == [rank(query, INFOS) for query in queries]


def test_the_best_partial_match_counts_once() -> None:
    """The best partial match adds half the weight of an exact match; further partial matches add nothing."""
    tools = [info("x", "invoice"), info("y", "invoice invoiced"), info("z", "invoice invoiced invoiceable")]
    scores = {tool.name: score for tool, score in rank("invoice", tools)}
    rarity = math.log(1 + 0.5 / 3.5)
    for name, weight, length in (("x", 1, 5 / 6), ("y", 1.5, 6 / 6), ("z", 1.5, 7 / 6)):  # the name counts as 4 words
        assert scores[name] == pytest.approx(rarity * weight * 2.2 / (weight + 1.2 * (0.25 + 0.75 * length)))


def test_a_search_without_tools_is_empty() -> None:
    """A search over an empty list returns an empty list."""
    assert rank("x", []) == []


def test_a_tool_without_words_is_not_found() -> None:
    """A tool whose name and description contain no words matches no query."""
    assert rank("x", [info("_", "")]) == []
