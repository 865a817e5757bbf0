"""Calls as Supabase's rows and back: tables and columns, one row per session, no loss."""

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.audit import REDACTED
from toold.audit.supabase_rows import (
    MAX_TITLE_CHARS,
    Record,
    call_values,
    checkpoint_of,
    checkpoint_record,
    copy_records,
    records,
)
from toold.store import CallRow, ChainedRow, ChainSigner, Checkpoint, ConversationCopy, canonical
from toold.store.audit_rows import audit_values

MIGRATIONS = Path(__file__).parents[2] / "supabase/migrations"
MakeRow = Callable[..., CallRow]


def made_of(*rows: CallRow) -> dict[str, list[Record]]:
    return records([ChainedRow(seq=seq, mac=b"m" * 32, call=row) for seq, row in enumerate(rows, 1)], "chain")


def copy(position: int | None = 1, **fields: Any) -> ConversationCopy:
    """A message of a conversation, or its end if ``position`` is None."""
    plain: dict[str, Any] = {
        "number": position or 99,
        "id": f"c-{position}" if position else "c",
        "conversation_id": "c",
        "principal": "local",
        "session_id": "s-1" if position else None,
        "started_at": 1000.0,
        "at": 1000.0 + (position or 0),
        "ended_at": None if position else 5000.0,
        "position": position,
        "call_id": "call-1" if position else None,
        "role": "user" if position else None,
        "provider": None,
        "model": None,
        "content": {"tool": "chat", "text": f"message {position}", "files": []} if position else None,
    }
    return ConversationCopy(**plain | fields)


def columns(table: str) -> set[str]:
    """The table's columns in all migrations, without the time of arrival and derived columns."""
    sql = "".join(path.read_text(encoding="utf-8") for path in sorted(MIGRATIONS.glob("*.sql")))
    body = re.search(rf"create table if not exists public\.{table} \((.+?)\n\);", sql, re.DOTALL)
    assert body, table
    added = re.findall(rf"alter table public\.{table} add column if not exists (\w+) \w+(?!\s+generated)\b", sql)
    return {*re.findall(r"^    (\w+) ", body[1], re.MULTILINE), *added} - {"received_at"}


def test_each_column_is_the_tables(row: MakeRow) -> None:
    """The rows have exactly the columns of the migrations' tables, without the time of arrival."""
    for table, (item, *_) in made_of(row(provider="kimi")).items():
        assert set(item) == columns(table)
    checkpoint = Checkpoint(
        number=1, kind="gap", first_seq=1, last_seq=0, calls=None, since=1, until=1, before=b"", after=b""
    )
    assert set(checkpoint_record(checkpoint, "chain")) == columns("toold_checkpoints")
    for table, (item, *_) in copy_records([copy()]).items():
        assert set(item) == columns(table)


def test_only_vendor_calls_make_provider_calls(row: MakeRow) -> None:
    """A call that reached no vendor has no row in the provider calls."""
    records = made_of(row(id="a"), row(id="b", provider="glm", model="glm-4.6", input_tokens=3, provider_ms=7.0))
    assert [call["id"] for call in records["toold_calls"]] == ["a", "b"]
    (request,) = records["toold_provider_calls"]
    assert (request["call_id"], request["model"], request["input_tokens"], request["latency_ms"]) == (
        "b",
        "glm-4.6",
        3,
        7.0,
    )


def test_empty_batch_makes_no_rows() -> None:
    """An empty batch makes no rows."""
    assert made_of() == {"toold_sessions": [], "toold_calls": [], "toold_provider_calls": []}


def test_calls_older_than_the_chain_have_no_seq(row: MakeRow) -> None:
    """Calls older than the chain are sent without chain, number and MAC."""
    made = records([ChainedRow(seq=3, mac=None, call=row(provider="kimi"))], "chain")
    places = [(made[table][0]["chain"], made[table][0]["seq"]) for table in ("toold_calls", "toold_provider_calls")]
    assert places == [(None, None)] * 2
    assert made["toold_calls"][0]["mac"] is None


@given(starts=st.lists(st.tuples(st.sampled_from("abc"), st.floats(1e9, 2e9)), max_size=20))
def test_session_has_one_row_with_its_first_and_last_call(row: MakeRow, starts: list[tuple[str, float]]) -> None:
    """A session has one row, from its earliest to its latest call, whatever the order of its calls."""
    sessions = made_of(*(row(session_id=name, started_at=at) for name, at in starts))["toold_sessions"]
    assert sorted(session["id"] for session in sessions) == sorted({name for name, _ in starts})
    for session in sessions:
        times = [at for name, at in starts if name == session["id"]]
        assert (unix(session, "first_call_at"), unix(session, "last_call_at")) == (
            round(min(times), 6),
            round(max(times), 6),
        )


def unix(record: Record, column: str) -> float:
    return round(datetime.fromisoformat(record[column]).timestamp(), 6)


TEXT = st.text(st.sampled_from("\0a\N{REPLACEMENT CHARACTER}"))


@given(
    arguments=st.recursive(
        TEXT | st.integers() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
        max_leaves=8,
    )
)
def test_nul_characters_are_replaced(row: MakeRow, arguments: object) -> None:
    """No name, item or text contains a NUL character at any depth."""
    records = made_of(row(arguments=arguments, tool="a\0", message="\0", session_id="\0", session_label="\0"))
    assert "\\x00" not in repr(records)
    assert records["toold_calls"][0]["session_id"] == records["toold_sessions"][0]["id"]


# --- copies of conversations -----------------------------------------------------------------------------------------


def test_conversation_has_one_row_per_batch() -> None:
    """A conversation has one row per batch, with the times of its messages and a title from the first."""
    records = copy_records(
        [copy(1, at=999.5), copy(2, session_id="s-2"), copy(None, at=1002.0), copy(1, conversation_id="d", id="d-1")]
    )
    conversation, other = records["toold_conversations"]
    assert (conversation["id"], conversation["session_id"], conversation["title"]) == ("c", "s-1", "message 1")
    assert [unix(conversation, name) for name in ("started_at", "last_message_at", "ended_at")] == [999.5, 1002, 5000]
    assert (other["id"], other["ended_at"]) == ("d", None)
    assert [(message["id"], message["position"]) for message in records["toold_messages"]] == [
        ("c-1", 1),
        ("c-2", 2),
        ("d-1", 1),
    ]


def test_batch_without_the_first_message_has_no_title() -> None:
    """A batch without the first message sets no title, so that Supabase keeps the earlier one."""
    assert copy_records([copy(2)])["toold_conversations"][0]["title"] is None


def test_title_is_one_short_line() -> None:
    """The title is one line of limited length, whatever the first message contains."""
    (starts,) = copy_records([copy(content={"text": "a\n\n b " * 100})])["toold_conversations"]
    assert starts["title"].startswith("a b a b ")
    assert len(starts["title"]) == MAX_TITLE_CHARS


def test_copies_have_no_secrets_or_nul_characters() -> None:
    """Neither the message nor its title contains secrets or NUL characters."""
    secret = "sk-0123456789abcdef0123"
    records = copy_records(
        [copy(content={"text": f"my key is\0 {secret}", "token": "x"}, model="m\0", principal="p\0")]
    )
    assert secret not in repr(records)
    assert "\\x00" not in repr(records)
    (message,) = records["toold_messages"]
    assert message["content"] == {"text": f"my key is\ufffd {REDACTED}", "token": REDACTED}


# --- rows back to calls ----------------------------------------------------------------------------------------------

ASKED: dict[str, Any] = {"provider": "kimi", "model": "k", "simulated": True, "input_tokens": 3, "cost_amount": 0.5}


@pytest.mark.parametrize("fields", [{}, {"arguments": {"a\0": [1.5, None]}}, ASKED, ASKED | {"model": None}])
def test_sent_rows_have_the_same_mac_as_stored_rows(row: MakeRow, fields: dict[str, Any]) -> None:
    """The two rows of a call together have the bytes that the MAC was calculated over."""
    call = row(message="m\0", **fields)
    arguments = json.dumps(call.arguments) if call.arguments else None
    records = json.loads(json.dumps(made_of(call)))
    request = next(iter(records["toold_provider_calls"]), None)
    assert canonical(call_values(records["toold_calls"][0], request)) == canonical(audit_values(call, arguments))


@pytest.mark.parametrize("column", ["call_id", "started_at", "principal", "outcome", "latency_ms"])
def test_provider_call_that_contradicts_its_call_is_refused(row: MakeRow, column: str) -> None:
    """The columns that a provider call shares with its call must be equal."""
    records = made_of(row(**ASKED))
    request = records["toold_provider_calls"][0] | {column: "other"}
    with pytest.raises(ValueError, match="different calls"):
        call_values(records["toold_calls"][0], request)


def test_checkpoint_round_trip_keeps_the_signature() -> None:
    """A checkpoint that is read back from its row has a valid signature."""
    signer = ChainSigner(b"k" * 32)
    checkpoint = signer.checkpoint(
        Checkpoint(
            number=7, kind="unsent", first_seq=3, last_seq=9, calls=7, since=1.2345678e9, until=1.7e9 + 1e-6,
            before=b"a" * 32, after=b"b" * 32,
        )
    )  # fmt: skip
    back = checkpoint_of(json.loads(json.dumps(checkpoint_record(checkpoint, signer.chain))))
    assert signer.is_signed(back)
    assert (back.number, back.kind, back.first_seq, back.last_seq, back.after) == (7, "unsent", 3, 9, b"b" * 32)
    assert not signer.is_signed(msgspec.structs.replace(back, calls=8))
