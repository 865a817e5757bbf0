"""Forms as SDKs send them, and what is none."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers.simulator.multipart import FormError, read_form


def sent(name: str, content: bytes) -> tuple[str, bytes]:
    """A form as httpx writes it."""
    request = httpx.Request(
        "POST", "http://x.test", data={"purpose": "batch", "note": "grüß"}, files={"file": (name, content)}
    )
    return request.headers["content-type"], request.read()


@given(st.binary(max_size=500) | st.sampled_from([b"\r\n--", b"--\r\n\r\n", b"\r", b"\n\n"]))
def test_any_content_comes_through(content: bytes) -> None:
    """Byte for byte, line ends and dashes too."""
    form = read_form(*sent("a.bin", content))
    assert form.file("file") == ("a.bin", content)
    assert (form.text("purpose"), form.text("note")) == ("batch", "grüß")


@pytest.mark.parametrize("name", ["grüße.txt", 'a "b".txt', "[[sim:status=429 retry_after=2]].txt", "文件.pdf"])
def test_any_name_comes_through(name: str) -> None:
    """Other scripts, quotes, and directives."""
    assert read_form(*sent(name, b"x")).file("file")[0] == name


def test_what_is_no_form_is_refused() -> None:
    """Another type, no boundary, a body that is cut off, a field that is missing."""
    kind, body = sent("a", b"x")
    for wrong in (("application/json", body), ("multipart/form-data", body), (kind, body[:-10]), (kind, b"")):
        with pytest.raises(FormError):
            read_form(*wrong)
    form = read_form(kind, body)
    with pytest.raises(FormError, match="no field 'other'"):
        form.text("other")
    with pytest.raises(FormError, match="no file 'purpose'"):
        form.file("purpose")
