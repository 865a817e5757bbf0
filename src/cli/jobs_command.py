"""``toold jobs``: the jobs of deployments."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import click
import msgspec

from .console_tables import Row, print_table
from .operator_client import platform_request
from .status_command import cell
from .terminal_output import say, say_json

HEADERS: Final[Row] = ("JOB", "OPERATION", "SERVICE", "STATUS", "PHASE", "PROGRESS", "CREATED")

_POLL_S: Final = 0.5
_MAX_LINES: Final = 1000
_STATUSES: Final = ("queued", "running", "completed", "failed", "cancelled")


@click.group()
def command() -> None:
    """List, show and cancel your jobs: deployments of agents and their removals."""


@command.command("list", short_help="List your jobs, newest first.")
@click.option(
    "--service", metavar="NAME", help="Only jobs of this deployed agent (its service_name, such as acme-greeter)."
)
@click.option("--status", type=click.Choice(_STATUSES), help="Only jobs with this status.")
@click.option("--limit", metavar="N", type=click.IntRange(1, 100), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(service: str | None, status: str | None, limit: int, as_json: bool) -> None:
    """List your jobs of the last seven days, newest first."""
    chosen: dict[str, int | str] = {"limit": limit}
    chosen |= {} if service is None else {"service_name": service}
    chosen |= {} if status is None else {"status": status}
    jobs = platform_request("GET", "/jobs", None, **chosen)["jobs"]
    if as_json:
        say_json(msgspec.json.encode(jobs))
    elif not jobs:
        say("There is no such job; `toold deploy` begins one (docs/deploy.md).")
    else:
        print_table(HEADERS, job_rows(jobs), shrink="SERVICE")


def job_rows(jobs: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The table's rows."""
    return [
        (
            cell(job["job_id"]),
            cell(job["operation"]),
            cell(job["service_name"]),
            cell(job["status"]),
            cell(job["current_phase"]),
            "-" if job["progress"] is None else f"{cell(job['progress'])} %",
            cell(job["created_at"]),
        )
        for job in jobs
    ]


@command.command(short_help="Show one job.")
@click.argument("job_id")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(job_id: str, as_json: bool) -> None:
    """Show the job JOB_ID with its result, or with its error and the phases that were undone."""
    _say_job(_job(job_id), as_json=as_json)


@command.command(short_help="Show the last lines of a job's log.")
@click.argument("job_id")
@click.option("--lines", metavar="N", type=click.IntRange(1, _MAX_LINES), default=100, show_default=True)
@click.option("--follow", "follows", is_flag=True, help="Show further lines until the job ends.")
def logs(job_id: str, lines: int, follows: bool) -> None:
    """Show the last lines of the log of job JOB_ID. With --follow, exit with 1 if the job does not complete."""
    if follows:
        follow(job_id, as_json=False)
        return
    for line in _lines(job_id, lines):
        say(line)


@command.command(short_help="Cancel a job, which then removes what it created.")
@click.argument("job_id")
def cancel(job_id: str) -> None:
    """Cancel the job JOB_ID. It removes what it has created, and then ends; `toold jobs show` says what was removed."""
    job = platform_request("POST", f"/jobs/{quote(job_id, safe='')}/cancel")
    say(f"Job {job['job_id']} is being cancelled; it removes what it has made.")


def follow(job_id: str, *, as_json: bool) -> None:
    """Show the lines of a job's log until it ends, and the job; exits with 1 if it did not complete."""
    shown = 0
    while True:
        job = _job(job_id)
        lines = _lines(job_id, _MAX_LINES)
        for line in () if as_json else lines[shown:]:
            say(line)
        shown = len(lines)
        if job["status"] not in {"queued", "running"}:
            break
        time.sleep(_POLL_S)
    _say_job(job, as_json=as_json)
    sys.exit(job["status"] != "completed")


def _job(job_id: str) -> dict[str, Any]:
    return platform_request("GET", f"/jobs/{quote(job_id, safe='')}")


def _lines(job_id: str, lines: int) -> list[str]:
    found: list[str] = platform_request("GET", f"/jobs/{quote(job_id, safe='')}/logs", lines=lines)["logs"]
    return found


def _say_job(job: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        say_json(msgspec.json.encode(job))
        return
    say(f"{cell(job['operation'])} {cell(job['service_name'])}: {cell(job['status'])}")
    if job["status"] in {"queued", "running"} and job["current_phase"] is not None:
        say(f"phase: {cell(job['current_phase'])}")
    for name, value in (job["result"] or {}).items():
        say(f"{name}: {cell(value if isinstance(value, str | int | float) else msgspec.json.encode(value).decode())}")
    if job["error"] is not None:
        say(f"error: {cell(job['error'])}")
