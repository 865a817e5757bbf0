"""The signed bytes of audit rows and checkpoints: equal rows sign equally, different rows differently."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.store import GENESIS, CallRow, ChainHead, ChainSigner, Checkpoint, canonical, microseconds
from toold.store.audit_chain import canonical_json, clean
from toold.store.audit_rows import Values, audit_values

SIGNER = ChainSigner(b"k" * 32)
CHECKPOINT = Checkpoint(
    number=1, kind="gap", first_seq=2, last_seq=1, calls=None, since=1.0, until=2.0, before=GENESIS, after=GENESIS
)
HEAD = ChainHead(chain="", last_seq=1, last_mac=b"m" * 32, checkpoints=1, at=1.0, closed=True)
ROW = CallRow(
    id="a", started_at=1.5, transport="t", principal="p", session_id="s", session_label="l", client="c", request_id="1",
    tool="echo", outcome="ok", latency_ms=1.0,
)  # fmt: skip


def values(**fields: Any) -> Values:
    return audit_values(msgspec.structs.replace(ROW, **fields), fields.get("arguments"))


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CallRow.__struct_fields__)
def test_every_column_is_signed(name: str) -> None:
    """No value of a row can be changed without changing its bytes."""
    other = '{"a": 1}' if name == "arguments" else 7.0 if isinstance(getattr(ROW, name), float) else "other"
    other = {"arguments_bytes": 7, "result_bytes": 7, "input_tokens": 7, "output_tokens": 7, "simulated": True,
             "cost_amount": 7.0}.get(name, other)  # fmt: skip
    assert canonical(values(**{name: other})) != canonical(values())


def test_values_cannot_be_shifted() -> None:
    """Moving a character from one value to the next changes the signed bytes."""
    assert canonical(values(tool="ab", outcome="c")) != canonical(values(tool="a", outcome="bc"))


def test_numbers_are_normalized_as_columns_return_them() -> None:
    """Integers, booleans and minus zero have the same signed bytes after a round trip through Supabase's columns."""
    here = values(latency_ms=1, simulated=True, cost_amount=0, queue_ms=-0.0)
    there = values(latency_ms=1.0, simulated=1, cost_amount=0.0, queue_ms=0.0)
    assert canonical(here) == canonical(there)


def test_nul_characters_are_replaced_as_when_sent() -> None:
    """A row has the same signed bytes with NUL characters and with their replacement in Supabase."""
    here = values(tool="a\0", message="\\u0000", arguments='{"\\u0000b": ["\\u0000"], "a": 1}')
    there = values(tool="a\ufffd", message="\\u0000", arguments='{"a": 1, "\ufffdb": ["\ufffd"]}')
    assert canonical(here) == canonical(there)


@given(st.floats(-1e9, 4e9))
def test_times_are_rounded_as_when_sent(at: float) -> None:
    """Times are rounded to microseconds as ``datetime`` rounds them; rounding again changes nothing."""
    assert microseconds(at) == round(datetime.fromtimestamp(at, UTC).timestamp() * 1e6)
    assert microseconds(microseconds(at) / 1e6) == microseconds(at)


def test_row_with_invalid_values_raises() -> None:
    """Values that no column can have raise an error."""
    for bad in ({"started_at": math.inf}, {"started_at": math.nan}, {"started_at": "x"}, {"arguments": "{"}):
        with pytest.raises((TypeError, ValueError, OverflowError, msgspec.MsgspecError)):
            canonical(values(**bad))
    with pytest.raises(ValueError, match="not enough values"):
        canonical(())


# --- arguments -------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def as_jsonb(value: Any) -> Any:
    """The value as ``jsonb`` prints it: names in another order, numbers without exponents."""
    if isinstance(value, dict):
        return {name: as_jsonb(value[name]) for name in sorted(value, key=lambda name: (len(name), name))}
    return [as_jsonb(item) for item in value] if isinstance(value, list) else value


@given(JSON)
def test_json_order_and_number_notation_do_not_matter(value: Any) -> None:
    """The order of names and the whitespace of JSON do not change its signed bytes."""
    assert canonical_json(json.dumps(as_jsonb(value), indent=1)) == canonical_json(json.dumps(value))


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("1e2", "100"), ("100.0", "100"), ("1.50", "1.5"), ("-0.0", "0"), ("1e-7", "0.0000001"),
        ("1e23", "100000000000000000000000"), ("1.7976931348623157e308", "17976931348623157" + "0" * 292),
        ("5e-324", "0." + "0" * 323 + "5"), ("12345678901234567890123", "12345678901234567890123.0"),
    ],
)  # fmt: skip
def test_number_has_one_notation(here: str, there: str) -> None:
    """All notations that ``jsonb`` has for a number have the same signed bytes."""
    assert canonical_json(here) == canonical_json(there)


@given(JSON, JSON)
def test_different_arguments_have_different_bytes(one: Any, other: Any) -> None:
    """Two JSON values have the same signed bytes only if they are equal as JSON."""

    def type_tagged(value: Any) -> str:  # In Python 1 == True and 1 == 1.0; only the latter holds for JSON
        if isinstance(value, dict):
            return "object" + str(sorted((name, type_tagged(item)) for name, item in clean(value).items()))
        if isinstance(value, list):
            return str([type_tagged(item) for item in value])
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return repr(int(value) if number and value == int(value) else clean(value))

    same = canonical_json(json.dumps(one)) == canonical_json(json.dumps(other))
    assert same == (type_tagged(one) == type_tagged(other))


# --- checkpoints and heads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("note", [CHECKPOINT, HEAD])
def test_every_field_of_a_checkpoint_is_signed(note: Checkpoint | ChainHead) -> None:
    """A change to any field invalidates the signature."""
    signed = SIGNER.head(note) if isinstance(note, ChainHead) else SIGNER.checkpoint(note)
    assert SIGNER.is_signed(signed)
    assert not SIGNER.is_signed(note)
    changes = {"kind": "dropped", "calls": 0, "closed": False, "chain": "other"}
    for name in note.__struct_fields__:
        value = getattr(signed, name)
        other = changes[name] if name in changes else b"other" if isinstance(value, bytes) else value + 1
        assert not SIGNER.is_signed(msgspec.structs.replace(signed, **{name: other})), name


def test_invalid_values_are_not_signed() -> None:
    """Values of unexpected types count as unsigned and raise no error."""
    for field, value in (("since", "x"), ("before", "x"), ("since", math.inf), ("calls", object())):
        assert not SIGNER.is_signed(msgspec.structs.replace(CHECKPOINT, **{field: value}))


def test_each_key_has_its_own_chain() -> None:
    """Another key has another chain name and other signatures; the name does not reveal the key."""
    other = ChainSigner(b"l" * 32)
    assert other.chain != SIGNER.chain
    assert other.row(GENESIS, b"") != SIGNER.row(GENESIS, b"")
    assert not other.is_signed(SIGNER.head(HEAD))
    assert (b"k" * 32).hex() not in SIGNER.chain
