"""The chain of the audit: a keyed hash of each row over the one before, and signed notes on rows that are not there.

Pure. ``docs/audit.md`` says what the chain shows, and what it cannot.
"""

import decimal
import hmac
import math
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

KEY_BYTES: Final = 32
MAC_BYTES: Final = 32
GENESIS: Final = bytes(MAC_BYTES)
"""Stands for the mac of the row before the first one, and of rows that have none."""

CheckpointKind = Literal["began", "begun again", "expired", "unsent", "refused", "dropped", "gap", "forgotten"]


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A signed note on rows that are not where the chain would have them.

    Its range is ``first_seq`` to ``last_seq``. Rows that never got a number would stand before ``first_seq``, which is
    then the one after ``last_seq``.
    """

    number: int
    """From 1, without gaps."""
    kind: CheckpointKind
    """``began``: rows up to ``last_seq`` are older than the chain, or have another key's macs. ``begun again``: this
    key had a chain, and at a start the database had no end of it; rows up to ``last_seq`` were there then. ``expired``:
    retention removed them. ``unsent``: it did so before they were sent. ``refused``: Supabase did not take them.
    ``dropped``: they were never written. ``gap``: the daemon did not end in order, and its last ones may not have been
    written. ``forgotten``, which no daemon signs: Supabase's retention removed them there."""
    first_seq: int
    last_seq: int
    calls: int | None
    """How many rows; None where nobody can know."""
    since: float
    """Unix time in seconds. It came about between this and ``until``."""
    until: float
    before: bytes
    """The mac of the row before ``first_seq``."""
    after: bytes
    """The mac that the row after ``last_seq`` follows."""
    mac: bytes = b""


class ChainHead(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the chain, signed apart from it, so that rows that are cut off there are missed."""

    chain: str
    """``ChainSeal.chain`` of the key that signed it."""
    last_seq: int
    last_mac: bytes
    checkpoints: int
    """The number of the last one."""
    at: float
    """Unix time in seconds: every row that was recorded before it is in the chain, or in a checkpoint."""
    closed: bool
    """The writer ended in order: so is every row that was recorded after it."""
    mac: bytes = b""


class ChainTrail(NamedTuple):
    """What a database notes of its chain, whoever wrote it."""

    head: ChainHead | None
    checkpoints: Sequence[Checkpoint]
    settled_seq: int
    """Up to here each row was sent, refused, or removed before it could be; 0 where nothing ever was sent."""


class ChainSeal:
    """What a key of ``KEY_BYTES`` random bytes signs. Rows, checkpoints and heads each have a key made of it, so that
    no signature of one kind passes for another.
    """

    def __init__(self, key: bytes) -> None:
        self.chain: Final = hmac.digest(key, b"toold chain", "sha256").hex()[:32]
        """A name for what this key signs, from which the key cannot be told."""
        self._row = hmac.new(hmac.digest(key, b"toold row", "sha256"), digestmod="sha256")
        self._checkpoint = hmac.digest(key, b"toold checkpoint", "sha256")
        self._head = hmac.digest(key, b"toold head", "sha256")

    def row(self, before: bytes, row: bytes) -> bytes:
        """The mac of a row (``canonical``) that follows one with the mac ``before``."""
        signing = self._row.copy()  # half the time of a new one
        signing.update(before + row)
        return signing.digest()

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint, signed."""
        signed = (
            self.chain, checkpoint.number, checkpoint.kind, checkpoint.first_seq, checkpoint.last_seq, checkpoint.calls,
            microseconds(checkpoint.since), microseconds(checkpoint.until), checkpoint.before.hex(),
            checkpoint.after.hex(),
        )  # fmt: skip
        return msgspec.structs.replace(checkpoint, mac=hmac.digest(self._checkpoint, _encode(signed), "sha256"))

    def head(self, head: ChainHead) -> ChainHead:
        """The head, signed in this key's name."""
        signed = (
            self.chain, head.last_seq, head.last_mac.hex(), head.checkpoints, microseconds(head.at), head.closed,
        )  # fmt: skip
        mac = hmac.digest(self._head, _encode(signed), "sha256")
        return msgspec.structs.replace(head, chain=self.chain, mac=mac)

    def signed(self, note: Checkpoint | ChainHead) -> bool:
        """Whether this key signed it as it stands."""
        try:
            return note == (self.head(note) if isinstance(note, ChainHead) else self.checkpoint(note))
        except (TypeError, ValueError, OverflowError, AttributeError):
            return False  # whoever wrote such values was no daemon


# --- the bytes that are signed ---------------------------------------------------------------------------------------


def canonical(values: Sequence[Any]) -> bytes:
    """What a row's mac covers: a JSON array of all its values, such that the row of the database and what Supabase
    gives back of it make the same bytes. Times are in microseconds, ``arguments`` as of ``canonical_json``, and NUL
    characters are replaced (``clean``).

    ``values`` are in the order of ``CallRow``'s fields, with ``arguments`` as JSON text or None.

    Raises:
        TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError: no row has such values.
    """
    (
        call_id, started_at, transport, principal, session_id, session_label, client, request_id, tool, outcome,
        message, executed, arguments, arguments_bytes, result_bytes, latency_ms, queue_ms, tool_ms, provider_ms,
        provider, model, simulated, input_tokens, output_tokens, cost_amount, cost_currency,
    ) = values  # fmt: skip
    row = (
        call_id, microseconds(started_at), transport, principal, session_id, session_label, client, request_id, tool,
        outcome, message, executed, None if arguments is None else msgspec.Raw(canonical_json(arguments)),
        arguments_bytes, result_bytes, _double(latency_ms), _double(queue_ms), _double(tool_ms), _double(provider_ms),
        provider, model, bool(simulated), input_tokens, output_tokens,
        None if cost_amount is None else _double(cost_amount), cost_currency,
    )  # fmt: skip
    encoded = _encode(row)
    return encoded if _NUL not in encoded else _encode([clean(value) for value in row])


def canonical_json(text: str | bytes) -> bytes:
    """JSON as it comes back from a ``jsonb`` column, whatever order and spelling it has there: names sorted, one
    spelling a number, NUL characters replaced.

    Raises:
        ValueError, RecursionError, msgspec.MsgspecError: this is no JSON, or none that can be handled.
    """
    value = _decode(text)
    encoded = _encode(value)
    return encoded if _NUL not in encoded else _encode(clean(value))


def clean(value: Any) -> Any:
    """JSON without NUL characters, which PostgreSQL takes in no text: callers must not be able to keep a call out of
    the audit by them.
    """
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, dict):
        return {clean(name): clean(item) for name, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return value


def microseconds(unix_s: float) -> int:
    """A time as PostgreSQL keeps it, in microseconds."""
    fraction, whole = math.modf(unix_s)
    return int(whole) * 1_000_000 + round(fraction * 1e6)


def _double(number: float) -> float:
    return float(number) + 0.0  # minus zero comes back as zero


def _number(text: str) -> int | decimal.Decimal:
    """A number that is not spelt as an integer, the same for each spelling: 1e2, 100.0 and 100.00 are 100."""
    number = _EXACT.create_decimal(text).normalize(_EXACT)
    exponent = number.as_tuple().exponent
    return int(number) if isinstance(exponent, int) and 0 <= exponent <= _LARGEST_EXPONENT else number


_EXACT: Final = decimal.Context(prec=20_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
"""Beyond the 16,383 digits that PostgreSQL keeps after the point."""
_LARGEST_EXPONENT: Final = 308
"""Of a double, which is what arguments can have."""
_NUL: Final = b"\\u0000"
_encode = msgspec.json.Encoder(order="sorted", decimal_format="number").encode
_decode = msgspec.json.Decoder(float_hook=_number).decode
