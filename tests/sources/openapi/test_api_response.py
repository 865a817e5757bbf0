"""An API's responses become answers."""

import base64
from contextlib import suppress
from typing import Any

import httpx
import pytest
from toold.protocol.error_codes import ProviderError, ResultTooLargeError
from toold.sources.openapi import api_response
from toold.sources.openapi.api_response import MAX_ANSWER_VALUES, error_message, read_answer, redact_secrets
from toold.tools import ToolOutput


def headers(content_type: str) -> httpx.Headers:
    return httpx.Headers({"content-type": content_type} if content_type else {})


@pytest.mark.parametrize(
    ("content_type", "content", "answer"),
    [
        ("application/json", b'{"a": 1}', ToolOutput(data={"a": 1})),
        ("application/problem+json; charset=utf-8", b"[1]", ToolOutput(data=[1])),
        ("application/json", b'"text"', ToolOutput(data="text")),
        ("", b'{"a": 1}', ToolOutput(data={"a": 1})),
        ("text/csv", b"a,b", "a,b"),
        ("text/plain; charset=latin-1", b"\xfc", "ü"),
        ("text/plain; charset=nonsense", b"x", "x"),
        ("text/plain; charset=undefined", b"x", "x"),
        ("text/plain; charset=idna", b"\xff", "\ufffd"),
        ("text/plain; charset=punycode", b"a-b", "a-b"),
        ("application/xml", b"<a/>", "<a/>"),
        ("application/json", b"", ToolOutput("HTTP 200, no content.", None)),
    ],
)
def test_json_and_text_are_returned(content_type: str, content: bytes, answer: Any) -> None:
    """JSON as data, text as text, and a note for an empty body."""
    assert read_answer(200, headers(content_type), content) == answer


@pytest.mark.parametrize("content_type", ["image/png", "application/octet-stream", ""])
def test_other_content_is_base64(content_type: str) -> None:
    """With its type and size."""
    answer = read_answer(200, headers(content_type), b"\x89PNG")
    assert isinstance(answer, ToolOutput)
    assert base64.b64decode(answer.data["base64"]) == b"\x89PNG"
    assert answer.data["bytes"] == 4


@pytest.mark.parametrize(
    ("charset", "content", "data"),
    [
        (
            "",
            b'[{"name": "Ann \\ud83d"}, {"name": "\\ud83d\\ude00 \\\\ud83d"}]',
            [{"name": "Ann \ufffd"}, {"name": "\U0001f600 \\ud83d"}],
        ),
        ("", b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ("; charset=iso-8859-1", b'{"a": "\xfc"}', {"a": "\xfc"}),
        ("", b'{"a": "\xfc"}', {"a": "\ufffd"}),
        ("", b'{"a": [NaN, -Infinity, 1e999, 1.5]}', {"a": [None, None, None, 1.5]}),
    ],
    ids=["half of a character", "byte order mark", "charset", "no utf-8", "no number"],
)
def test_common_deviations_from_json_are_accepted(charset: str, content: bytes, data: Any) -> None:
    """Undecodable characters become U+FFFD and invalid numbers null."""
    assert read_answer(200, headers(f"application/json{charset}"), content) == ToolOutput(data=data)


@pytest.mark.parametrize("content", [b'{"a": "\\ud83d"}', b'\xef\xbb\xbf{"a": 1}', b'{"a": 1'])
def test_the_slow_parser_is_used_for_odd_numbers_only(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """It takes ten times as long and blocks the loop."""
    monkeypatch.setattr(api_response, "json", None)
    with suppress(ProviderError):
        read_answer(200, headers("application/json"), content)


@pytest.mark.parametrize("content", [b"<html>", b'callback({"a": 1})', b'{"a": 1', b"[" * 100_000])
def test_invalid_json_is_an_error(content: bytes) -> None:
    """The call was executed nevertheless."""
    with pytest.raises(ProviderError, match="invalid JSON") as caught:
        read_answer(200, headers("application/json"), content)
    assert caught.value.executed == "yes"


@pytest.mark.parametrize(
    ("content_type", "content", "message"),
    [
        ("application/json", b'{"message": "No such contact", "code": 7}', "No such contact"),
        ("application/json", b'{"error": {"message": "Bad name"}}', "Bad name"),
        ("application/json", b'{"errors": [{"detail": "a"}, {"detail": "b"}]}', "a; b"),
        ("application/problem+json", b'{"title": "Gone", "detail": "Long ago"}', "Long ago"),
        ("application/json", b'{"odd": 1}', '{"odd": 1}'),
        ("text/html", b"<html><style>x{}</style><h1>Bad  Gateway</h1></html>", "Bad Gateway"),
        ("text/html", b"<h1>Oops</h1><script>if (a < b) {}", "Oops"),
        ("text/html", b"<SCRIPT src=x>f()</Script ><p>a < b</p>", "a < b"),
        ("application/json", b'{"message": "\\ud800"}', '{"message": "\\ud800"}'),
        ("text/plain", b"two\nlines", "two lines"),
        ("", b"\xff", "\ufffd"),
    ],
)
def test_the_error_message_is_one_line(content_type: str, content: bytes, message: str) -> None:
    """From any common format of errors."""
    assert error_message(headers(content_type), content)[0] == message


def test_the_length_of_the_error_message_is_limited() -> None:
    """To 500 characters."""
    assert len(error_message(headers("text/plain"), b"x" * 10_000)[0]) == 500


def test_the_secret_is_redacted() -> None:
    """If the API repeats it; short secrets could match by accident."""
    assert redact_secrets(["hunter2hunter2"], b'{"you sent": "hunter2hunter2"}') == '{"you sent": "…"}'.encode()
    assert redact_secrets(["a"], b"a") == b"a"
    assert redact_secrets([], b"a") == b"a"


@pytest.mark.parametrize(
    "message",
    [b'a/b"c\\d=e', b'a/b\\"c\\\\d=e', b'a\\/b\\"c\\\\d=e', b"a%2Fb%22c%5Cd%3De", b"a%2fb%22c%5cd%3de"],
)
def test_an_escaped_secret_is_redacted(message: bytes) -> None:
    """In JSON, with or without escaped slashes, and URL-encoded."""
    assert redact_secrets(['a/b"c\\d=e'], b"(" + message + b")") == "(…)".encode()


@pytest.mark.parametrize(
    "message",
    [
        rb"Ym9i\u002Bc2V/jcmV0Cg==",  # .NET
        rb"Ym9i+c2V/jcmV0Cg\u003d\u003d",  # Gson
        rb"Ym9i\u002bc2V\u002fjcmV0Cg\u003d\u003d",
        "".join(f"\\u{ord(char):04x}" for char in "Ym9i+c2V/jcmV0Cg==").encode(),
        "".join(f"%{ord(char):02x}" for char in "Ym9i+c2V/jcmV0Cg==").encode(),
    ],
)
def test_a_pair_of_basic_auth_is_redacted_however_it_is_escaped(message: bytes) -> None:
    """Encoders of JSON differ in what they escape."""
    assert redact_secrets(["Ym9i+c2V/jcmV0Cg=="], b"(" + message + b")") == "(…)".encode()


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-16"])
def test_a_secret_in_utf_16_is_redacted(charset: str) -> None:
    """The rest of the text can still be decoded."""
    content = redact_secrets(["hunter2hunter2"], "you sent hunter2hunter2!".encode(charset))
    assert content.decode(charset) == "you sent …!"


@pytest.mark.parametrize("part", ["<script ", "<", "<style><", "<a", "</script"])
def test_unclosed_tags_are_scanned_in_linear_time(part: str) -> None:
    """Backtracking from each tag would take minutes."""
    message, _ = error_message(headers("text/html"), part.encode() * 500_000)
    assert len(message) <= 500


@pytest.mark.parametrize("content_type", ["application/json", ""])
def test_an_answer_with_too_many_values_is_an_error(content_type: str) -> None:
    """It is not decoded: that would stop the event loop, also from a thread."""
    for number, fits in ((100_000, True), (MAX_ANSWER_VALUES + 1, False)):
        content = b"[%b]" % b",".join([b"[]"] * number)
        if fits:
            answer = read_answer(200, httpx.Headers({"content-type": content_type}), content)
            assert isinstance(answer, ToolOutput)
            assert answer.data == [[]] * number
        else:
            with pytest.raises(ResultTooLargeError, match="more than 1,000,000 values; request less"):
                read_answer(200, httpx.Headers({"content-type": content_type}), content)
