"""``toold audit``: the audit rows of the local database, or of the database of the setting ``store``. Needs no running
daemon.
"""

import csv
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import click
import msgspec

from ..daemon.persistence.state_directory import DATABASE_FILE
from ..protocol.daemon_address import default_state_dir
from ..store import CallRow, CallTotals, ChainedRow, StoreError, open_archive
from .audit_verify_command import verify
from .console_tables import Row, print_table
from .daemon_connection import CommandFailedError
from .shared_store import postgres_archive, shared_store_address
from .status_command import cell, totals_section, when
from .terminal_output import say, say_json

HEADERS: Row = ("WHEN", "PRINCIPAL", "SESSION", "TOOL", "OUTCOME", "LATENCY", "MODEL", "TOKENS", "COST")


EXPORTED: Final = ("seq", *CallRow.__struct_fields__, "mac", "chain")
"""The exported columns; ``seq`` and ``mac`` are the row's position and keyed hash in the audit chain ``chain``."""


@click.group()
def command() -> None:
    """Read the audit trail in the state directory (TOOLD_STATE_DIR) or in the database that the setting `store`
    names, with or without a running daemon.
    """


command.add_command(verify)


@command.command(short_help="Show the most recent calls.")
@click.option(
    "-n",
    "--lines",
    metavar="N",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Number of calls to show.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def tail(lines: int, as_json: bool) -> None:
    """Show the most recent calls, newest last."""
    with _archive() as archive:
        rows = archive.recent(lines)[::-1]
    if as_json:
        _print_json(rows)
    else:
        print_table(HEADERS, [_shown(row) for row in rows])


@command.command(short_help="Export all calls as CSV or JSON Lines.")
@click.option(
    "--days", type=click.FloatRange(0, min_open=True), metavar="N", help="Export only calls of the last N days."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line instead of CSV.")
def export(days: float | None, as_json: bool) -> None:
    """Print all calls with all columns as CSV, oldest first: toold audit export > calls.csv."""
    with _archive() as archive:
        calls = archive.calls_since(0.0 if days is None else time.time() - days * 86400)
        rows = map(_columns, calls)
        if as_json:
            _print_json(rows)
        else:
            _print_csv(rows)


@command.command(short_help="Show totals by tool, model and outcome.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def stats(as_json: bool) -> None:
    """Show totals of all recorded calls by tool, model and outcome, with tokens and cost."""
    with _archive() as archive:
        totals: dict[str, Any] = msgspec.to_builtins(archive.totals())
    if as_json:
        say_json(msgspec.json.encode(totals))
        return
    title, headers, rows = totals_section({"totals": totals})
    print_table(headers, rows, title=title)
    say("")
    print_table(("OUTCOME", "CALLS"), [(name, str(number)) for name, number in totals["by_outcome"].items()])


class AuditArchive(Protocol):
    """The audit trail in a database."""

    def recent(self, limit: int) -> list[CallRow]: ...

    def calls_since(self, started_at: float) -> Iterator[ChainedRow]: ...

    def totals(self) -> CallTotals: ...


@contextmanager
def _archive() -> Iterator[AuditArchive]:
    address = shared_store_address()
    try:
        if address is not None:
            with postgres_archive(address) as shared:
                yield shared
            return
        with open_archive(default_state_dir(os.environ) / DATABASE_FILE) as archive:
            yield archive
    except StoreError as error:
        raise CommandFailedError(str(error)) from error


def _shown(row: CallRow) -> Row:
    tokens = row.input_tokens + row.output_tokens
    return (
        when(row.started_at),
        cell(row.principal),
        cell(row.session_label),
        cell(row.tool),
        cell(row.outcome),
        f"{row.latency_ms:.0f} ms",
        cell(row.model),
        str(tokens) if tokens else "-",
        "-" if row.cost_amount is None else f"{row.cost_amount:g} {row.cost_currency}",
    )


def _columns(row: ChainedRow) -> dict[str, Any]:
    """The row's values by the names in ``EXPORTED``."""
    mac = None if row.mac is None else row.mac.hex()
    return {"seq": row.seq, **msgspec.structs.asdict(row.call), "mac": mac, "chain": row.chain}


def _print_json(rows: Iterable[CallRow | dict[str, Any]]) -> None:
    for row in rows:
        say_json(msgspec.json.encode(row))


def _print_csv(rows: Iterable[dict[str, Any]]) -> None:
    """Times are in ISO 8601, arguments in JSON, keyed hashes in hexadecimal; a missing value is an empty field."""
    writer = csv.DictWriter(sys.stdout, EXPORTED, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        row["started_at"] = datetime.fromtimestamp(row["started_at"], UTC).isoformat()
        if row["arguments"] is not None:
            row["arguments"] = msgspec.json.encode(row["arguments"]).decode()
        writer.writerow(row)
    sys.stdout.flush()  # raises a write error here, not at exit
