"""Location of the rows in a value."""

import copy
from typing import Any

import pytest
from toold.shaping.row_location import LocatedRows, locate
from toold.shaping.shaping_errors import NoListError
from toold.shaping.value_paths import parse_path

ROWS = [{"id": 1}, {"id": 2}]


def find_value(value: Any, at: str = "") -> LocatedRows:
    return locate(value, parse_path(at) if at else None)


@pytest.mark.parametrize(
    ("value", "at", "path"),
    [
        (ROWS, "", ""),
        ({"items": ROWS, "total": 2}, "", "items"),
        ({"data": {"items": ROWS}, "page": {"next": None}}, "", "data.items"),
        ({"items": ROWS, "other": [1]}, "items", "items"),
        ({"a": {"items": ROWS}, "b": []}, "a", "a.items"),
        ([[], ROWS], "[1]", "[1]"),
        ({"a.b": ROWS}, "", "['a.b']"),
    ],
)
def test_the_rows_are_the_value_or_the_selected_or_only_list(value: Any, at: str, path: str) -> None:
    """The path of the rows is relative to the whole value."""
    located = find_value(value, at)
    assert located.rows == ROWS
    assert str(located.path) == path


def test_several_lists_are_an_error() -> None:
    """The error names the lists. Empty lists count, so that the result does not depend on the data."""
    with pytest.raises(NoListError, match=r"several lists: items, errors, page.next; select one with at") as raised:
        _ = find_value({"items": ROWS, "errors": [], "page": {"next": [1]}}).rows
    assert raised.value.candidates == ("items", "errors", "page.next")


def test_candidates_are_paths_for_at() -> None:
    """The paths are relative to the whole value, and at most ten are listed."""
    with pytest.raises(NoListError) as raised:
        _ = find_value({"in": {str(number): [] for number in range(20)}}, "in").rows
    assert raised.value.candidates[:2] == ("in.0", "in.1")
    assert len(raised.value.candidates) == 10
    assert "and more" in str(raised.value)


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ({"a": 1, "b": {"c": [1][0]}}, "in the value (an object with the fields a, b)"),
        ({}, "an object without fields"),
        ("text", "(string)"),
        (None, "(null)"),
    ],
)
def test_a_value_without_list_is_an_error_on_access(value: Any, reported: str) -> None:
    """``locate`` succeeds; access to the rows raises an error that describes the value."""
    located = find_value(value)
    assert located.path is None
    with pytest.raises(NoListError) as raised:
        _ = located.rows
    assert reported in str(raised.value)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ({"contact": {"id": 1, "tags": ["a", "b"]}}, "contact.id"),
        ({"contact": {"firstName": "Ann", "tags": []}, "traceId": "x"}, "contact.firstName"),
        ({"id": "ch_1", "object": "charge", "refunds": {"object": "list", "data": []}}, "id"),
        ({"locationId": "x", "contacts": []}, "locationId"),
        ({"kind": "Role", "apiVersion": "v1", "metadata": {"name": "admin"}, "rules": []}, "metadata.name"),
    ],
)
def test_the_list_of_a_record_is_not_the_rows(value: Any, content: str) -> None:
    """A list with other content around it is part of a record; the error names both, and the path for ``at``."""
    located = find_value(value)
    assert located.inside is None
    (path,) = located.others
    with pytest.raises(NoListError) as raised:
        _ = located.rows
    assert f"the list {path} is part of a record, which also has {content}: " in str(raised.value)
    assert raised.value.candidates == (str(path),)
    assert find_value(value, str(path)).rows == find_value(value, str(path)).value


@pytest.mark.parametrize(
    "value",
    [
        {"contacts": ROWS, "total": 2, "traceId": "x"},
        {"messages": {"lastMessageId": "x", "nextPage": True, "messages": ROWS}, "traceId": "x"},
        {"object": "list", "url": "/v1/customers", "has_more": False, "data": ROWS},
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": ROWS},
        {"expand": "names", "startAt": 0, "maxResults": 50, "total": 1, "issues": ROWS},
        {"total_count": 40, "incomplete_results": False, "items": ROWS},
        {"@odata.context": "x", "@odata.nextLink": "y", "value": ROWS},
        {"success": True, "statusCode": 200, "message": "Fetched", "results": {"posts": ROWS, "count": 2}},
        {"opportunities": ROWS, "meta": {"total": 1, "currentPage": 1}, "aggregations": {}},
        {"succeded": True, "errorCount": 0, "responses": ROWS},
        {"ok": True, "members": ROWS, "cache_ts": 1, "response_metadata": {"next_cursor": ""}},
        {"totalSize": 2, "done": True, "records": ROWS},
        {"took": 1, "timed_out": False, "_shards": {"failed": 0}, "hits": {"max_score": 1.0, "hits": ROWS}},
        {"hits": ROWS, "nbHits": 2, "hitsPerPage": 20, "processingTimeMS": 1, "query": "x", "params": "q=x"},
        {"data": {"issues": {"nodes": ROWS, "pageInfo": {"hasNextPage": False, "endCursor": "x"}}}},
        {"result": ROWS},
    ],
)
def test_the_list_of_an_envelope_is_the_rows(value: Any) -> None:
    """Counts, paging, links and the state of the request describe a list, as in the answers of many APIs."""
    assert find_value(value).rows == ROWS


def test_nested_lists_are_not_searched() -> None:
    """Only objects are searched, so that a list within a row is never used as the rows."""
    assert str(find_value({"items": [{"tags": ["a"]}]}).path) == "items"


def test_an_unknown_place_is_an_error() -> None:
    """The error suggests a similar name."""
    with pytest.raises(NoListError, match=r"at: `data.itms` is missing: `data` has no 'itms'; did you mean 'items'"):
        find_value({"data": {"items": ROWS}}, "data.itms")


def test_replaced_keeps_the_fields_around_the_rows() -> None:
    """The original value is not modified; a value that ``at`` selects is returned alone."""
    value = {"data": {"items": ROWS, "total": 2}, "page": 1}
    before = copy.deepcopy(value)
    assert find_value(value).replaced([]) == {"data": {"items": [], "total": 2}, "page": 1}
    assert find_value(value, "data").replaced([]) == {"items": [], "total": 2}
    assert find_value(value, "data.items").replaced([]) == []
    assert value == before


@pytest.mark.parametrize(
    ("value", "at", "siblings"),
    [
        ({"items": [1], "next": "c", "page": {"n": 1}}, None, {"next": "c", "page": {"n": 1}}),
        ({"data": {"items": [1], "next": "c"}, "total": 1}, None, {"data": {"next": "c"}, "total": 1}),
        ({"data": {"items": [1]}, "total": 1}, None, {"total": 1}),
        ({"data": {"items": [1], "next": "c"}, "total": 1}, "data", {"next": "c"}),
        ({"items": [1], "total": 1}, "items", {}),
        ([1], None, {}),
        ({"a": 1}, None, {}),
        ({"a": [1], "b": [2]}, None, {}),
    ],
)
def test_around_contains_all_fields_except_the_rows(value: Any, at: str | None, siblings: dict[str, Any]) -> None:
    """The fields are relative to the value that ``at`` selects; without exactly one list in an object the result is
    empty."""
    assert locate(value, parse_path(at) if at else None).siblings == siblings
