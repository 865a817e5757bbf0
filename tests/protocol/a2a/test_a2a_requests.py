"""Whatever a client of A2A sends is read, or refused with an error of the protocol."""

import base64
import math
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.a2a.a2a_decisions import decisions_in
from toold.protocol.a2a.a2a_error import INVALID_PARAMS, A2AError
from toold.protocol.a2a.a2a_request import MAX_PARTS, A2AMessage, read_send, read_task
from toold.protocol.a2a.a2a_route import is_a2a_path, route_of
from toold.protocol.a2a.a2a_version import send_params_of_0_3, version_of
from toold.protocol.a2a.push_config import read_push
from toold.protocol.a2a.task_page import page_token, read_list
from toold.protocol.input_request import InputRequest

NAMES = st.sampled_from(
    [
        *("message", "messageId", "message_id", "role", "parts", "text", "data", "raw", "url", "kind"),
        *("file", "uri", "metadata", "configuration", "blocking", "returnImmediately", "historyLength"),
        *("contextId", "taskId", "id", "pageSize", "pageToken", "status", "statusTimestampAfter"),
        *("includeArtifacts", "token", "authentication", "scheme", "schemes", "credentials"),
        *("taskPushNotificationConfig", "decisions"),
    ]
)
VALUES = st.sampled_from(["ROLE_USER", "user", "text", "data", "http://[", "https://a.example:0/", "MS4wIDE=", "é"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | VALUES
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=12
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=6)


@given(OBJECTS)
def test_any_parameters_are_read_or_refused(params: dict[str, Any]) -> None:
    """No parameters raise anything else than an error of A2A, in either version."""
    for read in (read_send, read_task, read_list, lambda values: read_send(send_params_of_0_3(values))):
        with suppress(A2AError):
            read(params)
    with suppress(A2AError):
        read_push(params, "")


@given(st.text(max_size=40), st.sampled_from(["GET", "POST", "DELETE"]))
def test_any_path_and_version_is_read_or_refused(text: str, method: str) -> None:
    """Paths address something or nothing, and versions are supported or refused."""
    for path in (text, f"/agents/{text}", f"/agents/a/tasks/{text}", f"/agents/a/v0.3/{text}"):
        is_a2a_path(path)
        route_of(path, method)
    with suppress(A2AError):
        version_of(text)


@given(st.floats(min_value=0, max_value=1e11), st.integers(min_value=0, max_value=2**62))
def test_a_page_continues_where_its_token_says(changed_at: float, number: int) -> None:
    """The token of a page is read as it was made."""
    assert read_list({"pageToken": page_token(changed_at, number)}).before == (changed_at, number)


@given(
    st.sampled_from(["1", "-1", "nan", "inf", "1e999", "x", ""]) | st.floats().map(repr),
    st.integers().map(str) | st.sampled_from(["1" * 23, "1" * 5000, "9" * 19, "1_0", ""]),
)
def test_a_token_that_no_page_has_is_refused(changed_at: str, number: str) -> None:
    """A token is read as a finite time and a number that the database can hold, or refused as an invalid field."""
    token = base64.urlsafe_b64encode(f"{changed_at} {number}".encode()).decode()
    try:
        before = read_list({"pageToken": token}).before
    except A2AError as error:
        refused: tuple[object, bool] = (error.kind, "pageToken" in error.message)
        assert refused == (INVALID_PARAMS, True)
    else:
        assert before is not None
        assert math.isfinite(before[0])
        assert 0 <= before[1] < 2**63


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("approve", {"decision": "approve"}),
        (" Yes ", {"decision": "approve"}),
        ("no: too dear", {"decision": "reject", "text": "too dear"}),
        ("reject", {"decision": "reject"}),
        ("approve: but only once", None),
        ("I would approve", None),
        ("", None),
    ],
)
def test_only_certain_words_decide_on_a_call(text: str, decision: dict[str, str] | None) -> None:
    """A call is approved or rejected by these words alone; a condition approves nothing."""
    message = A2AMessage("m", text, (), text, None, "t", msgspec.Raw(b"[]"))
    requests = (InputRequest("t1.0", "approve", "echo", {}),)
    if decision is None:
        with pytest.raises(A2AError, match="reject: REASON"):
            decisions_in(message, requests)
    else:
        assert decisions_in(message, requests) == [{"id": "t1.0", **decision}]


def test_a_message_has_a_limited_number_of_parts() -> None:
    """One more part than ``MAX_PARTS`` is refused in both versions, before any part is looked at."""
    fields = {"messageId": "m", "role": "ROLE_USER"}
    allowed = read_send({"message": {**fields, "parts": [{"data": []}] * MAX_PARTS}})
    assert len(allowed.message.data) == MAX_PARTS
    params = {"message": {**fields, "role": "user", "parts": [None] * (MAX_PARTS + 1)}}
    for values in (params, send_params_of_0_3(params)):
        with pytest.raises(A2AError, match=f"has {MAX_PARTS + 1} parts, more than {MAX_PARTS}"):
            read_send(values)
