"""YAML 1.2 is parsed, within limits."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from toold.tools.yaml_reader import YamlError, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("2021-07-28", "2021-07-28"),
        ("12:30:00", "12:30:00"),
        ("true", True),
        ("~", None),
        ("", None),
        ("0123", 123),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.5e3", 1500.0),
        ("1e999", "1e999"),
        ("1_000", "1_000"),
        (".nan", ".nan"),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("!!python/object/apply:os.system [x]", ["x"]),
        ("200: ok", {"200": "ok"}),
        ("true: ok", {"true": "ok"}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}", {"a": {"k": 1, "l": 2}, "b": {"k": 3, "l": 2}}),
        ("a: &x {k: 1}\nb: {k: 3, <<: [*x, {m: 4}]}", {"a": {"k": 1}, "b": {"k": 3, "m": 4}}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ("--- 1\n--- 2\n", 1),
    ],
)
def test_values_are_those_of_yaml_1_2(text: str, value: object) -> None:
    """Dates and ``no`` stay strings, keys become strings, tags create no objects, aliases and merge keys work."""
    read = read_yaml(text.encode(), max_depth=20, max_aliased=1_000_000)
    assert json.dumps(read, sort_keys=True) == json.dumps(value, sort_keys=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "line 2"),
        ("a: *nothing", "is undefined"),
        ("a: &x [*x]", "is undefined, or contains itself"),
        ("? [1, 2]\n: 3", "a key that is not a scalar"),
        ("[" * 200_000, "nested more than 20 levels"),
        ("a:\n" + "".join(f"{' ' * level}- \n" for level in range(1, 40)), "nested more than 20 levels"),
    ],
)
def test_invalid_yaml_is_an_error(text: str, message: str) -> None:
    """Also self-references, and endless brackets, which crash PyYAML's constructor."""
    with pytest.raises(YamlError, match=message):
        read_yaml(text.encode(), max_depth=20, max_aliased=1_000_000)


def test_the_expansion_of_aliases_is_limited() -> None:
    """Eight lines of ten aliases each would expand to a hundred million values."""
    tenfold = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 9))
    with pytest.raises(YamlError, match="aliases expand to more than 1,000,000 values"):
        read_yaml(f"x0: &x0 [1]\n{tenfold}".encode(), max_depth=20, max_aliased=1_000_000)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(alphabet=st.characters(codec="ascii")),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc<"), inner, max_size=3),
        max_leaves=10,
    )
)
def test_plain_values_survive_a_round_trip(value: object) -> None:
    """As PyYAML writes them, except the merge key."""
    if "<<" not in json.dumps(value):
        assert read_yaml(yaml.safe_dump(value).encode(), max_depth=20, max_aliased=1_000_000) == value
