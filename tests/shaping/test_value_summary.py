"""Summaries of values."""

import msgspec
from toold.shaping.value_summary import MAX_FIELDS, SAMPLE_CHARS, summarize


def test_few_small_rows_are_shown_completely() -> None:
    """The summary contains the types of the fields; null counts as a type."""
    rows = [{"id": 1, "owner": {"name": "Ann"}}, {"id": None, "labels": [{"name": "x"}]}]
    found = summarize(rows)
    assert (found.count, found.sample, found.truncated) == (2, rows, False)
    assert found.fields == {
        "id": ["number", "null"],
        "owner": ["object"],
        "owner.name": ["string"],
        "labels": ["array"],
        "labels[*].name": ["string"],
    }


def test_many_rows_are_counted_and_sampled() -> None:
    """The sample has three rows, and the summary is marked as truncated."""
    found = summarize([{"id": number} for number in range(5_000)])
    assert (found.count, len(found.sample), found.truncated) == (5_000, 3, True)


def test_a_large_row_is_truncated() -> None:
    """Long text, long lists, many fields and deep nesting are truncated, and the summary is marked as truncated."""
    deep: object = 1
    for _ in range(50):
        deep = {"in": [deep]}
    rows = [
        {"text": "x" * 10**6, "list": list(range(10**5)), "deep": deep, **{f"f{number}": 1 for number in range(10**4)}}
    ]
    found = summarize(rows)
    assert found.truncated
    assert found.sample[0]["text"] == "x" * SAMPLE_CHARS + "…"
    assert found.sample[0]["list"] == [0, 1, 2, 3, 4]
    assert len(found.fields) == MAX_FIELDS
    assert len(msgspec.json.encode(found)) < 10_000


def test_truncation_within_a_list_is_reported() -> None:
    """The summary is marked as truncated if it shortens a text in a list."""
    assert summarize([{"list": ["x" * (SAMPLE_CHARS + 1)]}]).truncated
    assert not summarize([{"list": ["x" * SAMPLE_CHARS]}]).truncated


def test_rows_that_are_not_objects_have_no_fields() -> None:
    """They are counted and sampled, and the summary contains their types; it omits the types if all rows are
    objects."""
    found = summarize(["a", 1, None, 2])
    assert (found.count, found.sample, found.fields, found.truncated) == (4, ["a", 1, None], {}, True)
    assert found.types == ["string", "number", "null"]
    assert summarize([{"a": 1}, "b"]).types == ["object", "string"]
    assert "types" not in msgspec.to_builtins(summarize([{"a": 1}]))


def test_no_rows_have_an_empty_summary() -> None:
    """The count is 0, and the summary is not truncated."""
    assert summarize([]).count == 0
    assert not summarize([]).truncated
