"""The words of the command line are converted to a tool's arguments."""

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.call_arguments import ArgumentWord, bind, coerce, parse_word

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"Level": {"enum": ["low", "high"]}, "Loop": {"$ref": "#/$defs/Loop"}},
    "properties": {
        "text": {"type": "string"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "some": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "flag": {"type": "boolean"},
        "either": {"type": ["integer", "boolean"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "numbers": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "one_or_more": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "table": {"type": "object"},
        "level": {"$ref": "#/$defs/Level"},
        "fixed": {"const": 7},
        "provider": {"anyOf": [{"enum": ["kimi", "glm"], "type": "string"}, {"type": "null"}]},
        "degree": {"oneOf": [{"type": "number"}, {"type": "string", "enum": ["auto"]}]},
        "any": {},
        "loop": {"$ref": "#/$defs/Loop"},
    },
    "additionalProperties": False,
}


def read(*words: str) -> dict[str, Any]:
    return bind("tool", SCHEMA, [parse_word(word) for word in words])


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("text=hello", "text", "hello"),
        ("text=7", "text", "7"),
        ("text=null", "text", "null"),
        ("text=", "text", ""),
        ("text=a=b", "text", "a=b"),
        ("maybe=null", "maybe", "null"),
        ("maybe:=null", "maybe", None),
        ("count=-7", "count", -7),
        ("ratio=0.5", "ratio", 0.5),
        ("ratio=1e3", "ratio", 1000.0),
        ("ratio=2", "ratio", 2),
        ("some=null", "some", None),
        ("some=3", "some", 3),
        ("flag=true", "flag", True),
        ("flag=No", "flag", False),
        ("flag=1", "flag", True),
        ("either=1", "either", 1),
        ("either=on", "either", True),
        ("tags=one", "tags", ["one"]),
        ('tags=["a","b"]', "tags", ["a", "b"]),
        ("tags=[1]", "tags", ["[1]"]),
        ("tags=[1].txt", "tags", ["[1].txt"]),
        ("numbers=5", "numbers", [5]),
        ("numbers=[5, 6]", "numbers", [5, 6]),
        ("numbers=null", "numbers", None),
        ("one_or_more=a", "one_or_more", "a"),
        ('table={"a": 1}', "table", {"a": 1}),
        ("level=high", "level", "high"),
        ("fixed=7", "fixed", 7),
        ("provider=glm", "provider", "glm"),
        ("provider=null", "provider", None),
        ("degree=auto", "degree", "auto"),
        ("degree=5", "degree", 5),
        ("any=5", "any", "5"),
        ("any:=5", "any", 5),
        ('any:={"a": [1, null]}', "any", {"a": [1, None]}),
        ("loop=x", "loop", "x"),
    ],
)
def test_a_value_is_converted_to_the_schemas_type(word: str, key: str, value: Any) -> None:
    """Text stays text if the schema allows text; otherwise it is read as the schema's type. ``:=`` takes JSON."""
    arguments = read(word)
    assert arguments == {key: value}
    assert type(arguments[key]) is type(value)


def test_a_repeated_key_makes_an_array() -> None:
    """Each word is one element: read by the schema of the elements, or as JSON after ``:=``."""
    assert read("tags=a", "tags=b", "numbers=1", "numbers:=2") == {"tags": ["a", "b"], "numbers": [1, 2]}
    assert read("one_or_more=a", "one_or_more=b") == {"one_or_more": ["a", "b"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count=many"], "argument 'count' must be an integer, not 'many'"),
        (["count=1_000"], "must be an integer"),
        (["count=1.5"], "must be an integer"),
        (["ratio=NaN"], "must be a number"),
        (["ratio=true"], "must be a number"),
        (["flag=maybe"], "must be a boolean"),
        (["numbers=a"], "must be an integer"),
        (["table=[1]"], "must be an object"),
        (["some=x"], "must be an integer or null"),
        (["provider=glmm"], "'provider' must be kimi or glm or null, not 'glmm'; did you mean 'glm'?"),
        (["level=middle"], "'level' must be low or high, not 'middle'"),
        (["fixed=8"], "'fixed' must be 7, not '8'"),
        (["text=Gr\udcfc\udcdfe"], "'text' is not UTF-8 text; set a UTF-8 locale"),
        (["count=1", "count=2"], "given 2 times"),
        (["text:=hello"], "not JSON"),
        (["text:=NaN"], "not JSON"),
        (["any:=" + "[" * 100_000], "not JSON"),
        (["hello"], "write key=value"),
        (["=x"], "write key=value"),
        ([":=1"], "write key=value"),
        (["text=@/nowhere/at/all"], "cannot read the file"),
    ],
)
def test_a_wrong_word_is_refused_by_name(words: list[str], message: str) -> None:
    """An invalid word is refused before anything is sent; the message names it and what is accepted."""
    with pytest.raises(click.UsageError) as refused:
        read(*words)
    assert message in refused.value.message


def test_a_missing_argument_is_named() -> None:
    """A missing required argument is named."""
    with pytest.raises(click.UsageError, match=r"'tool' needs text=… count=…"):
        bind("tool", SCHEMA | {"required": ["text", "count", "flag"]}, [ArgumentWord("flag", "yes", is_json=False)])


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object"}, "5"),
        ({"properties": {"x": {}}, "additionalProperties": True}, "5"),
        ({"properties": {"x": {}}, "additionalProperties": {"type": "integer"}}, 5),
    ],
)
def test_an_open_schema_accepts_unlisted_names(schema: dict[str, Any], value: object) -> None:
    """A tool that takes anything gets anything, read by the schema of the rest where there is one."""
    assert bind("tool", schema, [ArgumentWord("other", "5", is_json=False)]) == {"other": value}


def test_an_open_schema_refuses_a_misspelt_name() -> None:
    """The daemon would take it, so the command line asks."""
    schema = {"properties": {"text": {}}, "additionalProperties": True}
    with pytest.raises(click.UsageError, match="did you mean 'text'"):
        bind("tool", schema, [ArgumentWord("txt", "a", is_json=False)])


def test_a_closed_schema_leaves_unlisted_names_to_the_daemon() -> None:
    """It may know them as names of earlier servers; then it also decides whether an argument is missing."""
    schema = SCHEMA | {"required": ["text"], "additionalProperties": False}
    words = [("former", "true", False), ("paths", "a", False), ("paths", "b", False), ("more", "[1]", True)]
    sent = bind("tool", schema, [ArgumentWord(*word) for word in words])
    assert sent == {"former": "true", "paths": ["a", "b"], "more": [1]}


def test_files_and_standard_input_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``@file`` is the file's text, ``:=@file`` its JSON, and ``@-`` standard input."""
    import io

    text, data = tmp_path / "text.txt", tmp_path / "data.json"
    text.write_text("Grüße\n", "utf-8")
    data.write_text("[1, 2]", "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("from outside"))
    words = (f"text=@{text}", f"numbers:=@{data}", "maybe=@-")
    assert read(*words) == {"text": "Grüße\n", "numbers": [1, 2], "maybe": "from outside"}


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are refused; the message explains text that starts with @."""
    (tmp_path / "image").write_bytes(b"\xff\xd8")
    with pytest.raises(click.UsageError, match=r"not UTF-8.*text:="):
        read(f"text=@{tmp_path / 'image'}")


@given(st.text().filter(lambda text: not text.startswith("@")))
def test_any_text_is_unchanged_for_a_string_argument(text: str) -> None:
    """If the schema takes strings, any text is passed unchanged."""
    assert read(f"text={text}", f"maybe={text}", f"any={text}") == {"text": text, "maybe": text, "any": text}


@given(st.integers())
def test_any_integer_is_unchanged(number: int) -> None:
    """Integers of any size come through."""
    assert coerce("count", str(number), {"type": "integer"}, {}) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_is_unchanged(number: float) -> None:
    """Numbers in JSON's notation come through unchanged."""
    value = coerce("ratio", json.dumps(number), {"type": "number"}, {})
    assert math.isclose(value, number, rel_tol=0, abs_tol=0)


@given(st.text(), st.sampled_from(sorted(SCHEMA["properties"])))
def test_any_text_for_any_argument_is_a_value_or_a_usage_error(text: str, key: str) -> None:
    """Any text either becomes a value or is a usage error; it causes no other exception."""
    with suppress(click.UsageError):
        coerce(key, text, SCHEMA["properties"][key], SCHEMA)
