"""The state machine of a session's calls holds in any order of events."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from toold.protocol import session_calls
from toold.protocol.arguments_digest import arguments_digest, whole_digest
from toold.protocol.error_codes import CallCancelledError, ServiceUnavailableError
from toold.protocol.result_cache import ResultCache
from toold.protocol.session_calls import REMEMBERED_IDS, RequestIdState, SessionCalls
from toold.protocol.tool_call import Metadata, TextContent, Timings, ToolCall, ToolResult

KEYS = st.sampled_from("abcde")
CONTENTS = st.sampled_from([("echo", "x"), ("echo", "y"), ("chat", "x")])
MAX_ACCEPTED = 3
TTL_S = 10.0


def result(text: str = "") -> ToolResult:
    return ToolResult(Metadata(1.0, Timings()), (TextContent(text),))


def book(max_accepted: int = 32, max_bytes: int = 10**6) -> SessionCalls:
    return SessionCalls(max_accepted, ResultCache(max_bytes, TTL_S))


def register(calls: SessionCalls, key: str, arguments: dict[str, Any], *, now: float = 0) -> RequestIdState:
    return calls.register(key, "echo", ToolCall(key, "echo", arguments), now)


def answer(calls: SessionCalls, key: str, *, frame_bytes: int = 10, now: float = 0, journalled: bool = False) -> None:
    """Finishes the call and delivers its answer."""
    calls.finish(key, result(), 10, frame_bytes, now, journalled=journalled)
    calls.delivered()


def test_the_same_content_attaches() -> None:
    """The order of keys does not matter; values and their types do."""
    calls = book()
    assert register(calls, "a", {"x": 1, "y": 2}) is RequestIdState.NEW
    assert register(calls, "a", {"y": 2, "x": 1}) is RequestIdState.RUNNING
    assert register(calls, "a", {"x": 1.0, "y": 2}) is RequestIdState.CONFLICT
    assert register(calls, "a", {"x": True, "y": 2}) is RequestIdState.CONFLICT
    assert calls.register("a", "chat", ToolCall("a", "chat", {"x": 1, "y": 2}), 0) is RequestIdState.CONFLICT


@pytest.mark.parametrize(("chars", "journalled"), [(4_000, False), (100_000, True)])
def test_large_arguments_are_replaced_by_a_digest(chars: int, journalled: bool) -> None:
    """A done call does not retain megabytes, and still recognizes a repeat."""
    calls = book()
    large = {"text": "x" * chars}
    register(calls, "a", large)
    answer(calls, "a", frame_bytes=chars + 50, journalled=journalled)
    assert "x" * 100 not in repr(calls._done)
    assert register(calls, "a", large) is RequestIdState.DONE
    assert register(calls, "a", {"text": "y"}) is RequestIdState.CONFLICT


def test_long_arguments_of_a_local_call_are_kept_with_its_result() -> None:
    """They count as much as their frame, and no digest is made of them until one is asked for."""
    calls = book(max_bytes=150_000)
    long = {"text": "x" * 100_000}
    register(calls, "a", long)
    answer(calls, "a", frame_bytes=100_050)
    assert calls._cache.bytes == 100_060
    assert calls.arguments_hash("a") == arguments_digest(long)
    assert register(calls, "a", {**long}) is RequestIdState.DONE
    assert register(calls, "a", {"text": "y"}) is RequestIdState.CONFLICT
    register(calls, "b", long)
    answer(calls, "b", frame_bytes=100_050)
    assert "x" * 100 not in repr(calls._done["a"])
    assert register(calls, "a", {"text": "y"}) is RequestIdState.NEW


@pytest.mark.parametrize("hashed", [False, True], ids=["at once", "in a thread"])
def test_a_repeat_with_other_bytes_is_the_same_call(hashed: bool) -> None:
    """A repeat of a call with a long text may have its keys in another order, and may be hashed before or not."""

    def request(arguments: dict[str, Any], *, hashed: bool) -> ToolCall:
        return ToolCall("a", "echo", arguments, arguments_hash=arguments_digest(arguments) if hashed else None)

    calls = book()
    text = "x" * 100_000
    first, repeat, other = {"text": text, "n": 1}, {"n": 1, "text": text}, {"n": 1, "text": text + "y"}
    assert calls.register("a", "echo", request(first, hashed=True), 0) is RequestIdState.NEW
    assert calls.register("a", "echo", request(repeat, hashed=hashed), 0) is RequestIdState.RUNNING
    assert calls.register("a", "echo", request(other, hashed=hashed), 0) is RequestIdState.CONFLICT
    answer(calls, "a", frame_bytes=100_050)
    assert calls.register("a", "echo", request(repeat, hashed=hashed), 0) is RequestIdState.DONE
    assert calls.register("a", "echo", request(other, hashed=hashed), 0) is RequestIdState.CONFLICT


@pytest.mark.parametrize("hashed", [False, True], ids=["at once", "in a thread"])
def test_a_call_that_an_earlier_version_stored_is_recognised(hashed: bool) -> None:
    """Its digest is that of the canonical JSON with all texts."""
    calls, arguments, other = book(), {"n": 1, "text": "x" * 100_000}, {"n": 1, "text": "y" * 100_000}
    calls.restore(
        "a", "echo", whole_digest(arguments), result(), 10, 0, echo_id=False, journalled=True, interrupted=False
    )
    for repeat, state in ((arguments, RequestIdState.DONE), (other, RequestIdState.CONFLICT)):
        call = ToolCall("a", "echo", repeat, arguments_hash=arguments_digest(repeat) if hashed else None)
        assert calls.register("a", "echo", call, 0) is state


def test_the_arguments_hash_does_not_change() -> None:
    """The journal compares the hash from the start of a call with a later one, whatever the order of keys."""
    calls = book()
    register(calls, "a", {"x": 1, "y": 2})
    register(calls, "b", {"y": 2, "x": 1})
    before = calls.arguments_hash("a")
    answer(calls, "a", frame_bytes=100_000)
    assert before == calls.arguments_hash("a") == calls.arguments_hash("b")
    assert register(calls, "c", {"x": 1}) is RequestIdState.NEW
    assert calls.arguments_hash("c") != before


def test_a_full_session_accepts_no_calls_until_an_answer_is_sent() -> None:
    """Calls whose answer is not sent yet count; a repeat of a done call does not."""
    calls = book(max_accepted=2)
    assert [register(calls, key, {}) for key in "abc"] == [RequestIdState.NEW, RequestIdState.NEW, RequestIdState.FULL]
    calls.finish("a", result(), 10, 10, now=0, journalled=False)
    assert (len(calls), calls.status("a", 0), register(calls, "c", {})) == (2, "done", RequestIdState.FULL)
    calls.delivered()
    assert register(calls, "c", {}) is RequestIdState.NEW
    assert register(calls, "a", {}) is RequestIdState.DONE


def test_a_call_without_its_result_runs_again_only_if_safe() -> None:
    """Calls that were not journalled are dropped with their result; others are remembered as expired, and never run
    again.
    """
    calls = book()
    for key in ("local", "write"):
        register(calls, key, {})
        answer(calls, key, journalled=key == "write")
    later = TTL_S + 1
    assert (calls.status("local", later), calls.status("write", later)) == ("unknown", "expired")
    assert register(calls, "write", {}, now=later) is RequestIdState.EXPIRED
    assert register(calls, "write", {"other": 1}, now=later) is RequestIdState.CONFLICT
    assert register(calls, "local", {"other": 1}, now=later) is RequestIdState.NEW


def test_every_answer_is_final() -> None:
    """Also one that says that nothing was executed and that the call can be sent again, of a local call too."""
    errors = {
        "later": ServiceUnavailableError("Not now.", executed="no"),
        "never": CallCancelledError("Cancelled.", executed="no"),
        "unclear": ServiceUnavailableError("It broke off.", executed="maybe"),
    }
    for journalled in (True, False):
        calls = book()
        for key, error in errors.items():
            register(calls, key, {})
            failed = ToolResult(Metadata(1.0, Timings()), error=error.to_tool_error())
            calls.finish(key, failed, 10, 10, 0, journalled=journalled, started=key == "unclear")
            calls.delivered()
        assert {key: register(calls, key, {}) for key in errors} == dict.fromkeys(errors, RequestIdState.DONE)
        assert [calls.started(key) for key in errors] == [False, False, True]


def test_a_long_session_does_not_grow() -> None:
    """The oldest done calls are dropped with their results."""
    cache = ResultCache(10**6, TTL_S)
    calls = SessionCalls(32, cache)
    for number in range(REMEMBERED_IDS + 10):
        register(calls, str(number), {})
        answer(calls, str(number))
    assert calls.status("9", 0) == "unknown"
    assert calls.status("10", 0) == "done"
    assert len(cache) == REMEMBERED_IDS


@pytest.mark.parametrize("journalled", [True, False])
def test_dropping_journaled_calls_makes_the_session_incomplete(
    monkeypatch: pytest.MonkeyPatch, *, journalled: bool
) -> None:
    """An ``unknown`` call may then be in the journal, and so may acknowledged ones."""
    monkeypatch.setattr(session_calls, "REMEMBERED_IDS", 1)
    calls = book()
    for key in ("a", "b"):
        register(calls, key, {})
        assert not calls.incomplete
        answer(calls, key, journalled=journalled)
    register(calls, "runs", {})
    assert (calls.status("a", 0), calls.incomplete) == ("unknown", journalled)
    assert calls.acknowledge(["a", "b", "runs", "a"]) == (["b", "a"] if journalled else ["b"])


def test_finishing_in_the_journal() -> None:
    """The call counts until its answer is sent, and its id is then new in memory."""
    calls = book(max_accepted=1)
    register(calls, "a", {})
    calls.finish_in_journal("a")
    assert (len(calls), calls.running, calls.status("a", 0)) == (1, [], "unknown")
    calls.delivered()
    assert register(calls, "a", {"other": 1}) is RequestIdState.NEW


def test_ending_a_session_clears_its_results() -> None:
    """They cannot be requested any longer."""
    cache = ResultCache(10**6, TTL_S)
    calls = SessionCalls(32, cache)
    for key in "ab":
        register(calls, key, {})
    answer(calls, "a")
    calls.end()
    answer(calls, "b")  # it continued
    assert (len(cache), cache.bytes, len(calls)) == (0, 0, 0)


def test_retained_results_are_in_order() -> None:
    """Oldest first, without expired ones, with the data needed to send them again."""
    calls = book()
    for key in "abc":
        calls.register(key, "echo", ToolCall(key, "echo", {}, echo_id=key == "c"), 0)
    for key, now in (("b", 0.0), ("c", 5.0), ("a", 5.0)):
        answer(calls, key, now=now, journalled=key == "a")
    assert [(retained.key, retained.journalled, retained.echo_id) for retained in calls.retained(TTL_S + 1)] == [
        ("c", False, True),
        ("a", True, False),
    ]


def test_restored_calls_behave_like_original_ones() -> None:
    """Retained, interrupted and expired calls of an earlier process: listed, replayed and rejected as before."""
    before = book()
    register(before, "a", {"x": 1})
    content = before.arguments_hash("a")
    calls = book()
    for key, retained, since, interrupted in (
        ("done", result("x"), 5, False),
        ("interrupted", result("?"), 5, True),
        ("expired", None, 5, False),
        ("old", result("x"), -TTL_S, False),
    ):
        calls.restore(
            key, "echo", content, retained, 10, since, echo_id=False, journalled=True, interrupted=interrupted
        )
    assert [calls.status(key, 6) for key in ("done", "interrupted", "expired", "old")] == [
        "done",
        "interrupted",
        "expired",
        "expired",
    ]
    assert [retained.key for retained in calls.retained(6)] == ["done", "interrupted"]
    assert (register(calls, "done", {"x": 1}, now=6), calls.result("done", 6)) == (RequestIdState.DONE, result("x"))
    assert register(calls, "done", {"x": 2}, now=6) is RequestIdState.CONFLICT
    assert register(calls, "interrupted", {"x": 1}, now=6) is RequestIdState.DONE
    assert register(calls, "expired", {"x": 1}, now=6) is RequestIdState.EXPIRED
    assert len(calls) == 0


def test_acknowledge_returns_the_done_calls() -> None:
    """Running and unknown calls are ignored; duplicates count once."""
    calls = book()
    for key in "ab":
        register(calls, key, {})
    answer(calls, "a")
    assert calls.acknowledge(["a", "b", "c", "a"]) == ["a"]
    assert [calls.status(key, 0) for key in "abc"] == ["unknown", "running", "unknown"]
    assert calls.running == ["b"]


class Book(RuleBasedStateMachine):
    """A model with plain dicts, compared with the real state machine, while time passes and the cache is small."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = ResultCache(50, TTL_S)
        self.calls = SessionCalls(MAX_ACCEPTED, self.cache)
        self.now = 0.0
        self.running: dict[str, tuple[str, str]] = {}
        self.done: dict[str, tuple[str, str]] = {}
        self.journalled: set[str] = set()
        self.sending = 0

    def retained(self, key: str) -> bool:
        return self.calls.result(key, self.now) is not None

    def known(self, key: str) -> tuple[str, str] | None:
        """Returns the call with an id; a call that may run again is unknown once its result has expired."""
        if key in self.done and key not in self.journalled and not self.retained(key):
            return None
        return self.running.get(key) or self.done.get(key)

    @rule(seconds=st.integers(1, 6))
    def time_passes(self, seconds: int) -> None:
        """Lets results expire."""
        self.now += seconds

    @rule(key=KEYS, content=CONTENTS)
    def register(self, key: str, content: tuple[str, str]) -> None:
        """Accepts a call, and checks the state against the model."""
        known = self.known(key)
        if known is None:
            self.done.pop(key, None)
            state = RequestIdState.FULL if len(self.running) + self.sending == MAX_ACCEPTED else RequestIdState.NEW
        elif known != content:
            state = RequestIdState.CONFLICT
        elif key in self.running:
            state = RequestIdState.RUNNING
        else:
            state = RequestIdState.DONE if self.retained(key) else RequestIdState.EXPIRED
        name, text = content
        assert self.calls.register(key, name, ToolCall(key, name, {"text": text}), self.now) is state
        if state is RequestIdState.NEW:
            assert key not in self.journalled, "a call that was started ran twice"
            self.running[key] = content

    @rule(key=KEYS, size=st.integers(1, 30), frame_bytes=st.sampled_from([10, 10_000]), journalled=st.booleans())
    def finish(self, key: str, size: int, frame_bytes: int, journalled: bool) -> None:
        """Finishes a running call; its answer is about to be sent."""
        if key in self.running:
            self.calls.finish(key, result(key), size, frame_bytes, self.now, journalled=journalled)
            self.done[key] = self.running.pop(key)
            self.sending += 1
            if journalled:
                self.journalled.add(key)

    @precondition(lambda self: self.sending)
    @rule()
    def delivered(self) -> None:
        """Delivers one answer."""
        self.calls.delivered()
        self.sending -= 1

    @rule(key=KEYS)
    def withdraw(self, key: str) -> None:
        """Withdraws a call, which leaves no trace."""
        self.calls.withdraw(key)
        self.running.pop(key, None)

    @rule(key=KEYS)
    def acknowledge(self, key: str) -> None:
        """Acknowledges a result: journalled calls are remembered as expired, others are dropped."""
        assert self.calls.acknowledge([key]) == ([key] if key in self.done else [])
        if key not in self.journalled:
            self.done.pop(key, None)

    @invariant()
    def status_tells_the_truth(self) -> None:
        """The state of each call matches the model, and each retained result is the call's own."""
        assert len(self.calls) == len(self.running) + self.sending
        for key in "abcde":
            status = self.calls.status(key, self.now)
            if key in self.running:
                assert status == "running"
            elif key in self.done and self.retained(key):
                assert status == "done"
                assert self.calls.result(key, self.now) == result(key)
            else:
                assert status == ("expired" if key in self.done and key in self.journalled else "unknown")


TestBook = Book.TestCase
TestBook.settings = settings(max_examples=50, deadline=None)
