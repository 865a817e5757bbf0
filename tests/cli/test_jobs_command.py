"""``toold deploy``, ``toold undeploy`` and ``toold jobs``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.cli.conftest import Operated, Run


def job(**fields: Any) -> dict[str, Any]:
    shown = {"job_id": "0-2", "operation": "deploy", "service_name": "acme-greeter", "status": "completed"}
    absent = ("current_phase", "result", "error")
    return {**shown, **dict.fromkeys(absent), "progress": 100, "created_at": "2026-11-23T19:00:00.000Z", **fields}


def test_deploy(run: Run, operated: Operated) -> None:
    """The words are the fields of the request, with numbers as numbers; with --wait, the log and the result follow."""
    operated.answers["POST /api/v1/agents/deploy"] = (202, job(status="queued"))
    begun = run("deploy", "customer_id=acme", "agent_name=greeter", "prompt_ref=greeter", "port=9000")
    assert begun.output == "Job 0-2 deploys acme-greeter; `toold jobs logs 0-2` shows its progress.\n"
    fields = {"customer_id": "acme", "agent_name": "greeter", "prompt_ref": "greeter", "port": 9000}
    assert json.loads(operated.requests[0].body) == fields
    operated.answers["GET /api/v1/jobs/0-2"] = (200, job(result={"url": "http://a", "roles": ["main"]}))
    operated.answers["GET /api/v1/jobs/0-2/logs"] = (200, {"logs": ["t url: done"]})
    waited = run("deploy", "customer_id=acme", "agent_id=7", "--wait")
    assert (waited.exit_code, waited.output.splitlines()) == (
        0,
        ["t url: done", "deploy acme-greeter: completed", "url: http://a", 'roles: ["main"]'],
    )


def test_refusal(run: Run, operated: Operated) -> None:
    """The daemon's errors are shown by field, and a job that failed ends a command that waits with 1."""
    problems = [{"loc": ["body", "cpu"], "msg": "is invalid", "type": "value_error"}]
    operated.answers["POST /api/v1/agents/deploy"] = (422, {"detail": problems})
    refused = run("deploy", "customer_id=acme")
    assert (refused.exit_code, refused.output) == (1, "cpu is invalid\n")
    operated.answers["DELETE /api/v1/agents/acme-greeter"] = (202, job(operation="undeploy"))
    operated.answers["GET /api/v1/jobs/0-2"] = (200, job(status="failed", error="No."))
    operated.answers["GET /api/v1/jobs/0-2/logs"] = (200, {"logs": []})
    failed = run("undeploy", "acme-greeter", "--wait")
    assert (failed.exit_code, failed.output) == (1, "deploy acme-greeter: failed\nerror: No.\n")


def test_jobs(run: Run, operated: Operated) -> None:
    """Jobs are listed as a table, shown, and cancelled."""
    operated.answers["GET /api/v1/jobs"] = (200, {"jobs": [job(status="running", progress=20, current_phase="key")]})
    listed = run("jobs", "list", "--service", "acme-greeter", "--status", "running", "--limit", "5")
    assert operated.requests[0].path == "/api/v1/jobs?limit=5&service_name=acme-greeter&status=running"
    row = listed.output.splitlines()[-1].split()
    assert row == ["0-2", "deploy", "acme-greeter", "running", "key", "20", "%", "2026-11-23T19:00:00.000Z"]
    operated.answers["POST /api/v1/jobs/0-2/cancel"] = (202, job(status="running"))
    assert run("jobs", "cancel", "0-2").output.startswith("Job 0-2 is being cancelled")
    operated.answers["GET /api/v1/jobs/0-1"] = (404, {"detail": "There is no job '0-1' of yours."})
    missing = run("jobs", "show", "0-1")
    assert (missing.exit_code, missing.output) == (1, "There is no job '0-1' of yours.\n")
    operated.answers["GET /api/v1/jobs/0-2/logs"] = (200, {"logs": ["a", "b"]})
    assert run("jobs", "logs", "0-2", "--lines", "2").output == "a\nb\n"
