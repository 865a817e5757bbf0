"""The tables that SQLite and PostgreSQL both have, and their columns to copy."""

from typing import Final, NamedTuple

from ..audit_rows import COLUMNS

FORMER_NODE: Final = "copied"
"""The epoch of a node that never ran. The next node declares it dead and settles the calls of SQLite's daemon."""


class CopiedTable(NamedTuple):
    """A table that both databases have, with the columns to copy."""

    name: str
    columns: tuple[str, ...]
    clock: tuple[str, ...] = ()
    """Columns with times of the store's clock."""
    chained: bool = False
    """Whether the table in PostgreSQL has rows for each chain."""
    source: str = ""
    """A query that is read instead of the table in SQLite."""


def _table(name: str, columns: str, *, clock: str = "", chained: bool = False, source: str = "") -> CopiedTable:
    return CopiedTable(name, tuple(columns.split()), tuple(clock.split()), chained, source or name)


JOURNAL_COLUMNS: Final = (
    "number session_id request_key principal tool echo_id arguments_hash local child unstarted unfinished "
    "session_closed state started_at ended_at result_bytes template result"
)
COPIED_TABLES: Final = (
    _table("session", "id key_hash principal label toolset opened_at seen_at former", clock="opened_at seen_at"),
    _table(
        "journal",
        JOURNAL_COLUMNS,
        clock="ended_at",
        source="(SELECT journal.*, template.audit_row AS template, result.result AS result FROM journal "
        "LEFT JOIN template USING (number) LEFT JOIN result USING (number))",
    ),
    _table("run", "call_id principal tool run started_at outcome stopped_by created"),
    _table(
        "detached",
        "number call_id arguments client deadline_at expires_at remaining_s drops_at dropped traceparent",
        clock="expires_at drops_at",
    ),
    _table("input_request", "number id call_id position request decision decision_hash"),
    _table("call", f"seq {' '.join(COLUMNS)} mac", chained=True),
    _table(
        "checkpoint", "number kind first_seq last_seq calls since until mac_before mac_after mac sent", chained=True
    ),
    _table("outbox", "settled_seq sent refused dropped last_sent_at", chained=True),
    _table("refused", "seq reason refused_at", chained=True),
    _table(
        "call_total",
        "principal tool outcome provider model simulated currency calls input_tokens output_tokens cost since until",
        chained=True,
    ),
    _table(
        "day_spent",
        "day principal tool agent provider model simulated currency completions input_tokens output_tokens "
        "cached_tokens cost estimated",
        chained=True,
    ),
    _table("conversation", "id principal started_at used_at bytes state last_number copied"),
    _table("turn", "conversation_id number tokens body"),
    _table(
        "copy",
        "number id conversation_id principal session_id started_at at ended_at position call_id role provider model "
        "content bytes reason",
    ),
    _table("copies", "sent refused dropped last_sent_at", chained=True),
    _table("vendor_file", "provider file_id principal uploaded_at"),
    _table("a2a_task", "number id principal agent context_id state changed_at ended history last_event"),
    _table("a2a_event", "task number partial event"),
    _table("a2a_message", "key task content at"),
    _table("a2a_push", "task id url version secrets sent attempts next_at waiting"),
    _table("registry_entry", "kind id version content created_at changed_at"),
    _table("user_credential", "principal service fields changed_at sealed"),
)
ADDED_COLUMNS: Final = {
    # Columns that SQLite does not have, with the value for its single process.
    "a2a_task": ("node", "''"),
    "journal": ("node", f"CASE WHEN state = 'started' THEN '{FORMER_NODE}' END"),
}
SUMMED_COLUMNS: Final = {
    "call_total": "sum(calls)::int8 sum(input_tokens)::int8 sum(output_tokens)::int8 sum(cost) min(since) max(until)",
    "day_spent": "sum(completions)::int8 sum(input_tokens)::int8 sum(output_tokens)::int8 sum(cached_tokens)::int8 "
    "sum(cost) sum(estimated)::int8",
    "copies": "sum(sent)::int8 sum(refused)::int8 sum(dropped)::int8 max(last_sent_at)",
}
"""The columns that are summed over all chains, because SQLite has a single one; the columns before them are the key."""
SINGLE_ROW: Final = {"outbox": ("one", 1), "copies": ("one", 1)}
"""Tables with a single row in SQLite, and the column that ensures this."""
