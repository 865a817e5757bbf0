"""A pytest plugin for the A2A suite's process: it changes what the suite sends, and stores the outcomes.

Of version 1.0: the suite sends different messages under one id, which is an error for toold, and names the scenario in
the id, which agents do not see. So each message gets its own id, and the scenario as one more text part. It wants one
agent that answers some messages by tasks and others by messages: the latter go to a second agent.

Of version 0.3: the suite reads the card at the path where the card of 1.0 is, so it gets the path of 0.3.
"""

import itertools
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

_build_request = httpx.Client.build_request
_numbers = itertools.count(1)
_NEW_CARD, _OLD_CARD = "/.well-known/agent-card.json", "/.well-known/agent.json"
_BY_MESSAGE = "tck-message-response"


def _build(client: httpx.Client, method: str, url: Any, **options: Any) -> httpx.Request:
    body = options.get("json")
    if isinstance(body, dict):
        params = body.get("params", body)
        message = params.get("message") if isinstance(params, dict) else None
        if isinstance(message, dict):
            options["json"] = _with_message(body, params, message)
            if str(message.get("messageId")).startswith(_BY_MESSAGE):
                url = f"{client.base_url}{str(url).lstrip('/')}".replace("/agents/tck/", "/agents/tck-messages/")
    return _build_request(client, method, url, **options)


def _with_message(body: dict[str, Any], params: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    name, parts = message.get("messageId"), message.get("parts")
    if not isinstance(name, str) or not isinstance(parts, list):
        return body
    changed = {**message, "messageId": f"{name}-{next(_numbers)}", "parts": [*parts, {"text": f"[scenario {name}]"}]}
    if params is body:
        return {**body, "message": changed}
    return {**body, "params": {**params, "message": changed}}


def _redirect_cards() -> None:
    requests = import_module("requests")  # in the environment of the suite for 0.3 alone

    send = requests.Session.request

    def request(session: Any, method: str, url: Any, *arguments: Any, **options: Any) -> Any:
        return send(session, method, str(url).replace(_NEW_CARD, _OLD_CARD), *arguments, **options)

    requests.Session.request = request


if os.environ["TCK_VERSION"] == "1.0":
    httpx.Client.build_request = _build  # type: ignore[method-assign, assignment]
else:
    _redirect_cards()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the outcome of a test to the file that the environment names, as one line of JSON."""
    if report.when == "call" or not report.passed:
        outcome = {"test": report.nodeid, "outcome": report.outcome, "message": report.longreprtext[-1000:]}
        with Path(os.environ["TCK_RESULTS"]).open("a", encoding="utf-8") as results:
            results.write(json.dumps(outcome) + "\n")
