"""Validation of a connection's first frame."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from toold.protocol.authorization import Authorization, AuthorizationDenied
from toold.protocol.handshake import (
    HelloAccepted,
    HelloRefused,
    hello_timed_out,
    parse_hello,
    stale_hello,
    token_of,
    validate_hello,
)
from toold.protocol.tool_call import LOCAL, ClientInfo

TOKEN = "a-token-of-the-test"


def authenticate(token: str | None) -> Authorization | AuthorizationDenied:
    if token == TOKEN:
        return Authorization(LOCAL)
    return (
        AuthorizationDenied("missing", "Send a token.")
        if token is None
        else AuthorizationDenied("invalid", "not the daemon's.")
    )


def validate(
    data: str | bytes, access: Authorization | AuthorizationDenied | None = None
) -> HelloAccepted | HelloRefused:
    frame = parse_hello(data)
    if isinstance(frame, HelloRefused):
        return frame
    access = access or authenticate(token_of(frame))
    return validate_hello(frame, access, make_label=lambda: "made-by-server", toolsets=("standard", "lean"))


def hello(**fields: object) -> HelloAccepted:
    decoded = validate(json.dumps({"op": "hello", "token": TOKEN, **fields}))
    assert isinstance(decoded, HelloAccepted)
    return decoded


@pytest.mark.parametrize(
    ("data", "close_code"),
    [
        ("", 4000),
        ("no json", 4000),
        ("[]", 4000),
        ("7", 4000),
        (b'{"op":"hello"}', 4000),
        ("[" * 100_000, 4000),
        ("{}", 4001),
        ('{"op":"call_tool","name":"echo"}', 4001),
        ('{"op":"helo"}', 4001),
        ('{"op":["hello"]}', 4001),
        ('{"op":"hello"}', 4003),
        ('{"op":"hello","token":null}', 4003),
        ('{"op":"hello","token":5}', 4003),
        ('{"op":"hello","token":"wrong"}', 4003),
    ],
)
def test_invalid_first_frames_close_with_their_code(data: str | bytes, close_code: int) -> None:
    """4000 for data that is not a JSON object, 4001 for other objects, 4003 for a missing or wrong token."""
    decoded = validate(data)
    assert isinstance(decoded, HelloRefused)
    assert decoded.close_code == close_code
    assert "wrong" not in decoded.error.message  # the token is never quoted


def test_no_hello_closes_with_4002() -> None:
    """The message says how long the daemon waited."""
    assert hello_timed_out(10).close_code == 4002
    assert "10 s" in hello_timed_out(10).error.message


def test_a_minimal_hello_is_plain() -> None:
    """A client without features keeps the label that it sent."""
    decoded = hello(session_id="baseline-1a2b3c4d")
    assert decoded.plain
    assert (decoded.label, decoded.label_problem, decoded.notice) == ("baseline-1a2b3c4d", None, None)
    assert decoded.principal == LOCAL


@pytest.mark.parametrize("session_id", [None, "", "ab", "x" * 65, "a b c", "äöü", 5, ["abc"]])
def test_an_invalid_label_is_replaced(session_id: object) -> None:
    """A missing or malformed session_id never closes the connection: another is generated, with the reason."""
    decoded = hello(session_id=session_id)
    assert decoded.label == "made-by-server"
    assert decoded.label_problem == ("missing" if session_id is None else "not 3-64 characters of A-Za-z0-9_-")


def test_features_are_the_common_ones() -> None:
    """Unknown features are omitted; a malformed list counts as empty, with a notice."""
    assert hello(features=["ack", "stream", "teleport", 5]).features == ("ack", "stream")
    assert hello(features="ack").features == ()
    assert "features" in (hello(features="ack").notice or "")


def test_a_hello_can_resume_a_session() -> None:
    """With the feature, the session can be resumed; with a key, the client resumes one."""
    assert (hello().resumable, hello(features=["resume"]).resumable) == (False, True)
    assert hello(features=["resume"]).resume_key is None
    decoded = hello(features=["resume"], resume={"key": "k", "more": 1})
    assert decoded.resume_key == "k"
    assert "resume" not in (decoded.notice or "")


@pytest.mark.parametrize(
    ("number", "accepted"),
    [(None, True), (1, True), (2**53, True), (0, False), (-1, False), (1.0, False), (True, False), (2**53 + 1, False)],
)
def test_a_resume_may_have_a_connection_number(number: object, accepted: bool) -> None:
    """A whole number above 0; any other value is ignored with a notice, and the session is resumed."""
    decoded = hello(features=["resume"], resume={"key": "k", "n": number})
    assert (decoded.resume_key, decoded.connection_number) == ("k", number if accepted else None)
    assert ("resume.n" in (decoded.notice or "")) is not accepted
    assert hello(features=["resume"], resume={"n": 1}).connection_number is None


def test_the_refusal_of_a_stale_hello() -> None:
    """It has both numbers and its own close code."""
    refused = stale_hello(3, 5)
    assert (refused.close_code, refused.error.code, refused.error.details) == (4005, "PROTOCOL_ERROR", {"n": 5})
    assert "connection 3 is too late" in refused.error.message


@pytest.mark.parametrize("resume", ["k", [], {}, {"key": None}, {"key": 5}, {"key": "k" * 201}, {"kee": "k"}])
def test_an_invalid_resume_has_a_notice(resume: object) -> None:
    """If its shape is wrong or the feature is missing, the notice says what is wrong."""
    decoded = hello(features=["resume"], resume=resume)
    assert (decoded.resume_key, decoded.resumable) == (None, True)
    assert "resume_key of an earlier hello_ack; this is a new session" in (decoded.notice or "")
    assert hello(resume={"key": "k"}).resume_key is None
    assert "requires the feature 'resume'" in (hello(resume={"key": "k"}).notice or "")


def test_a_client_can_request_a_toolset() -> None:
    """None means that the operator's default applies."""
    assert hello(toolset="lean").toolset == "lean"
    assert hello().toolset is None
    assert hello(toolset=None).toolset is None


@pytest.mark.parametrize(
    ("requested", "says"),
    [
        (
            "laen",
            "'laen' does not exist or is not permitted; did you mean 'lean'? You may use lean, standard,",
        ),
        ("x" * 500, "xxx' does not exist or is not permitted. You may use lean, standard, or omit the field"),
        (5, "toolset: not a string. You may use lean, standard,"),
        (["lean"], "toolset: not a string. You may use lean, standard,"),
        ("", "'' does not exist or is not permitted. You may use lean, standard,"),
    ],
)
def test_toolsets_that_are_not_permitted_are_refused(requested: object, says: str) -> None:
    """The error lists the permitted toolsets, as text and as data, and suggests a similar one."""
    decoded = validate(json.dumps({"op": "hello", "token": TOKEN, "toolset": requested}))
    assert isinstance(decoded, HelloRefused)
    assert (decoded.close_code, decoded.error.code) == (4003, "PERMISSION_DENIED")
    assert says in decoded.error.message
    assert len(decoded.error.message) < 300
    assert decoded.error.details == {"toolsets": ["lean", "standard"]}


def test_client_info() -> None:
    """Name, version and workspace, truncated; malformed values are ignored with a notice."""
    assert hello(client={"name": "ed", "version": "2", "workspace": "/w"}).client == ClientInfo("ed", "2", "/w")
    assert len(hello(client={"name": "x" * 999}).client.name) == 200
    assert "client" in (hello(client=[1]).notice or "")


@given(st.binary() | st.text(st.characters(exclude_categories=())))
@example('{"op":"hello","token":"\ud800"}')
def test_no_first_frame_raises(data: str | bytes) -> None:
    """Any first frame is accepted or refused."""
    validate(data)
