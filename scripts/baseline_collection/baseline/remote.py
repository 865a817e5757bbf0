"""Writes a record's rows to a Supabase project, through its REST interface."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import httpx
import msgspec

from .record import Call, Record, Summary

TIMEOUT_S: Final = 30.0
ROWS_AT_ONCE: Final = 500
URL_VARIABLES: Final = ("TOOLD_SUPABASE_URL", "SUPABASE_URL")
KEY_VARIABLES: Final = ("TOOLD_SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SERVICE_ROLE_KEY")
"""The names of the daemon's settings, in order of precedence."""

Row = dict[str, Any]


class UploadError(Exception):
    """Not all rows were written; the message says why. Repeating the upload completes it."""


def project_of(env: Mapping[str, str]) -> tuple[str, str]:
    """The address and key of the project from the environment.

    Raises:
        UploadError: a variable is missing, or the address is invalid.
    """
    url, key = (next((env[name] for name in names if env.get(name)), None) for names in (URL_VARIABLES, KEY_VARIABLES))
    if url is None or key is None:
        raise UploadError(f"set {URL_VARIABLES[0]} and {KEY_VARIABLES[0]} to a Supabase project's address and key")
    if not _is_address(url):
        raise UploadError(
            f"{URL_VARIABLES[0]} must be an address such as https://your-project.supabase.co, not {url!r}"
        )
    key = key.strip()
    if not (key.isascii() and key.isprintable()):  # it would appear in the HTTP library's error
        raise UploadError(f"{KEY_VARIABLES[0]} contains characters that a key cannot have; copy it again")
    return url, key


def _is_address(url: str) -> bool:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return parsed.scheme in {"http", "https"} and bool(parsed.host)


def upload(record: Record, url: str, key: str) -> int:
    """Write all rows of the record, replacing existing ones. Returns their number.

    Raises:
        UploadError: the project cannot be reached or refuses the rows.
    """
    headers = {
        "apikey": key,
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Prefer": "resolution=merge-duplicates,return=minimal",
    }
    sent = 0
    with httpx.Client(base_url=f"{url.rstrip('/')}/rest/v1/", headers=headers, timeout=TIMEOUT_S) as client:
        for table, on_conflict, rows in _tables(record):
            for start in range(0, len(rows), ROWS_AT_ONCE):
                batch = rows[start : start + ROWS_AT_ONCE]
                _send(client, table, on_conflict, batch)
                sent += len(batch)
    return sent


def _send(client: httpx.Client, table: str, on_conflict: str, rows: Sequence[Row]) -> None:
    try:
        answer = client.post(table, params={"on_conflict": on_conflict}, content=msgspec.json.encode(rows))
    except httpx.HTTPError as error:
        raise UploadError(f"{client.base_url.host} cannot be reached: {error}") from error
    if answer.is_success:
        return
    hint = ""
    if answer.status_code == httpx.codes.NOT_FOUND:
        hint = "; apply supabase/migrations"
    elif answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        hint = f"; {KEY_VARIABLES[0]} must be the service role's key"
    raise UploadError(f"{table} was not written: {answer.status_code} {answer.text[:300]}{hint}")


def _tables(record: Record) -> Iterator[tuple[str, str, list[Row]]]:
    """The rows of each table. The run comes first, because the others refer to it."""
    yield "toold_baseline_runs", "id", [_run_row(record)]
    calls = [_call_row(record.id, number, call) for number, call in enumerate(record.calls)]
    yield "toold_baseline_calls", "run_id,number", calls
    summaries = [_summary_row(record.id, summary) for summary in record.summaries]
    yield "toold_baseline_summaries", "run_id,tool_name,load", summaries


def _run_row(record: Record) -> Row:
    return {
        "id": record.id,
        "format": record.format,
        "started_at": record.started,
        "finished_at": record.finished,
        "contention": record.contention,
        "paired_run": record.paired_run,
        "complete": record.complete,
        "simulated": record.simulated,
        "daemon": record.environment.daemon,
        "commit": record.environment.commit,
        "environment": record.environment,
        "configuration": record.configuration,
        "skipped": record.skipped,
    }


def _call_row(run_id: str, number: int, call: Call) -> Row:
    timings, tokens, cost = call.timings, call.tokens, call.cost
    return {
        "run_id": run_id,
        "number": number,
        "tool_name": call.tool_name,
        "load": call.load.label,
        "iteration": call.iteration,
        "status": call.status,
        "started_at": call.timestamp,
        "latency_ms": call.latency_ms,
        "late_ms": call.late_ms,
        "daemon_ms": timings.daemon_ms if timings else None,
        "queue_ms": timings.queue_ms if timings else None,
        "tool_ms": timings.tool_ms if timings else None,
        "provider_ms": timings.provider_ms if timings else None,
        "model": call.model,
        "input_tokens": tokens.input if tokens else None,
        "output_tokens": tokens.output if tokens else None,
        "cost_amount": cost.amount if cost else None,
        "cost_currency": cost.currency if cost else None,
        "output_bytes": call.output_bytes,
        "error_code": call.error_code,
        "simulated": call.simulated,
    }


def _summary_row(run_id: str, summary: Summary) -> Row:
    latency = summary.latency_ms
    return {
        "run_id": run_id,
        "tool_name": summary.tool_name,
        "load": summary.load.label,
        "calls": summary.count,
        "successes": summary.successes,
        "p50_ms": latency.p50.value if latency else None,
        "p50_low_ms": latency.p50.low if latency else None,
        "p50_high_ms": latency.p50.high if latency else None,
        "p90_ms": latency.p90.value if latency else None,
        "p95_ms": latency.p95.value if latency else None,
        "p99_ms": latency.p99.value if latency else None,
        "mean_ms": latency.mean if latency else None,
        "throughput_per_s": summary.throughput_per_s,
        "summary": summary,
    }
