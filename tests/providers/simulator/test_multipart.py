"""Parsing of multipart forms, as SDKs send them."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers.simulator.multipart import FormError, read_form


def sent(name: str, content: bytes) -> tuple[str, bytes]:
    """A form as httpx encodes it."""
    request = httpx.Request(
        "POST", "http://x.test", data={"purpose": "batch", "note": "grüß"}, files={"file": (name, content)}
    )
    return request.headers["content-type"], request.read()


@given(st.binary(max_size=500) | st.sampled_from([b"\r\n--", b"--\r\n\r\n", b"\r", b"\n\n"]))
def test_any_file_content_is_preserved(content: bytes) -> None:
    """Any bytes are preserved, including line ends and dashes."""
    form = read_form(*sent("a.bin", content))
    assert form.file("file") == ("a.bin", content)
    assert (form.text("purpose"), form.text("note")) == ("batch", "grüß")


@pytest.mark.parametrize("name", ["grüße.txt", 'a "b".txt', "[[sim:status=429 retry_after=2]].txt", "文件.pdf"])
def test_any_file_name_is_preserved(name: str) -> None:
    """Other scripts, quotes and directives in a file name are preserved."""
    assert read_form(*sent(name, b"x")).file("file")[0] == name


def test_invalid_forms_are_refused() -> None:
    """A different content type, a missing boundary, a truncated body and a missing field are refused."""
    kind, body = sent("a", b"x")
    for wrong in (("application/json", body), ("multipart/form-data", body), (kind, body[:-10]), (kind, b"")):
        with pytest.raises(FormError):
            read_form(*wrong)
    form = read_form(kind, body)
    with pytest.raises(FormError, match="no field 'other'"):
        form.text("other")
    with pytest.raises(FormError, match="no file 'purpose'"):
        form.file("purpose")
