"""What is made of a program's text: attributes that the engine's exceptions lack, and no line moved."""

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
def test_what_the_engine_lacks_is_read_through_functions(code: str, expected: str) -> None:
    """Also within f-strings."""
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
def test_everything_else_stays_as_it_is(code: str) -> None:
    """Literals, comments, assignments, calls and other names."""
    assert rewritten(code) == code


@given(st.text(alphabet=st.sampled_from("e.code asyncio.gather{}'\"\\\n#f=()"), max_size=80))
def test_no_line_moves(code: str) -> None:
    """Whatever the text is: errors are told by its lines."""
    assert rewritten(code).count("\n") == code.count("\n")


def test_a_program_is_given_the_modules_that_it_names() -> None:
    """A line of imports stands before it, which its lines are not counted from."""
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
def test_an_await_before_a_call_is_found(before: str, place: int | None) -> None:
    """Where it begins, in bytes; another name that ends so is none."""
    prepared = prepare(Program(f"{before}crm.search()", {}))
    head, _, _ = prepared.text.partition(before)
    found = prepared.await_before(len(f"{head}{before}".encode()))
    assert found == (None if place is None else len(f"{head}{before[:place]}".encode()))


def test_code_that_is_too_long_is_refused() -> None:
    """With both sizes; counted in bytes."""
    with pytest.raises(ProgramStoppedError, match="65,538 bytes; at most 65,536") as raised:
        prepare(Program("é" * (MAX_CODE_BYTES // 2 + 1), {}))
    assert raised.value.bound == "code"


def test_code_that_is_no_unicode_is_refused() -> None:
    """Half of a surrogate pair cannot be sent to the engine."""
    with pytest.raises(ProgramStoppedError, match="surrogate"):
        prepare(Program("'\ud800'", {}))


@pytest.mark.parametrize("code", ['\\"""\n', "\\'''\n", '\\"', "\\'"])
def test_texts_that_are_not_closed_are_looked_at_once(code: str) -> None:
    """As long as code may be, quotes that nothing closes are gone through as fast as others: not once for each."""
    for end in ("", "\\"):
        unclosed = "'" + code * (10 * MAX_CODE_BYTES // len(code)) + end
        assert rewritten(unclosed) == unclosed
