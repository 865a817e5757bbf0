"""The audit chain: each row has a keyed hash of the row and of the previous row's hash; signed checkpoints cover
missing rows.

Pure. ``docs/audit.md`` says what the chain can and cannot show.
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
"""Used in place of a mac before the first row, and for rows without a mac."""

CheckpointKind = Literal["began", "begun again", "expired", "unsent", "refused", "dropped", "gap", "bound", "forgotten"]


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A signed statement about rows that are missing from the chain.

    Its range is ``first_seq`` to ``last_seq``. If the missing rows never got a seq, the range is empty:
    ``first_seq`` is ``last_seq + 1``, and the rows are missing before ``first_seq``.
    """

    number: int
    """From 1, without gaps."""
    kind: CheckpointKind
    """``began``: rows up to ``last_seq`` are older than the chain, or have another key's macs. ``begun again``: this
    key had a chain, but when the daemon started, the database had no head of that chain; rows up to ``last_seq``
    existed then. ``expired``:
    retention removed them. ``unsent``: retention removed them before they were sent. ``refused``: Supabase refused
    them. ``dropped``: they were never written. ``gap``: the daemon did not shut down cleanly, and its last rows may not
    have been written. ``bound``: no rows are missing; ``after`` is the hash of the ends of the database's other chains
    at that time (``chain_binding.py``). ``forgotten``, which no daemon signs: Supabase's retention removed them
    there."""
    first_seq: int
    last_seq: int
    calls: int | None
    """The number of rows; None if unknown."""
    since: float
    """Unix time in seconds. The rows went missing between this and ``until``."""
    until: float
    before: bytes
    """The mac of the row before ``first_seq``."""
    after: bytes
    """The mac that the row after ``last_seq`` extends."""
    mac: bytes = b""


class ChainHead(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the chain, signed separately, so that removing the last rows is detected."""

    chain: str
    """``ChainSigner.chain`` of the key that signed it."""
    last_seq: int
    last_mac: bytes
    checkpoints: int
    """The number of the last checkpoint."""
    at: float
    """Unix time in seconds. Every row that was recorded earlier is in the chain, or covered by a checkpoint."""
    closed: bool
    """Whether the daemon shut down cleanly. Then every row recorded after ``at`` is in the chain or covered, too."""
    mac: bytes = b""


class ChainTrail(NamedTuple):
    """The head and the checkpoints that a database stores, unverified."""

    head: ChainHead | None
    checkpoints: Sequence[Checkpoint]
    settled_seq: int
    """Each row up to this seq was sent, refused, or removed before it was sent; 0 before the first row was sent."""


class ChainSigner:
    """Signs rows, checkpoints and heads with keys derived from one key of ``KEY_BYTES`` random bytes, one per kind, so
    that a signature of one kind is not valid for another.
    """

    def __init__(self, key: bytes) -> None:
        self.chain: Final = hmac.digest(key, b"toold chain", "sha256").hex()[:32]
        """The name of the chain, derived one-way from the key."""
        self._row = hmac.new(hmac.digest(key, b"toold row", "sha256"), digestmod="sha256")
        self._checkpoint = hmac.digest(key, b"toold checkpoint", "sha256")
        self._head = hmac.digest(key, b"toold head", "sha256")

    def row(self, before: bytes, row: bytes) -> bytes:
        """Returns the mac of ``row``, as ``canonical`` returned it. ``before`` is the mac of the previous row."""
        signing = self._row.copy()  # a copy takes half the time of a new HMAC
        signing.update(before + row)
        return signing.digest()

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """Returns the checkpoint, signed."""
        signed = (
            self.chain, checkpoint.number, checkpoint.kind, checkpoint.first_seq, checkpoint.last_seq, checkpoint.calls,
            microseconds(checkpoint.since), microseconds(checkpoint.until), checkpoint.before.hex(),
            checkpoint.after.hex(),
        )  # fmt: skip
        return msgspec.structs.replace(checkpoint, mac=hmac.digest(self._checkpoint, _encode(signed), "sha256"))

    def head(self, head: ChainHead) -> ChainHead:
        """Returns the head, signed, with this chain's name."""
        signed = (
            self.chain, head.last_seq, head.last_mac.hex(), head.checkpoints, microseconds(head.at), head.closed,
        )  # fmt: skip
        mac = hmac.digest(self._head, _encode(signed), "sha256")
        return msgspec.structs.replace(head, chain=self.chain, mac=mac)

    def is_signed(self, signed: Checkpoint | ChainHead) -> bool:
        """Whether this key signed the checkpoint or head, and it is unchanged."""
        try:
            return signed == (self.head(signed) if isinstance(signed, ChainHead) else self.checkpoint(signed))
        except (TypeError, ValueError, OverflowError, AttributeError):
            return False  # no daemon writes such values


# --- the bytes that are signed ---------------------------------------------------------------------------------------


def canonical(values: Sequence[Any]) -> bytes:
    """Returns the bytes that a row's mac covers: a JSON array of its values, the same for the row in the database and
    for the row that Supabase returns. Times are in microseconds, ``arguments`` as ``canonical_json`` returns them, and
    NUL characters are replaced (``clean``).

    ``values`` are in the order of ``CallRow``'s fields, with ``arguments`` as JSON text or None.

    Raises:
        TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError: not the values of a row.
    """
    (
        call_id, started_at, transport, principal, session_id, session_label, client, request_id, tool, outcome,
        message, executed, arguments, arguments_bytes, result_bytes, latency_ms, queue_ms, tool_ms, provider_ms,
        provider, model, simulated, input_tokens, output_tokens, cost_amount, cost_currency,
    ) = values  # fmt: skip
    row = (
        call_id, microseconds(started_at), transport, principal, session_id, session_label, client, request_id, tool,
        outcome, message, executed, None if arguments is None else msgspec.Raw(canonical_json(arguments)),
        arguments_bytes, result_bytes,
        # PostgreSQL returns -0.0 as 0.0.
        float(latency_ms) + 0.0, float(queue_ms) + 0.0, float(tool_ms) + 0.0, float(provider_ms) + 0.0,
        provider, model, bool(simulated), input_tokens, output_tokens,
        None if cost_amount is None else float(cost_amount) + 0.0, cost_currency,
    )  # fmt: skip
    encoded = _encode(row)
    return encoded if _NUL not in encoded else _encode([clean(value) for value in row])


def canonical_json(text: str | bytes) -> bytes:
    """Returns JSON normalized, so that it is the same before and after a ``jsonb`` column: names sorted, one spelling
    per number, NUL characters replaced.

    Raises:
        ValueError, RecursionError, msgspec.MsgspecError: not JSON, or too large or too deep.
    """
    value = _decode(text)
    encoded = _encode(value)
    return encoded if _NUL not in encoded else _encode(clean(value))


def clean(value: Any) -> Any:
    """Returns JSON without NUL characters: PostgreSQL refuses them, so callers could evade the audit with them."""
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, dict):
        return {clean(name): clean(item) for name, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return value


def microseconds(unix_s: float) -> int:
    """Returns a time in microseconds, the resolution of PostgreSQL."""
    fraction, whole = math.modf(unix_s)
    return int(whole) * 1_000_000 + round(fraction * 1e6)


def _number(text: str) -> int | decimal.Decimal:
    """Returns a number that is not written as an integer, normalized: 1e2, 100.0 and 100.00 are 100."""
    number = _EXACT.create_decimal(text).normalize(_EXACT)
    exponent = number.as_tuple().exponent
    return int(number) if isinstance(exponent, int) and 0 <= exponent <= _LARGEST_EXPONENT else number


_EXACT: Final = decimal.Context(prec=20_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
"""The maximum number of digits after the decimal point, more than the 16,383 that PostgreSQL stores."""
_LARGEST_EXPONENT: Final = 308
"""The largest decimal exponent of a double; numbers in arguments can be that large."""
_NUL: Final = b"\\u0000"
_encode = msgspec.json.Encoder(order="sorted", decimal_format="number").encode
_decode = msgspec.json.Decoder(float_hook=_number).decode
