"""A pytest plugin for the A2A suite's process: it changes the messages that the suite sends, and stores the outcomes.

The suite sends different messages under one id, which is an error for toold, and names the scenario in the id, which
agents do not see. So each message gets its own id, and the scenario as one more text part.
"""

import itertools
import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

_build_request = httpx.Client.build_request
_numbers = itertools.count(1)


def _build(client: httpx.Client, *arguments: Any, **options: Any) -> httpx.Request:
    body = options.get("json")
    if isinstance(body, dict):
        params = body.get("params", body)
        message = params.get("message") if isinstance(params, dict) else None
        if isinstance(message, dict):
            options["json"] = _with_message(body, params, message)
    return _build_request(client, *arguments, **options)


def _with_message(body: dict[str, Any], params: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    name, parts = message.get("messageId"), message.get("parts")
    if not isinstance(name, str) or not isinstance(parts, list):
        return body
    changed = {**message, "messageId": f"{name}-{next(_numbers)}", "parts": [*parts, {"text": f"[scenario {name}]"}]}
    if params is body:
        return {**body, "message": changed}
    return {**body, "params": {**params, "message": changed}}


httpx.Client.build_request = _build  # type: ignore[method-assign, assignment]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the outcome of a test to the file that the environment names, as one line of JSON."""
    if report.when == "call" or not report.passed:
        outcome = {"test": report.nodeid, "outcome": report.outcome, "message": report.longreprtext[-1000:]}
        with Path(os.environ["TCK_RESULTS"]).open("a", encoding="utf-8") as results:
            results.write(json.dumps(outcome) + "\n")
