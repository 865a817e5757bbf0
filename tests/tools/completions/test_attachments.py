"""Files and images of a question: reading, names, line numbers and errors."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError
from toold.tools.completions import attachments, read_bytes, read_files, read_images
from toold.tools.completions.attachments import number_lines

if TYPE_CHECKING:
    from tests.tools.tool_context import Context


async def test_files_are_named_relative_to_the_root(context: "Context", write: Callable[..., Path]) -> None:
    """Files are returned unchanged, or with a number before each line."""
    write("src/a.py", "one\n\ntwo")
    (plain,) = await read_files(["src/a.py"], context)
    assert (plain.name, plain.text) == ("src/a.py", "one\n\ntwo")
    (numbered,) = await read_files(["src/../src/a.py"], context, numbered=True)
    assert (numbered.name, numbered.text) == ("src/a.py", "1| one\n2| \n3| two\n")


async def test_lines_are_numbered_off_the_event_loop(
    context: "Context", write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbering a large file takes time, so it runs in a thread and does not block other calls."""
    threads: list[int] = []

    def watched(text: str) -> str:
        threads.append(threading.get_ident())
        return number_lines(text)

    monkeypatch.setattr(attachments, "number_lines", watched)
    write("a.py", "one\n")
    (numbered,) = await read_files(["a.py"], context, numbered=True)
    assert numbered.text == "1| one\n"
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("read", [read_files, read_images])
async def test_error_names_the_argument_and_the_item(context: "Context", read: Callable[..., object]) -> None:
    """The error uses the name of the tool's own argument, which differs between tools."""
    with pytest.raises(NotFoundError, match=r"^relevant_files\.0: 'gone.py' does not exist") as caught:
        await read(["gone.py"], context, field="relevant_files")  # type: ignore[misc] # one of two async functions
    assert caught.value.details is not None
    assert list(caught.value.details["fields"]) == ["relevant_files.0"]


@pytest.mark.parametrize("address", ["http://example.com/a.png", "file:///a.png", "data:text/plain,a"])
async def test_unsupported_image_url_is_refused(context: "Context", address: str) -> None:
    """The error names the supported URLs instead of reporting a missing file."""
    with pytest.raises(
        InvalidArgumentsError, match=r"^images\.0: '.*' is not a supported image URL; .* https: or data:image/ URL"
    ):
        await read_images([address], context)


async def test_single_file_is_read_as_bytes(context: "Context", write: Callable[..., Path]) -> None:
    """A single file is read regardless of its content. Errors name the argument."""
    write("a.bin", b"\0\xff")
    assert (await read_bytes("a.bin", context, max_bytes=2, field="file")).content == b"\0\xff"
    with pytest.raises(InvalidArgumentsError, match=r"^file: 'a.bin' has 2 bytes; 1 are allowed"):
        await read_bytes("a.bin", context, max_bytes=1, field="file")


def test_line_numbers_are_aligned() -> None:
    """All numbers have the width of the last one, so that the code stays aligned."""
    lines = number_lines("x\n" * 10).splitlines()
    assert (lines[0], lines[-1]) == (" 1| x", "10| x")
    assert number_lines("") == ""


@given(st.lists(st.text("ab |1\t", max_size=5)))
def test_nth_line_has_number_n(lines: list[str]) -> None:
    """The text after the n-th number is the n-th line."""
    text = "".join(f"{line}\n" for line in lines)
    for number, numbered in enumerate(number_lines(text).split("\n")[:-1], 1):
        before, _, line = numbered.partition("| ")
        assert (int(before), line) == (number, lines[number - 1])
