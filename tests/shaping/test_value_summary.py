"""A value in brief."""

import msgspec
from toold.shaping.value_summary import MAX_FIELDS, SAMPLE_CHARS, summarize


def test_few_small_rows_are_shown_whole() -> None:
    """With the types of their fields; null is a type of its own."""
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


def test_many_rows_are_counted_and_three_are_shown() -> None:
    """And it says that there are more."""
    found = summarize([{"id": number} for number in range(5_000)])
    assert (found.count, len(found.sample), found.truncated) == (5_000, 3, True)


def test_a_large_row_is_cut() -> None:
    """Long text, long lists, many fields, deep nesting: the summary stays small, and says that it left some out."""
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


def test_what_is_cut_within_a_list_is_told() -> None:
    """A sample of all rows that shows one of them shortened is not all there is."""
    assert summarize([{"list": ["x" * (SAMPLE_CHARS + 1)]}]).truncated
    assert not summarize([{"list": ["x" * SAMPLE_CHARS]}]).truncated


def test_rows_that_are_no_objects_have_no_fields() -> None:
    """They are counted and shown all the same, with their own types; rows that are all objects need none told."""
    found = summarize(["a", 1, None, 2])
    assert (found.count, found.sample, found.fields, found.truncated) == (4, ["a", 1, None], {}, True)
    assert found.types == ["string", "number", "null"]
    assert summarize([{"a": 1}, "b"]).types == ["object", "string"]
    assert "types" not in msgspec.to_builtins(summarize([{"a": 1}]))


def test_nothing_has_an_empty_summary() -> None:
    """No rows, no fields."""
    assert summarize([]).count == 0
    assert not summarize([]).truncated
