"""The header ``traceparent``, and the ids of traces and spans."""

import pytest
from toold.protocol.trace_context import (
    TraceParent,
    parse_traceparent,
    span_id_of,
    trace_id_of,
    usable_traceparent,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALID = f"00-{TRACE}-{SPAN}-01"


def test_a_traceparent_names_a_span() -> None:
    """The ids, and whether the trace is recorded, are read, and written the same."""
    parent = parse_traceparent(VALID)
    assert parent == TraceParent(bytes.fromhex(TRACE), bytes.fromhex(SPAN), True)
    assert str(parent) == VALID


@pytest.mark.parametrize(
    ("value", "usable"),
    [
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"00-{TRACE}-{SPAN}-03", VALID),  # only the flag that the specification defines is passed on
        (f"01-{TRACE}-{SPAN}-01-what-a-later-version-adds", VALID),
        (f"cc-{TRACE}-{SPAN}-01", VALID),
    ],
)
def test_it_is_passed_on_in_the_form_of_version_00(value: str, usable: str) -> None:
    """A later version is read as far as version 00 defines it."""
    assert usable_traceparent(value) == usable


@pytest.mark.parametrize(
    "value",
    [
        "",
        "nonsense",
        VALID.upper(),
        VALID + "-more",
        VALID + "\n",
        f"ff-{TRACE}-{SPAN}-01",
        f"01-{TRACE}-{SPAN}-01more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"{VALID}, {VALID}",
        f"cc-{TRACE}-{SPAN}-01-{'x' * 1000}",
        7,
        None,
        {"traceparent": VALID},
    ],
)
def test_an_invalid_one_names_no_span(value: object) -> None:
    """Whatever the specification does not allow is ignored."""
    assert usable_traceparent(value) is None


def test_the_ids_of_a_call_are_those_of_its_name() -> None:
    """The same call has the same ids in every process, and other calls have others."""
    assert trace_id_of("e-1").hex() == "b94f523196aaacd8bdb9ef0d8cf2e1d8"
    assert span_id_of("e-1", orchestration=False) == trace_id_of("e-1")[:8]
    assert span_id_of("e-1/a", orchestration=False) != span_id_of("e-1", orchestration=False)


def test_a_resumed_orchestration_call_continues_its_span() -> None:
    """The children from before a restart have their parent in the span that ends after it; leaves have new spans."""
    for suffix in ("~0123456789ab", "~0123456789ab1f"):  # after a restart, and after a pause
        assert span_id_of(f"e-1/a{suffix}/b", orchestration=True) == span_id_of("e-1/a/b", orchestration=True)
    assert span_id_of("e-1/a~0123456789ab", orchestration=False) != span_id_of("e-1/a", orchestration=False)
