"""Values with places in them that are filled from other values."""

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
        # alone: the value itself, with its type
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
        # in text: text as it is, all else as JSON
        ("no. {{index}}!", "no. 3!"),
        (" {{index}}", " 3"),
        ("{{input.text}}{{index}}", "hello3"),
        ("{{item}} {{fetch.none}} {{input.flag}}", '{"id":9} null true'),
        ("{{fetch.items[*].id}}.", "[1,2]."),
        # defaults, of what is missing and not of null
        ("{{nope | default(0)}}", 0),
        ("{{nope.x|default( 'a }} b' )}}", "a }} b"),
        ('{{ nope | default("") }}', ""),
        ('{{nope | default([1, {"a": {}}])}}', [1, {"a": {}}]),
        ("{{nope | default(null)}}", None),
        ("{{nope | default(-1.5e2)}}!", "-150.0!"),
        ("{{index | default(0)}}", 3),
        ("{{fetch.none | default(1)}}", None),
        # what is none
        ("\\{{index}}", "{{index}}"),
        ("a \\{{ b {{index}}", "a {{ b 3"),
        ("\\\\{{index}}", "\\3"),
        ("\\\\\\{{index}}", "\\{{index}}"),
        ("a\\b }} {x} {", "a\\b }} {x} {"),
        ('{"a":{"b":1}}', '{"a":{"b":1}}'),
        ("", ""),
    ],
)
def test_a_template_becomes_what_it_refers_to(template: str, value: Any) -> None:
    """One line of the table: the text, and what becomes of it."""
    found = resolve(template)
    assert found == value
    assert type(found) is type(value)


def test_templates_are_found_in_the_whole_value() -> None:
    """In texts within objects and lists; all else stays as it is."""
    value = {"a": ["{{index}}", 1, None, {"b": "x{{input.x}}"}], "c": True, "\\{{d": "plain"}
    before = copy.deepcopy(value)
    assert resolve(value) == {"a": [3, 1, None, {"b": "x5"}], "c": True, "{{d": "plain"}
    assert value == before


def test_a_template_knows_what_it_refers_to() -> None:
    """Before anything is there: its paths, each once and in order, and the names that have to be known."""
    template = compile_template(
        {"a": "{{fetch.items[0]}} {{input.x | default(1)}}", "b": ["{{fetch.items[0]}}", "{{item}}"]}
    )
    assert [str(path) for path in template.paths] == ["fetch.items[0]", "input.x", "item"]
    assert template.names == {"fetch", "input", "item"}
    assert compile_template({"a": ["b", 1]}).names == frozenset()
    assert compile_template("{{['a step'].x}}").names == {"a step"}


def test_a_template_resolves_as_often_as_one_likes() -> None:
    """Compiled once; each time with what is there then."""
    template = compile_template(["{{index}}", "plain"])
    assert [template.resolve({"index": number}) for number in range(3)] == [[0, "plain"], [1, "plain"], [2, "plain"]]


def test_what_is_missing_is_an_error_that_says_what_is_there() -> None:
    """And how a default is written."""
    with pytest.raises(MissingValueError) as raised:
        resolve("{{fetch.item[0]}}")
    assert raised.value.reference == "fetch.item[0]"
    assert "`fetch` has no 'item'; did you mean 'items'?" in str(raised.value)
    assert "{{fetch.item[0] | default(null)}}" in str(raised.value)


@pytest.mark.parametrize(
    ("template", "position", "told"),
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
        ("{{a | default(" + "[" * 100_000 + ")}}", 15, "JSON value"),
        ("{{a | default('x)}}", 15, "not closed"),
        ("{{a | default(1}}", 16, "not closed"),
        ("{{a | default(1) | default(2)}}", 18, "at the end of the template"),
        ("{{a + 1}}", 5, "at the end of the template"),
    ],
)
def test_what_cannot_be_parsed_is_an_error_with_its_place(template: str, position: int, told: str) -> None:
    """And an example; text that means braces is shown the way to write them."""
    with pytest.raises(LanguageError) as raised:
        compile_template(template)
    assert raised.value.position == position
    assert told in raised.value.what
    assert "for example: {{" in str(raised.value)


def test_an_error_says_in_which_text_it_is() -> None:
    """By the path of the text in the value."""
    with pytest.raises(LanguageError, match=r"^args\.list\[1\]: expected | default"):
        compile_template({"args": {"list": ["fine", "{{a"]}})


def test_names_of_fields_hold_no_templates() -> None:
    """Nobody could tell which arguments a call has."""
    with pytest.raises(LanguageError, match=r"a: a field name cannot contain a template"):
        compile_template({"a": {"{{b}}": 1}})


def test_what_is_nested_too_deeply_is_refused() -> None:
    """Before anything runs; and what is filled in, when it is written as text."""
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
    """What a tool answered cannot make the next one be asked with a secret."""
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
def test_data_goes_in_as_it_is(value: Any, around: str) -> None:
    """Whatever braces it holds, alone and within text."""
    context = {"a": value, "secret": "s"}
    before = copy.deepcopy(context)
    assert resolve("{{a}}", context) == value
    written = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    assert resolve(f"{around}{{{{a}}}}|{{{{a}}}}{around}", context) == f"{around}{written}|{written}{around}"
    assert context == before


@given(st.text() | braced)
def test_any_text_is_a_template_or_an_error_of_the_language(text: str) -> None:
    """The parser raises nothing else; and text without double braces is itself."""
    try:
        template = compile_template(text)
    except LanguageError:
        return
    if "{{" not in text:
        assert template.resolve({}) == text


@pytest.mark.parametrize("template", [["{{x}}"] * 11, "{{x}}" * 11, {"a": ["{{x}} and {{x}}"] * 6}])
def test_what_would_be_filled_in_too_large_is_not_filled_in(template: Any) -> None:
    """Each use counts: what templates put together is told to be too large before it is made."""
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
def test_a_path_goes_on_into_what_a_text_says(template: str, value: Any) -> None:
    """Where it is given what that says; the text alone stays, and neither it nor what it says is looked at for more."""
    context = {"x": WORDS, "all": [WORDS, "b"], "input": {"secret": "s"}}
    assert compile_template(template).resolve(context, SAID) == value


def test_what_a_text_lacks_is_told_by_what_it_says() -> None:
    """With the fields that are there."""
    with pytest.raises(MissingValueError, match="`x` has no 'row'; did you mean 'rows'"):
        compile_template("{{x.row}}").resolve({"x": WORDS}, SAID)


def test_what_a_text_says_counts_as_filled_in() -> None:
    """As often as it is used."""
    said = {"[]": ["x" * 1000]}
    with pytest.raises(ShapingError, match="bytes together"):
        compile_template("{{x[0]}}" * (MAX_FILLED_BYTES // 1000 + 1)).check_size({"x": "[]"}, said)
