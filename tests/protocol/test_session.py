"""The session's book of calls keeps to its rules in any order of events."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from toold.protocol.calls import Metadata, TextContent, Timings, ToolResult
from toold.protocol.session import REMEMBERED_IDS, SessionCalls, Verdict
from toold.protocol.shelf import Shelf

KEYS = st.sampled_from("abcde")
CONTENTS = st.sampled_from([("echo", "x"), ("echo", "y"), ("chat", "x")])
TTL_S = 10.0


def result(text: str = "") -> ToolResult:
    return ToolResult(Metadata(1.0, Timings()), (TextContent(text),))


def book(max_accepted: int = 32, max_bytes: int = 10**6) -> SessionCalls:
    return SessionCalls("session", max_accepted, Shelf(max_bytes, TTL_S))


def accept(calls: SessionCalls, key: str, arguments: dict[str, Any], *, now: float = 0, local: bool = True) -> Verdict:
    return calls.accept(key, "echo", arguments, now, local=local)


def test_the_same_id_with_the_same_content_attaches() -> None:
    """The order of keys does not matter, the values and their types do."""
    calls = book()
    assert accept(calls, "a", {"x": 1, "y": 2}) is Verdict.NEW
    assert accept(calls, "a", {"y": 2, "x": 1}) is Verdict.SAME
    assert accept(calls, "a", {"x": 1.0, "y": 2}) is Verdict.CONFLICT
    assert accept(calls, "a", {"x": True, "y": 2}) is Verdict.CONFLICT
    assert calls.accept("a", "chat", {"x": 1, "y": 2}, 0, local=True) is Verdict.CONFLICT


def test_large_arguments_are_remembered_by_their_digest() -> None:
    """A done call does not hold on to megabytes, and still knows itself."""
    calls = book()
    large = {"text": "x" * 100_000}
    accept(calls, "a", large)
    calls.finish("a", result(), 10, 100_050, now=0)
    assert "x" * 100 not in repr(calls._done)
    assert accept(calls, "a", large) is Verdict.DONE
    assert accept(calls, "a", {"text": "y"}) is Verdict.CONFLICT


def test_a_full_session_lets_no_more_in_until_a_call_is_done() -> None:
    """The bound counts accepted calls that are not answered; a repeat of a done one is no new call."""
    calls = book(max_accepted=2)
    assert [accept(calls, key, {}) for key in "abc"] == [Verdict.NEW, Verdict.NEW, Verdict.FULL]
    calls.finish("a", result(), 10, 10, now=0)
    assert accept(calls, "c", {}) is Verdict.NEW
    assert accept(calls, "a", {}) is Verdict.DONE


def test_a_call_whose_result_is_gone_runs_again_only_where_that_is_safe() -> None:
    """A local call is forgotten with its result; any other is remembered as expired, and never run again."""
    calls = book()
    for key, local in (("local", True), ("write", False)):
        accept(calls, key, {}, local=local)
        calls.finish(key, result(), 10, 10, now=0)
    later = TTL_S + 1
    assert (calls.status("local", later), calls.status("write", later)) == ("unknown", "expired")
    assert accept(calls, "write", {}, now=later, local=False) is Verdict.EXPIRED
    assert accept(calls, "write", {"other": 1}, now=later, local=False) is Verdict.CONFLICT
    assert accept(calls, "local", {"other": 1}, now=later) is Verdict.NEW


def test_a_long_session_does_not_grow() -> None:
    """Of done calls only so many are remembered, the oldest are dropped first, with their results."""
    shelf = Shelf(10**6, TTL_S)
    calls = SessionCalls("session", 32, shelf)
    for number in range(REMEMBERED_IDS + 10):
        accept(calls, str(number), {})
        calls.finish(str(number), result(), 10, 10, now=0)
    assert calls.status("9", 0) == "unknown"
    assert calls.status("10", 0) == "done"
    assert len(shelf) == REMEMBERED_IDS


def test_a_session_that_ends_leaves_nothing_on_the_shelf() -> None:
    """Nobody can ask for its results any more."""
    shelf = Shelf(10**6, TTL_S)
    calls = SessionCalls("session", 32, shelf)
    accept(calls, "a", {})
    calls.finish("a", result(), 10, 10, now=0)
    calls.end()
    assert (len(shelf), shelf.bytes) == (0, 0)


class Book(RuleBasedStateMachine):
    """A model of the book as plain dicts, held against the real one; time passes, and results have little room."""

    def __init__(self) -> None:
        super().__init__()
        self.shelf = Shelf(50, TTL_S)
        self.calls = SessionCalls("session", 3, self.shelf)
        self.now = 0.0
        self.running: dict[str, tuple[str, str, bool]] = {}
        self.done: dict[str, tuple[str, str, bool]] = {}
        self.executed: dict[str, int] = {}

    def kept(self, key: str) -> bool:
        return self.shelf.get(("session", key), self.now) is not None

    @rule(seconds=st.integers(1, 6))
    def time_passes(self, seconds: int) -> None:
        """Results grow old."""
        self.now += seconds

    @rule(key=KEYS, content=CONTENTS, local=st.booleans())
    def accept(self, key: str, content: tuple[str, str], local: bool) -> None:
        """A call is entered once, and judged by what is known of its id."""
        name, text = content
        verdict = self.calls.accept(key, name, {"text": text}, self.now, local=local)
        known = self.running.get(key) or self.done.get(key)
        if key in self.done and self.done[key][2] and not self.kept(key):
            known = None
        if known is not None and known[:2] != content:
            assert verdict is Verdict.CONFLICT
        elif key in self.running:
            assert verdict is Verdict.SAME
        elif known is not None:
            assert verdict is (Verdict.DONE if self.kept(key) else Verdict.EXPIRED)
        elif len(self.running) == 3:
            assert verdict is Verdict.FULL
        else:
            assert verdict is Verdict.NEW
            assert local or key not in self.done or self.done[key][2], "a call that is not local ran twice"
            self.running[key] = (name, text, local)
            self.done.pop(key, None)
        if verdict is Verdict.FULL and known is None:
            self.done.pop(key, None)

    @rule(key=KEYS, size=st.integers(1, 30))
    def finish(self, key: str, size: int) -> None:
        """A running call is done, with a result of its own."""
        if key in self.running:
            self.calls.finish(key, result(key), size, 10, self.now)
            self.done[key] = self.running.pop(key)

    @rule(key=KEYS)
    def withdraw(self, key: str) -> None:
        """A call that is not to run after all leaves no trace."""
        self.calls.withdraw(key)
        self.running.pop(key, None)

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        """The client has it: a local call is gone, another is remembered as expired."""
        self.calls.forget([key])
        if key in self.done and self.done[key][2]:
            del self.done[key]

    @invariant()
    def status_tells_the_truth(self) -> None:
        """Running before done before expired before unknown; and a kept result is the call's own."""
        assert len(self.calls) == len(self.running)
        for key in "abcde":
            status = self.calls.status(key, self.now)
            if key in self.running:
                assert status == "running"
            elif key in self.done and self.kept(key):
                assert status == "done"
                assert self.calls.result(key, self.now) == result(key)
            elif key in self.done and not self.done[key][2]:
                assert status == "expired"
            else:
                assert status == "unknown"


TestBook = Book.TestCase
TestBook.settings = settings(max_examples=80, deadline=None)
