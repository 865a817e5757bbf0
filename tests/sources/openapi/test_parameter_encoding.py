"""Arguments become addresses and headers, in OpenAPI's styles; the expected ones are its specification's examples."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.sources.openapi.api_operation import ApiOperation
from toold.sources.openapi.parameter_encoding import encode_headers, encode_url

LIST = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200}


def operation(read_one: Any, where: str, path: str = "/x", **fields: Any) -> ApiOperation:
    made: ApiOperation = read_one(
        {"parameters": [{"name": "color", "in": where, "schema": {}, "required": True, **fields}]},
        method="get",
        path=path,
    )
    return made


@pytest.mark.parametrize(
    ("style", "explode", "value", "query"),
    [
        ("form", True, "blue", "color=blue"),
        ("form", True, LIST, "color=blue&color=black&color=brown"),
        ("form", False, LIST, "color=blue,black,brown"),
        ("form", True, OBJECT, "R=100&G=200"),
        ("form", False, OBJECT, "color=R,100,G,200"),
        ("form", False, ["a,b", "c&d"], "color=a%2Cb,c%26d"),
        ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200"),
        ("pipeDelimited", False, OBJECT, "color=R%7C100%7CG%7C200"),
        ("spaceDelimited", False, LIST, "color=blue%20black%20brown"),
        ("pipeDelimited", False, LIST, "color=blue%7Cblack%7Cbrown"),
        ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200"),
        ("deepObject", True, {"a": {"b": [1, 2]}}, "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D=2"),
        ("form", True, True, "color=true"),
        ("form", True, None, "color="),
        ("form", True, 1.5, "color=1.5"),
        ("form", True, "a b&c=ü", "color=a%20b%26c%3D%C3%BC"),
    ],
)
def test_the_query_has_each_style(style: str, explode: bool, value: Any, query: str, read_one: Any) -> None:
    """Strings, arrays and objects, exploded or not."""
    made = operation(read_one, "query", style=style, explode=explode)
    assert encode_url(made, {"color": value}) == f"https://crm.example/v1/x?{query}"


@pytest.mark.parametrize(
    ("style", "explode", "value", "path"),
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, LIST, "blue,black,brown"),
        ("simple", False, OBJECT, "R,100,G,200"),
        ("simple", True, OBJECT, "R=100,G=200"),
        ("label", False, "blue", ".blue"),
        ("label", False, LIST, ".blue,black,brown"),
        ("label", True, LIST, ".blue.black.brown"),
        ("label", True, OBJECT, ".R=100.G=200"),
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, LIST, ";color=blue,black,brown"),
        ("matrix", True, LIST, ";color=blue;color=black;color=brown"),
        ("matrix", True, OBJECT, ";R=100;G=200"),
    ],
)
def test_the_path_has_each_style(style: str, explode: bool, value: Any, path: str, read_one: Any) -> None:
    """Strings, arrays and objects, exploded or not."""
    made = operation(read_one, "path", "/x/{color}/y", style=style, explode=explode)
    assert encode_url(made, {"color": value}) == f"https://crm.example/v1/x/{path}/y"


@pytest.mark.parametrize("value", ["", ".", "..", "../x", "x/../../y", "..\\x", "x/.", [], None])
def test_a_path_value_cannot_change_the_operation(value: Any, read_one: Any) -> None:
    """Empty and dot values are refused: DELETE /x/{id} must not become DELETE /x/."""
    with pytest.raises(InvalidArgumentsError, match=r"^color .* another operation") as refused:
        encode_url(operation(read_one, "path", "/x/{color}"), {"color": value})
    assert refused.value.details is not None
    assert list(refused.value.details["fields"]) == ["color"]


@given(st.text(min_size=1).filter(lambda text: not {".", ".."} & set(re.split(r"[/\\]", text)) and text.isprintable()))
def test_any_text_stays_within_its_path_segment(read_one: Any, text: str) -> None:
    """Slashes, question marks and fragments are encoded."""
    url = encode_url(operation(read_one, "path", "/x/{color}/y"), {"color": text})
    parts = urlsplit(url)
    assert parts.path.startswith("/v1/x/")
    assert parts.path.endswith("/y")
    assert parts.path.count("/") == 4
    assert not parts.query
    assert not parts.fragment


def test_a_path_may_have_a_query(read_one: Any) -> None:
    """The document's query comes before the arguments."""
    made = operation(read_one, "query", "/x?api=2")
    assert parse_qsl(urlsplit(encode_url(made, {"color": "blue"})).query) == [("api", "2"), ("color", "blue")]
    assert encode_url(made, {}) == "https://crm.example/v1/x?api=2"


@pytest.mark.parametrize(
    ("explode", "value", "header"),
    [
        (False, "blue", "blue"),
        (False, LIST, "blue,black,brown"),
        (False, OBJECT, "R,100,G,200"),
        (True, OBJECT, "R=100,G=200"),
        (False, 7, "7"),
    ],
)
def test_headers_have_the_simple_style(explode: bool, value: Any, header: str, read_one: Any) -> None:
    """Exploded or not."""
    made = operation(read_one, "header", explode=explode)
    assert encode_headers(made, {"color": value}) == {"color": header}


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "ü", "\x00"])
def test_header_injection_is_refused(value: str, read_one: Any) -> None:
    """The error names the argument."""
    with pytest.raises(InvalidArgumentsError, match="color must be printable ASCII"):
        encode_headers(operation(read_one, "header"), {"color": value})


def test_cookies_are_one_header(read_one: Any) -> None:
    """Several of them, encoded."""
    parameters: Any = [{"name": name, "in": "cookie", "schema": {}} for name in ("a", "b")]
    made = read_one({"parameters": parameters}, method="get")
    assert encode_headers(made, {"a": "1; x", "b": 2}) == {"Cookie": "a=1%3B%20x; b=2"}
    assert encode_headers(made, {}) == {}


def test_a_json_parameter_is_encoded(read_one: Any) -> None:
    """In the query and in the path."""
    content: Any = {"application/json": {"schema": {}}}
    parameters = [{"name": name, "in": where, "content": content} for name, where in (("q", "query"), ("p", "path"))]
    made = read_one({"parameters": parameters}, method="get", path="/x/{p}")
    assert encode_url(made, {"q": {"a": 1}, "p": [1]}) == "https://crm.example/v1/x/%5B1%5D?q=%7B%22a%22%3A%201%7D"


@pytest.mark.parametrize(
    ("style", "value", "query"),
    [
        ("form", "https://a.example/x?y=1,2;(z)*", "color=https://a.example/x?y=1,2;(z)*"),
        ("form", "a&b=1#c [d]+%2F%", "color=a%26b=1%23c%20%5Bd%5D%2B%2F%25"),
        ("pipeDelimited", ["a/b", "c:d"], "color=a/b%7Cc:d"),
    ],
)
def test_reserved_characters_may_be_allowed(style: str, value: Any, query: str, read_one: Any) -> None:
    """``allowReserved`` keeps them and percent triples, except those that would end the query or add a parameter."""
    made = operation(read_one, "query", style=style, explode=False, allowReserved=True)
    assert encode_url(made, {"color": value}) == f"https://crm.example/v1/x?{query}"
