"""Shaping plans applied to values."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.shaping_errors import NoListError, ShapingError
from toold.shaping.shaping_options import plan
from toold.shaping.shaping_plan import ShapedValue, ShapingReport

ROWS = [
    {"id": 1, "status": "open", "amount": 5, "owner": {"name": "Ann"}},
    {"id": 2, "status": "done", "amount": 7, "owner": {"name": "Bob"}},
    {"id": 3, "status": "open", "amount": 9, "owner": None},
    {"id": 4, "status": "open", "amount": None},
]
ENVELOPE = {"items": ROWS, "total": 4}
ISSUE = {"number": 7, "title": "Broken", "id": 99, "labels": [{"id": 1, "name": "bug", "color": "red"}]}


def shape(value: Any, **options: Any) -> ShapedValue:
    return plan(options).apply(value)


def test_the_order_of_steps_is_fixed() -> None:
    """The steps are filter, sort, limit, project and aggregate, independent of the order of the options."""
    options = {"limit": 2, "sort": ["-id"], "select_fields": ["id", "status"], "filter": "status = open"}
    assert shape(ROWS, **options).value == [{"id": 4, "status": "open"}, {"id": 3, "status": "open"}]
    assert shape(ROWS, aggregate={"sum": ["id"]}, **options).value == {"sum": {"id": 7}}
    assert shape(ROWS, aggregate={"sum": ["amount"]}, **options).report.unmatched == ("amount",)  # projected away


def test_the_report_describes_the_shaping() -> None:
    """The report contains the path of the list, the numbers of rows and the fields that no row has."""
    shaped = shape(
        ENVELOPE, filter="status = open AND stauts = x OR id > 1", sort=["when"], limit=2, select_fields=["id", "nam"]
    )
    assert shaped.report == ShapingReport(
        list_at="items",
        rows_in=4,
        rows_matched=3,
        rows_out=2,
        truncated=True,
        unmatched=("stauts", "when", "nam"),
    )


def test_a_limit_that_omits_no_row_is_not_a_truncation() -> None:
    """This includes a limit that equals the number of rows."""
    assert not shape(ROWS, limit=4).report.truncated
    assert shape(ROWS, limit=0).value == []


def test_the_envelope_is_kept_around_rows_only() -> None:
    """Figures and values that ``at`` selects are returned without the envelope."""
    assert shape(ENVELOPE, filter="id = 1", select_fields=["id"]).value == {"items": [{"id": 1}], "total": 4}
    assert shape(ENVELOPE, at="items", limit=1, select_fields=["id"]).value == [{"id": 1}]
    assert shape(ENVELOPE, aggregate={"count": True}).value == {"count": 4}
    assert shape(ENVELOPE, at="items[1].owner").value == {"name": "Bob"}


def test_rows_are_available_for_a_file() -> None:
    """The rows are those of the list, the groups, or one row of figures; an object without a list has no rows."""
    assert shape(ENVELOPE, limit=1, return_mode="file").rows == ROWS[:1]
    assert shape(ENVELOPE, aggregate={"group_by": ["status"]}).rows == [
        {"group": {"status": "open"}, "count": 3},
        {"group": {"status": "done"}, "count": 1},
    ]
    assert shape(ENVELOPE, aggregate={"count": True}).rows == [{"count": 4}]
    assert shape({"a": 1}, return_mode="file").rows is None


def test_values_that_sum_ignores_are_reported() -> None:
    """The report contains the number of these values per field."""
    assert shape([{"a": 1}, {"a": "2"}], aggregate={"avg": ["a"]}).report.not_numbers == {"a": 1}


@pytest.mark.parametrize("value", [None, 5, "text", {"a": 1}, {"a": [1], "b": [2]}, ROWS, ENVELOPE, []])
def test_without_options_a_value_is_unchanged(value: Any) -> None:
    """This applies to any value with any number of lists."""
    assert shape(value).value == value


@pytest.mark.parametrize("option", [{"filter": "a = 1"}, {"sort": ["a"]}, {"limit": 1}, {"aggregate": {"count": True}}])
@pytest.mark.parametrize("value", [None, "text", {"a": 1}, {"a": [1], "b": [2]}])
def test_row_options_require_exactly_one_list(value: Any, option: dict[str, Any]) -> None:
    """No list or several lists cause an error."""
    with pytest.raises(NoListError):
        shape(value, **option)


@pytest.mark.parametrize(
    ("value", "fields", "kept"),
    [
        (ENVELOPE, ["id"], {"items": [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}], "total": 4}),
        (ENVELOPE, ["total"], {"total": 4}),
        (ISSUE, ["number", "title"], {"number": 7, "title": "Broken"}),
        (ISSUE, ["id", "title"], {"id": 99, "title": "Broken"}),
        (ISSUE, ["id", "color"], {"id": 99}),
        (ISSUE, ["id"], {"id": 99}),
        (ISSUE, ["title", "labels[*].name"], {"title": "Broken", "labels": [{"name": "bug"}]}),
        ({"a": 1, "b": 2}, ["a"], {"a": 1}),
        ({"a": [1], "b": [2], "c": 3}, ["c"], {"c": 3}),
        ({"id": 1, "labels": []}, ["id"], {"id": 1}),
        (5, ["a"], 5),
    ],
)
def test_select_fields_applies_to_the_rows_or_the_object(value: Any, fields: list[str], kept: Any) -> None:
    """In an envelope it applies where more fields exist, and to the rows if the numbers are equal; in a record, and if
    there are several lists, to the object if it has any of the fields."""
    assert shape(value, select_fields=fields).value == kept


def test_unknown_fields_are_reported_or_rejected() -> None:
    """With one list the rows become empty and the fields are reported; with several lists the options are ambiguous."""
    shaped = shape(ENVELOPE, select_fields=["x"])
    assert (shaped.value, shaped.report.unmatched) == ({"items": [{}, {}, {}, {}], "total": 4}, ("x",))
    with pytest.raises(NoListError, match="several lists: a, b"):
        shape({"a": [{"x": 1}], "b": []}, select_fields=["x"])


@pytest.mark.parametrize(
    ("value", "options", "shaped"),
    [
        (ROWS[:1], {"select_fields": ["[*].id", "[*].owner.name"]}, [{"id": 1, "owner": {"name": "Ann"}}]),
        (ROWS[:1], {"select_fields": ["[*]"]}, ROWS[:1]),
        (
            ROWS,
            {"filter": "[*].id > 3 OR [*].status = done", "sort": ["-[*].id"], "select_fields": ["id"]},
            [{"id": 4}, {"id": 2}],
        ),
        (ROWS, {"aggregate": {"sum": ["[*].id"]}}, {"sum": {"id": 10}}),
        (ENVELOPE, {"limit": 1, "select_fields": ["items[*].id"]}, {"items": [{"id": 1}], "total": 4}),
        (ENVELOPE, {"at": "items", "limit": 1, "select_fields": ["items[*].id"]}, [{"id": 1}]),
        ([[1, 2]], {"select_fields": ["[*]"], "limit": 1}, [[1, 2]]),
        ([{"items": [{"id": 1, "n": 2}]}], {"select_fields": ["items[*].id"]}, [{"items": [{"id": 1}]}]),
        (["a", "b"], {"filter": "[*] = a"}, ["a"]),
    ],
)
def test_paths_may_start_at_the_list(value: Any, options: dict[str, Any], shaped: Any) -> None:
    """``[*].id`` and ``items[*].id`` mean ``id`` of each row in every option, unless a row has that path itself."""
    answer = shape(value, **options)
    assert (answer.value, answer.report.unmatched) == (shaped, ())


def test_a_record_without_the_fields_is_an_error() -> None:
    """The error says which fields there are, and how to reach those of the elements."""
    with pytest.raises(
        NoListError, match=r"there is no color in an object with the fields number, .*set at to 'labels'"
    ):
        shape(ISSUE, select_fields=["color"])


def test_the_report_is_a_sentence() -> None:
    """It says which list was shaped, how many rows are left, and what had no effect."""
    shaped = shape(ENVELOPE, filter="status = open", limit=2, select_fields=["id", "nam"])
    assert shaped.report.sentence == (
        "Shaped the list items: 4 rows, 3 match the filter, limited to 2. No value has nam."
    )
    assert shape([{"a": "x"}], aggregate={"sum": ["a"]}).report.sentence == (
        "Shaped the list: 1 row. Not numbers, and ignored by sum and avg: a (1)."
    )
    assert shape({"a": 1}, select_fields=["a"]).report.sentence == ""


def test_a_summary_replaces_the_rows() -> None:
    """The summary is created last; an object without rows counts as one row."""
    value = shape(ENVELOPE, filter="status = open", select_fields=["id"], return_mode="summary").value
    assert value == {
        "count": 3,
        "sample": [{"id": 1}, {"id": 3}, {"id": 4}],
        "fields": {"id": ["number"]},
        "truncated": False,
    }
    assert shape({"a": 1, "b": "x"}, return_mode="summary").value["fields"] == {"a": ["number"], "b": ["string"]}
    assert shape({"a": [], "b": []}, return_mode="summary").value["count"] == 1
    assert shape(ROWS, aggregate={"count": True}, return_mode="summary").value["sample"] == [{"count": 4}]


def test_deep_nesting_is_a_shaping_error() -> None:
    """No RecursionError is raised."""
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ShapingError, match="nested too deeply"):
        shape([{"a": value}], sort=["a"])


rows = st.lists(
    st.dictionaries(
        st.sampled_from("abc"),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=3)
        | st.lists(st.integers(), max_size=2),
    )
)
options = st.fixed_dictionaries(
    {},
    optional={
        "filter": st.sampled_from(["a = 1", "a > 0 OR b CONTAINS 'x'", "NOT c IS_NULL", "c IN (1, x)"]),
        "sort": st.lists(st.sampled_from(["a", "-b", "c"])),
        "limit": st.integers(-1, 4) | st.floats(-1, 4),
        "select_fields": st.lists(st.sampled_from(["a", "b[0]", "c[*]", "d"]), min_size=1),
        "aggregate": st.sampled_from(
            [{"count": True}, {"group_by": ["a"], "sum": ["b"]}, {"unique": ["c[*]"], "max": ["a"]}]
        ),
        "return_mode": st.sampled_from(["inline", "summary", "file"]),
    },
)


@given(rows, options, st.booleans())
def test_shaping_returns_json_and_modifies_nothing(table: list[Any], wanted: dict[str, Any], wrapped: bool) -> None:
    """This applies to any rows and options; shaping never adds rows."""
    value = {"items": table, "next": None} if wrapped else table
    before = copy.deepcopy(value)
    shaped = shape(value, **wanted)
    assert value == before
    assert msgspec.json.decode(msgspec.json.encode(shaped.value)) is not None
    assert shaped.rows is None or len(shaped.rows) <= max(len(table), 1)
