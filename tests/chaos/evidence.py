"""Reads the evidence of a run: the lines of the effect log, and the audit rows in SQLite."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from .tally import Row


def effect_log(state: Path) -> Path:
    """The effect log of a daemon, which does not exist before its first execution."""
    return state / "sim_effect.log"


def effect_lines(state: Path) -> Sequence[str]:
    """The lines of the effect log, one per execution."""
    log = effect_log(state)
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else ()


def audit_rows(state: Path) -> Sequence[Row]:
    """All audit rows, the oldest first."""
    with closing(_open(state)) as database:
        rows = database.execute("SELECT id, request_id, outcome, executed FROM call ORDER BY seq")
        return [Row(each, json.loads(request_id), *rest) for each, request_id, *rest in rows]


def unsent(state: Path) -> int:
    """The number of rows that still have to be sent."""
    with closing(_open(state)) as database:
        query = "SELECT count(*) FROM call WHERE seq > coalesce((SELECT settled_seq FROM outbox), 0)"
        (number,) = database.execute(query).fetchone()
        return int(number)


LONGEST_TURN_S: Final = 0.5
"""The longest permitted turn of the event loop, in wall time and in processor time. It is this long because all
processes of a fault run share the processors.
"""


def turns(log: str) -> Sequence[float]:
    """The longest turns of the event loop that the daemon logged, in seconds."""
    events = [json.loads(line) for line in log.splitlines() if '"event loop delayed"' in line and line.endswith("}")]
    return [min(event["seconds"], event["cpu_seconds"]) for event in events]


def unpersisted(log: str) -> frozenset[str]:
    """The request ids of the answers that the daemon sent although it could not persist them."""
    event = '"event": "result sent before it was persisted"'
    lines = [json.loads(line) for line in log.splitlines() if event in line and line.endswith("}")]
    return frozenset(line["request_id"] for line in lines if "request_id" in line)  # child calls have none


def _open(state: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{state / 'toold.db'}?mode=ro", uri=True)
