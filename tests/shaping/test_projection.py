"""Projection: selecting fields of rows."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.projection import Projection
from toold.shaping.value_paths import EVERY, MISSING, ValuePath, find_value, parse_path

ROW = {
    "id": 1,
    "none": None,
    "owner": {"name": "Ann", "mail": "a@b", "team": {"id": 7, "x": 0}},
    "labels": [{"name": "bug", "color": "red"}, {"color": "blue"}, 5],
    "grid": [[1, 2], [3, 4]],
    "x.y": 2,
}


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        (["id"], {"id": 1}),
        (["none", "nothing"], {"none": None}),
        (["id", "id"], {"id": 1}),
        (["['x.y']"], {"x.y": 2}),
        (["owner.name"], {"owner": {"name": "Ann"}}),
        (["owner.name", "owner.team.id"], {"owner": {"name": "Ann", "team": {"id": 7}}}),
        (["owner.name", "owner"], {"owner": ROW["owner"]}),
        (["owner.nothing"], {}),
        (["none.name", "id.x"], {}),
        (["labels[*].name"], {"labels": [{"name": "bug"}, {}, 5]}),
        (["labels[*]"], {"labels": ROW["labels"]}),
        (["labels[1].color"], {"labels": [{"color": "blue"}]}),
        (["labels[-3].name", "labels[0].color"], {"labels": [{"name": "bug", "color": "red"}]}),
        (["labels[*].name", "labels[0].color"], {"labels": [{"name": "bug", "color": "red"}, {}, 5]}),
        (["labels[9]", "id"], {"id": 1}),
        (["grid[*][0]"], {"grid": [[1], [3]]}),
        (["grid[1][-1]"], {"grid": [[4]]}),
        (["labels.length"], {"labels": {"length": 3}}),
        (["labels.length", "labels[1].color"], {"labels": [{"color": "blue"}]}),
        (["labels.length.x"], {}),
        (["labels.name"], {}),
        (["owner[0]"], {}),
    ],
)
def test_nesting_is_kept(fields: list[str], kept: dict[str, Any]) -> None:
    """Null is kept, missing fields are omitted, and elements of lists stay elements."""
    projection = Projection(tuple(map(parse_path, fields)))
    assert projection.rows([ROW]) == [kept]
    assert projection.one(ROW) == kept


def test_every_row_is_kept() -> None:
    """A row without the selected fields becomes empty; a row that has no fields is unchanged."""
    rows = [{"id": 1}, {}, None, "text", 5, [{"id": 2}]]
    assert Projection([parse_path("id")]).rows(rows) == [{"id": 1}, {}, None, "text", 5, []]
    assert Projection([parse_path("id"), parse_path("[0].id")]).rows(rows)[-1] == [{"id": 2}]


names = st.sampled_from("abc")
steps = names | st.integers(-2, 2) | st.just(EVERY)
paths = st.lists(steps, min_size=1, max_size=3).map(lambda found: ValuePath(tuple(found)))
values = st.recursive(
    st.none() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


def within(part: Any, whole: Any) -> bool:
    """Return whether everything in ``part`` is at the same place in ``whole``; lists must have the same order."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and within(item, whole[name]) for name, item in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        places = iter(whole)
        return all(any(within(item, other) for other in places) for item in part)
    return type(part) is type(whole) and bool(part == whole)


@given(st.lists(values, max_size=3), st.lists(paths, min_size=1, max_size=4))
def test_a_projection_is_part_of_its_row(rows: list[Any], fields: list[ValuePath]) -> None:
    """Each result is part of its row and contains each selected field; the row is not modified."""
    before = copy.deepcopy(rows)
    projected = Projection(fields).rows(rows)
    assert rows == before
    assert len(projected) == len(rows)
    assert all(within(kept, row) for kept, row in zip(projected, rows, strict=True))
    for path in fields:
        if all(isinstance(step, str) for step in path.steps):
            for kept, row in zip(projected, rows, strict=True):
                found = find_value(path, row)
                assert found is MISSING or within(find_value(path, kept), found)
                assert (found is MISSING) == (find_value(path, kept) is MISSING)
