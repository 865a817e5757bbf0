"""Templates: values with references to other values."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.shaping_errors import LanguageError, MissingValueError, ShapingError
from toold.shaping.templates import MAX_DEPTH, MAX_FILLED_BYTES, compile_template

CONTEXT: dict[str, Any] = {
    "fetch": {"items": [{"id": 1, "name": "Ann"}, {"id": 2}], "none": None, "x.y": 3, "evil": "{{input.secret}}"},
    "list": [{"field": "f"}],
    "input": {"x": 5, "secret": "s", "flag": True, "text": "hello"},
    "item": {"id": 9},
    "index": 3,
    "my-step": 1.5,
}


def resolve(value: Any, context: dict[str, Any] = CONTEXT) -> Any:
    return compile_template(value).resolve(context)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        # a reference alone: the value with its type
        ("{{input.x}}", 5),
        ("{{ input.x }}", 5),
        ("{{\tinput.x\n}}", 5),
        ("{{fetch.items}}", CONTEXT["fetch"]["items"]),
        ("{{fetch.items[0].name}}", "Ann"),
        ("{{fetch.items[-1].id}}", 2),
        ("{{fetch.items[*].id}}", [1, 2]),
        ("{{fetch['x.y']}}", 3),
        ("{{list[0].field}}", "f"),
        ("{{item}}", {"id": 9}),
        ("{{index}}", 3),
        ("{{my-step}}", 1.5),
        ("{{fetch.none}}", None),
        ("{{input.flag}}", True),
        # a reference in text: text unchanged, other values as JSON
        ("no. {{index}}!", "no. 3!"),
        (" {{index}}", " 3"),
        ("{{input.text}}{{index}}", "hello3"),
        ("{{item}} {{fetch.none}} {{input.flag}}", '{"id":9} null true'),
        ("{{fetch.items[*].id}}.", "[1,2]."),
        # a default applies to missing values, not to null
        ("{{nope | default(0)}}", 0),
        ("{{nope.x|default( 'a }} b' )}}", "a }} b"),
        ('{{ nope | default("") }}', ""),
        ('{{nope | default([1, {"a": {}}])}}', [1, {"a": {}}]),
        ("{{nope | default(null)}}", None),
        ("{{nope | default(-1.5e2)}}!", "-150.0!"),
        ("{{index | default(0)}}", 3),
        ("{{fetch.none | default(1)}}", None),
        # text that is not a reference
        ("\\{{index}}", "{{index}}"),
        ("a \\{{ b {{index}}", "a {{ b 3"),
        ("\\\\{{index}}", "\\3"),
        ("\\\\\\{{index}}", "\\{{index}}"),
        ("a\\b }} {x} {", "a\\b }} {x} {"),
        ('{"a":{"b":1}}', '{"a":{"b":1}}'),
        ("", ""),
    ],
)
def test_a_template_resolves_to_its_value(template: str, value: Any) -> None:
    """Each entry of the table is a template and its value."""
    found = resolve(template)
    assert found == value
    assert type(found) is type(value)


def test_references_are_resolved_in_nested_values() -> None:
    """Text in objects and lists is resolved; all other values are unchanged."""
    value = {"a": ["{{index}}", 1, None, {"b": "x{{input.x}}"}], "c": True, "\\{{d": "plain"}
    before = copy.deepcopy(value)
    assert resolve(value) == {"a": [3, 1, None, {"b": "x5"}], "c": True, "{{d": "plain"}
    assert value == before


def test_a_template_lists_its_references() -> None:
    """``paths`` has each path once and in order, and ``names`` has the first name of each path."""
    template = compile_template(
        {"a": "{{fetch.items[0]}} {{input.x | default(1)}}", "b": ["{{fetch.items[0]}}", "{{item}}"]}
    )
    assert [str(path) for path in template.paths] == ["fetch.items[0]", "input.x", "item"]
    assert template.names == {"fetch", "input", "item"}
    assert compile_template({"a": ["b", 1]}).names == frozenset()
    assert compile_template("{{['a step'].x}}").names == {"a step"}


def test_a_template_can_be_resolved_repeatedly() -> None:
    """It is compiled once and uses the current values each time."""
    template = compile_template(["{{index}}", "plain"])
    assert [template.resolve({"index": number}) for number in range(3)] == [[0, "plain"], [1, "plain"], [2, "plain"]]


def test_a_missing_value_is_an_error() -> None:
    """The message suggests a similar name and shows how to write a default."""
    with pytest.raises(MissingValueError) as raised:
        resolve("{{fetch.item[0]}}")
    assert raised.value.reference == "fetch.item[0]"
    assert "`fetch` has no 'item'; did you mean 'items'?" in str(raised.value)
    assert "{{fetch.item[0] | default(null)}}" in str(raised.value)


@pytest.mark.parametrize(
    ("template", "position", "reported"),
    [
        ("{{}}", 3, "name of a field is missing"),
        ("x {{ }}", 6, "name of a field is missing"),
        ("{{a", 4, "at the end of the template"),
        ("{{a}", 4, "at the end of the template"),
        ("{{a b}}", 5, "at the end of the template"),
        ("{{{a}}}", 3, "name of a field is missing"),
        ("{{a.}}", 5, "name of a field is missing"),
        ("{{a[x]}}", 5, "an index, *"),
        ("{{[0].a}}", 8, "starts with a name"),
        ("{{a | upper}}", 7, "expected default(…) after |"),
        ("{{a | default}}", 14, "in parentheses"),
        ("{{a | default()}}", 15, "JSON value"),
        ("{{a | default(x)}}", 15, "JSON value"),
        ("{{a | default(1e999)}}", 15, "JSON value"),
        ("{{a | default(NaN)}}", 15, "JSON value"),
        ('{{a | default(["\\ud800"])}}', 15, "JSON value"),
        ("{{a | default(" + "[" * 100_000 + ")}}", 15, "JSON value"),
        ("{{a | default('x)}}", 15, "not closed"),
        ("{{a | default(1}}", 16, "not closed"),
        ("{{a | default(1) | default(2)}}", 18, "at the end of the template"),
        ("{{a + 1}}", 5, "at the end of the template"),
    ],
)
def test_an_invalid_template_is_an_error_with_its_position(template: str, position: int, reported: str) -> None:
    """The message contains an example."""
    with pytest.raises(LanguageError) as raised:
        compile_template(template)
    assert raised.value.position == position
    assert reported in raised.value.what
    assert "for example: {{" in str(raised.value)


def test_an_error_names_its_text() -> None:
    """The message begins with the path of the text within the value."""
    with pytest.raises(LanguageError, match=r"^args\.list\[1\]: expected | default"):
        compile_template({"args": {"list": ["fine", "{{a"]}})


def test_field_names_cannot_contain_templates() -> None:
    """The names of a call's arguments must be known before the run."""
    with pytest.raises(LanguageError, match=r"a: a field name cannot contain a template"):
        compile_template({"a": {"{{b}}": 1}})


def test_deep_nesting_is_rejected() -> None:
    """A deeply nested template is rejected when it is compiled, and a deeply nested value when it is written as
    text."""
    value: Any = "{{index}}"
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    with pytest.raises(LanguageError, match=f"at most {MAX_DEPTH} deep"):
        compile_template(value)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ShapingError, match="nested too deeply"):
        resolve("x {{deep}}", {"deep": deep})


def test_resolved_data_is_not_scanned_again() -> None:
    """A result of one tool cannot insert a secret into the arguments of the next tool."""
    assert resolve("{{fetch.evil}}") == "{{input.secret}}"
    assert resolve("got {{fetch.evil}}{{fetch.evil}}") == "got {{input.secret}}{{input.secret}}"
    assert resolve("{{nope | default('{{input.secret}}')}}") == "{{input.secret}}"
    assert resolve("{{a}}{{b}}", {"a": "{{", "b": "a}}"}) == "{{a}}"


braced = (
    st.lists(st.sampled_from(["{{", "}}", "a", "secret", "\\", " ", "|", "default(1)", "'"])).map("".join) | st.text()
)
data = st.recursive(
    braced, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(braced, inner, max_size=2), max_leaves=5
)


@given(data, braced.filter(lambda text: "{{" not in text and not text.endswith(("\\", "{"))))
def test_data_is_inserted_unchanged(value: Any, around: str) -> None:
    """Braces in the data have no effect, whether the reference is alone or in text."""
    context = {"a": value, "secret": "s"}
    before = copy.deepcopy(context)
    assert resolve("{{a}}", context) == value
    written = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    assert resolve(f"{around}{{{{a}}}}|{{{{a}}}}{around}", context) == f"{around}{written}|{written}{around}"
    assert context == before


@given(st.text() | braced)
def test_any_text_is_a_template_or_a_language_error(text: str) -> None:
    """The parser raises only LanguageError; text without double braces resolves to itself."""
    try:
        template = compile_template(text)
    except LanguageError:
        return
    if "{{" not in text:
        assert template.resolve({}) == text


@pytest.mark.parametrize("template", [["{{x}}"] * 11, "{{x}}" * 11, {"a": ["{{x}} and {{x}}"] * 6}])
def test_a_result_that_is_too_large_is_not_built(template: Any) -> None:
    """Each use of a value counts, and the error is raised before the result is built."""
    value = ["y" * (MAX_FILLED_BYTES // 10)]
    with pytest.raises(ShapingError, match=r"exceed 20,971,520 bytes together, with x; refer to smaller parts"):
        resolve(template, {"x": value})
    assert resolve(["{{x}}"] * 9, {"x": value}) == [value] * 9


WORDS = '{"rows": [{"n": 1}, {"n": "{{input.secret}}"}], "words": "[5]"}'
SAID = {WORDS: msgspec.json.decode(WORDS)}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{x}}", WORDS),
        ("{{x}}!", f"{WORDS}!"),
        ("{{x.rows[0].n}}", 1),
        ("{{x.rows[1].n}}", "{{input.secret}}"),
        ("{{x.rows[*].n}}.", '[1,"{{input.secret}}"].'),
        ("{{x.words}}", "[5]"),
        ("{{x.words[0] | default(0)}}", 0),
        ("{{all}}", [WORDS, "b"]),
        ("{{all[0]}}", WORDS),
        ("{{all[*].rows[0].n}}", [1]),
    ],
)
def test_a_path_can_select_from_json_text(template: str, value: Any) -> None:
    """A path continues into the parsed value of a text.

    A reference to the whole text returns the text, and neither is scanned for templates.
    """
    context = {"x": WORDS, "all": [WORDS, "b"], "input": {"secret": "s"}}
    assert compile_template(template).resolve(context, SAID) == value


def test_a_missing_field_of_json_text_gets_suggestions() -> None:
    """The error suggests a field of the parsed value."""
    with pytest.raises(MissingValueError, match="`x` has no 'row'; did you mean 'rows'"):
        compile_template("{{x.row}}").resolve({"x": WORDS}, SAID)


def test_parsed_json_text_counts_towards_the_size() -> None:
    """Each use counts."""
    said = {"[]": ["x" * 1000]}
    with pytest.raises(ShapingError, match="bytes together"):
        compile_template("{{x[0]}}" * (MAX_FILLED_BYTES // 1000 + 1)).check_size({"x": "[]"}, said)
