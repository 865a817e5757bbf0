"""Baseline records in a Supabase project: all rows arrive once, and only the service role can read them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from baseline.record import (
    Call,
    CallTimings,
    Configuration,
    Environment,
    Load,
    Machine,
    Money,
    Record,
    Skipped,
    Tokens,
    write,
)
from baseline.remote import UploadError, project_of, upload
from baseline.summary import summaries

TABLES = ("toold_baseline_runs", "toold_baseline_calls", "toold_baseline_summaries")
ONE = Load(concurrency=1)


@pytest.fixture
def record() -> Record:
    """A run of 600 calls, one of which failed."""
    reported = CallTimings(daemon_ms=1.5, queue_ms=0.25, tool_ms=1.0, provider_ms=0.5)
    plain = Call(
        tool_name="chat",
        iteration=1,
        load=ONE,
        round=1,
        segment=1,
        status="success",
        timestamp="2026-01-01T12:00:00.5+00:00",
        offset_s=0.5,
        latency_ms=2.0,
        late_ms=0.0,
        timings=reported,
        tokens=Tokens(input=3, output=4),
        cost=Money(amount=0.5, currency="USD"),
        model="kimi-k2.6",
        simulated=True,
    )
    calls = [msgspec.structs.replace(plain, iteration=number) for number in range(1, 600)]
    failed = {"status": "error", "error_code": "TIMEOUT", "timings": None, "tokens": None, "cost": None, "model": None}
    calls.append(msgspec.structs.replace(plain, iteration=600, **failed))
    return Record(
        id="run-1",
        started="2026-01-01T12:00:00+00:00",
        finished="2026-01-01T12:01:00+00:00",
        contention=0.25,
        paired_run="run-2",
        complete=True,
        simulated=True,
        environment=Environment(
            machine=Machine(system="Linux", processor="a CPU", cores=2, memory_mib=None, load_average=(0.1, 0.1, 0.1)),
            python="CPython 3.11.7",
            packages={},
            commit="abc",
            daemon="toold 0.1.0",
        ),
        configuration=Configuration(
            daemon="simulate",
            toolset=None,
            tools=("chat",),
            arguments={"chat": {"prompt": "a"}},
            loads=(ONE,),
            iterations=600,
            warmup=0,
            rounds=1,
            timeout_s=None,
        ),
        skipped=(Skipped(tool_name="other", reason="for a test"),),
        calls=tuple(calls),
        summaries=tuple(summaries(calls)),
    )


@pytest.fixture
def tables(database: Any) -> Any:
    """The project with empty tables for baselines."""
    database.sql("TRUNCATE toold_baseline_runs CASCADE")
    return database


def counts(tables: Any) -> list[str]:
    rows: str = tables.sql("; ".join(f"SELECT count(*) FROM {table}" for table in TABLES))  # noqa: S608 - our own names
    return rows.splitlines()


def test_repeated_upload_adds_no_rows(tables: Any, gateway_url: str, service_key: str, record: Record) -> None:
    """A run has its rows and figures in the three tables; a repeated upload replaces them."""
    assert upload(record, gateway_url, service_key) == 602
    assert upload(record, gateway_url, service_key) == 602
    assert counts(tables) == ["1", "600", "1"]
    run = "daemon, simulated, complete, configuration->>'iterations', contention, paired_run"
    assert tables.sql(f"SELECT {run} FROM toold_baseline_runs") == "toold 0.1.0|t|t|600|0.25|run-2"  # noqa: S608 - as above
    figures = "load, latency_ms, daemon_ms, queue_ms, provider_ms, input_tokens, cost_amount, error_code"
    query = f"SELECT {figures} FROM toold_baseline_calls WHERE iteration IN (1, 600) ORDER BY number"  # noqa: S608 - as above
    assert tables.sql(query).splitlines() == ["1 at once|2|1.5|0.25|0.5|3|0.5|", "1 at once|2||||||TIMEOUT"]
    summary = "calls, successes, p50_ms, summary->'errors'->>'TIMEOUT'"
    assert tables.sql(f"SELECT {summary} FROM toold_baseline_summaries") == "600|599|2|1"  # noqa: S608 - as above


def test_deleted_run_is_deleted_with_its_rows(tables: Any, gateway_url: str, service_key: str, record: Record) -> None:
    """Deleting a run deletes its calls and summaries."""
    upload(record, gateway_url, service_key)
    tables.sql("DELETE FROM toold_baseline_runs")
    assert counts(tables) == ["0", "0", "0"]


def test_upload_with_the_anon_key_is_refused(tables: Any, gateway_url: str, anon_key: str, record: Record) -> None:
    """With another key than the service role's no row is written, and the error names the required key."""
    with pytest.raises(UploadError, match="must be the service role's key"):
        upload(record, gateway_url, anon_key)
    assert counts(tables) == ["0", "0", "0"]


@pytest.mark.parametrize("role", ["anon", "authenticated"])
@pytest.mark.parametrize("table", TABLES)
def test_public_roles_cannot_read_baselines(tables: Any, role: str, table: str) -> None:
    """The public API's roles have no grant on the tables, and row-level security has no policy for them."""
    with pytest.raises(AssertionError, match="permission denied"):
        tables.sql(f"SELECT * FROM {table}", role=role)  # noqa: S608 - our own names
    assert tables.sql(f"SELECT relrowsecurity FROM pg_class WHERE oid = 'public.{table}'::regclass") == "t"  # noqa: S608 - as above
    assert tables.sql(f"SELECT count(*) FROM pg_policies WHERE tablename = '{table}'") == "0"  # noqa: S608 - as above


def test_upload_script_sends_files(
    tmp_path: Path, tables: Any, gateway_url: str, service_key: str, record: Record
) -> None:
    """``upload.py`` sends records to the project that the environment names."""
    path = tmp_path / "run.json"
    write(path, record)
    script = Path(__file__).parents[2] / "scripts/baseline_collection/upload.py"
    env = {"TOOLD_SUPABASE_URL": gateway_url, "TOOLD_SUPABASE_SERVICE_ROLE_KEY": service_key}
    done = subprocess.run([sys.executable, script, path], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"602 rows of {path}\n"), done.stderr
    assert counts(tables) == ["1", "600", "1"]


def test_unreachable_project_is_reported(record: Record) -> None:
    """If no server answers, the error names the unreachable host."""
    with pytest.raises(UploadError, match=r"127\.0\.0\.1 cannot be reached"):
        upload(record, "http://127.0.0.1:9", "key")


def test_missing_or_invalid_project_is_reported() -> None:
    """Without address or key in the environment the error names both variables; an invalid address is reported; the
    older variable names also work."""
    with pytest.raises(UploadError, match="TOOLD_SUPABASE_URL and TOOLD_SUPABASE_SERVICE_ROLE_KEY"):
        project_of({"TOOLD_SUPABASE_URL": "http://x"})
    for wrong in ("x", "ftp://x", "http://", "http://[::1"):
        with pytest.raises(UploadError, match=r"must be an address such as https://.*, not "):
            project_of({"TOOLD_SUPABASE_URL": wrong, "SUPABASE_SERVICE_ROLE_KEY": "k"})
    assert project_of({"SUPABASE_URL": "http://x", "SUPABASE_SERVICE_ROLE_KEY": "k"}) == ("http://x", "k")


def test_invalid_key_is_not_in_the_error() -> None:
    """White space around a key is removed; the error for a key with invalid characters does not contain the key."""
    env = {"TOOLD_SUPABASE_URL": "http://x", "TOOLD_SUPABASE_SERVICE_ROLE_KEY": "the-key\n"}
    assert project_of(env) == ("http://x", "the-key")
    for wrong in ("the\nkey", "the-k\u00e9y"):
        with pytest.raises(UploadError, match="contains characters that a key cannot have") as refused:
            project_of(env | {"TOOLD_SUPABASE_SERVICE_ROLE_KEY": wrong})
        assert "the" not in str(refused.value)
