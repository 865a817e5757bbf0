"""The session's book of calls keeps to its rules in any order of events."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from toold.protocol.session import REMEMBERED_IDS, SessionCalls, Verdict

KEYS = st.sampled_from("abcde")
CONTENTS = st.sampled_from([("echo", {"text": "x"}), ("echo", {"text": "y"}), ("chat", {"text": "x"})])


def test_the_same_id_with_the_same_content_attaches() -> None:
    """The order of keys does not matter, the values and their types do."""
    calls = SessionCalls()
    assert calls.accept("a", "echo", {"x": 1, "y": 2}) is Verdict.NEW
    assert calls.accept("a", "echo", {"y": 2, "x": 1}) is Verdict.SAME
    assert calls.accept("a", "echo", {"x": 1.0, "y": 2}) is Verdict.CONFLICT
    assert calls.accept("a", "echo", {"x": True, "y": 2}) is Verdict.CONFLICT
    assert calls.accept("a", "chat", {"x": 1, "y": 2}) is Verdict.CONFLICT


def test_a_full_session_lets_no_more_in_until_a_call_is_done() -> None:
    """The bound counts accepted calls that are not answered."""
    calls = SessionCalls(max_accepted=2)
    assert [calls.accept(key, "echo", {}) for key in "abc"] == [Verdict.NEW, Verdict.NEW, Verdict.FULL]
    assert calls.finish("a")
    assert calls.accept("c", "echo", {}) is Verdict.NEW


def test_a_long_session_does_not_grow() -> None:
    """Of ended calls only so many ids are remembered, the oldest are dropped first."""
    calls = SessionCalls()
    for number in range(REMEMBERED_IDS + 10):
        calls.accept(str(number), "echo", {})
        calls.finish(str(number))
    assert calls.status("9") == "unknown"
    assert calls.status("10") == "done"


class Book(RuleBasedStateMachine):
    """A model of the book as two plain dicts, held against the real one."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = SessionCalls(max_accepted=3)
        self.running: dict[str, tuple[str, dict[str, str]]] = {}
        self.ended: set[str] = set()

    @rule(key=KEYS, content=CONTENTS)
    def accept(self, key: str, content: tuple[str, dict[str, str]]) -> None:
        """A call is entered once, and judged by what runs."""
        verdict = self.calls.accept(key, *content)
        if key in self.running:
            assert verdict is (Verdict.SAME if self.running[key] == content else Verdict.CONFLICT)
        elif len(self.running) == 3:
            assert verdict is Verdict.FULL
        else:
            assert verdict is Verdict.NEW
            self.running[key] = content

    @rule(key=KEYS)
    def finish(self, key: str) -> None:
        """Only a running call can be finished, and only once."""
        assert self.calls.finish(key) is (key in self.running)
        if self.running.pop(key, None):
            self.ended.add(key)

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        """A call that is not to run after all leaves no trace."""
        self.calls.forget(key)
        self.running.pop(key, None)

    @invariant()
    def status_tells_the_truth(self) -> None:
        """Running before done before unknown."""
        assert len(self.calls) == len(self.running)
        for key in "abcde":
            expected = "running" if key in self.running else "done" if key in self.ended else "unknown"
            assert self.calls.status(key) == expected


TestBook = Book.TestCase
TestBook.settings = settings(max_examples=60, deadline=None)
