"""Preparation of a program's text: unsupported attributes are rewritten, and line numbers do not change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sandbox import MAX_CODE_BYTES, Program, ProgramModule, ProgramStoppedError
from toold.sandbox.program import prepare, rewritten

CRM = {"crm": ProgramModule(frozenset({"search"}), lambda _chosen: "")}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("return e.code", "return toold_failure(e).code"),
        ("if e.code == 'X': pass", "if toold_failure(e).code == 'X': pass"),
        (
            "print(f'{e.code}: {error.message!r}')",
            "print(f'{toold_failure(e).code}: {toold_failure(error).message!r}')",
        ),
        ("x = rf'{e.code}'", "x = rf'{toold_failure(e).code}'"),
        ("f'{{{e.code}}}'", "f'{{{toold_failure(e).code}}}'"),
        ("f\"{', '.join(e.code for e in a)}\"", "f\"{', '.join(toold_failure(e).code for e in a)}\""),
        ("await asyncio.gather(a, b)", "await toold_gather(a, b)"),
        ("from asyncio import gather  # x", "pass# x"),
        ("from asyncio import sleep, gather\nx", "from asyncio import sleep\nx"),
        ("from asyncio import gather as g, sleep as s\nx", "from asyncio import sleep as s; g = toold_gather\nx"),
        ("from asyncio import (\n    gather,\n    sleep,\n)\nx", "from asyncio import sleep\n\n\n\nx"),
    ],
)
def test_unsupported_attributes_are_rewritten_as_function_calls(code: str, expected: str) -> None:
    """The rewriting includes expressions in f-strings."""
    assert rewritten(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "'e.code'",
        '"""asyncio.gather and e.code"""',
        "# e.code",
        "'it\\'s e.code'",
        "self.code",
        "self.code = 1",
        "e.code = 1",
        "e.code()",
        "a.b.code",
        "e.codes",
        "my_asyncio.gather(x)",
        "from asyncio import sleep, run",
        "from asyncio import \\\n    gather",
        "from asyncio import (sleep,\n    run)",
        "from my_asyncio import gather",
        "f'e.code'",
        "b'e.code'",
        "f'{{e.code}}'",
        "f\"{row['e.code']}\"",
    ],
)
def test_other_code_is_unchanged(code: str) -> None:
    """Literals, comments, assignments, calls and other names are not rewritten."""
    assert rewritten(code) == code


@given(st.text(alphabet=st.sampled_from("e.code asyncio.gather{}'\"\\\n#f=()"), max_size=80))
def test_line_numbers_do_not_change(code: str) -> None:
    """Errors refer to lines, so rewriting keeps the number of lines for any text."""
    assert rewritten(code).count("\n") == code.count("\n")


def test_a_program_imports_the_modules_that_it_names() -> None:
    """The import line in front of the program is not counted in line numbers."""
    prepared = prepare(Program("x = 1\nreturn await crm.search(query=e.code)", CRM | {"other": CRM["crm"]}))
    assert prepared.text.startswith("import asyncio, crm\nx = 1\n")
    assert list(prepared.modules) == ["crm"]
    assert prepared.source(3) == "return await crm.search(query=e.code)"
    assert prepared.text.split("\n")[2] == "return await crm.search(query=toold_failure(e).code)"
    assert prepared.line_at(prepared.text.index("search")) == 2
    assert prepared.source(99) == ""


@pytest.mark.parametrize(
    ("before", "place"),
    [
        ("x = await ", 4),
        ("await (\n    ", 0),
        ("é, await(", 3),
        ("x = ", None),
        ("my_await(", None),
        ("o.await(", None),
    ],
)
def test_the_await_before_a_call_is_found(before: str, place: int | None) -> None:
    """The position is in bytes; a name that ends in ``await`` does not match."""
    prepared = prepare(Program(f"{before}crm.search()", {}))
    head, _, _ = prepared.text.partition(before)
    result = prepared.await_before(len(f"{head}{before}".encode()))
    assert result == (None if place is None else len(f"{head}{before[:place]}".encode()))


def test_code_that_is_too_long_is_rejected() -> None:
    """The message gives both sizes in bytes."""
    with pytest.raises(ProgramStoppedError, match="65,538 bytes; at most 65,536") as raised:
        prepare(Program("é" * (MAX_CODE_BYTES // 2 + 1), {}))
    assert raised.value.bound == "code"


def test_code_that_is_not_unicode_is_rejected() -> None:
    """Code with an unpaired surrogate cannot be sent to the engine."""
    with pytest.raises(ProgramStoppedError, match="surrogate"):
        prepare(Program("'\ud800'", {}))


@pytest.mark.parametrize("code", ['\\"""\n', "\\'''\n", '\\"', "\\'"])
def test_unclosed_strings_are_scanned_in_linear_time(code: str) -> None:
    """An unclosed quote does not cause another scan of the rest of the text."""
    for end in ("", "\\"):
        unclosed = "'" + code * (10 * MAX_CODE_BYTES // len(code)) + end
        assert rewritten(unclosed) == unclosed
