"""The verdict names each broken promise, with observations that break each promise once."""

from dataclasses import replace

import pytest
from tests.chaos.tally import Answer, Call, Evidence, Row, tally

OK = Answer("ok", "yes", own=True)
UNKNOWN = Answer("OUTCOME_UNKNOWN", "maybe", own=True)
REJECTED = Answer("SERVICE_UNAVAILABLE", "no", own=True)
EXPIRED = Answer("RESULT_EXPIRED", "yes", own=True)
STORED = replace(OK, replayed=True)


def written(name: str, *answers: Answer) -> Call:
    return Call(name, "sim_effect", list(answers))


def row(name: str, answer: Answer = OK, row_id: str | None = None) -> Row:
    return Row(row_id or f"row-{name}", name, answer.outcome, answer.executed)


CALLS = [
    written("a", OK, STORED),
    written("b", UNKNOWN),
    written("c", UNKNOWN),
    written("d", REJECTED),
    Call("e", "echo", [OK, REJECTED]),
    Call("f", "chat", [OK]),
    Call("g", "sim_effect", lost="no connection", sent=False),
]
EVIDENCE = Evidence(
    lines=["a", "b"],
    rows=[row("a"), row("b", UNKNOWN), row("c", UNKNOWN), row("d", REJECTED), row("f"), row("a", EXPIRED, "again")],
    remote_ids=["row-a", "row-b", "row-c", "row-d", "row-f", "again"],
)


def broken(calls: list[Call], evidence: Evidence = EVIDENCE) -> dict[str, list[str]]:
    """The broken promises."""
    return {promise: list(ids) for promise, ids in tally(calls, evidence).breaches.items() if ids}


def test_a_correct_run_breaks_no_promise() -> None:
    """Valid: unknown with and without an effect, rejected, replayed, expired, never sent."""
    outcome = tally(CALLS, EVIDENCE)
    assert outcome.kept
    assert broken(CALLS) == {}
    assert dict(outcome.figures) == {
        "calls made": 7,
        "accepted": 5,
        "answered": 6,
        "  ok": 3,
        "  OUTCOME_UNKNOWN": 2,
        "  SERVICE_UNAVAILABLE": 1,
        "executed": 2,
        "replayed": 1,
        "unknown": 2,
        "unknown without an effect": 1,
        "never sent": 1,
        "lost": 0,
        "run twice": 0,
        "answers to the wrong caller": 0,
        "audit rows expected": 4,
        "audit rows found": 4,
        "rows in SQLite": 6,
        "rows in PostgreSQL": 6,
    }


@pytest.mark.parametrize(
    ("call", "promise", "reported"),
    [
        (written("x"), "lost", "x: None"),
        (replace(written("x"), lost="the session is gone"), "lost", "x: the session is gone"),
        (Call("x", "echo", lost="gone"), "lost", "x: gone"),
        (written("x", REJECTED, OK), "repeats with a different answer", "x: SERVICE_UNAVAILABLE, ok"),
        (Call("x", "echo", [replace(OK, own=False)]), "answers to the wrong caller", "x"),
        (Call("x", "echo", [OK, replace(OK, own=False)]), "answers to the wrong caller", "x"),
        (written("x", OK), "reported done, without an effect", "x"),
        (written("x", OK), "not exactly one audit row", "x: 0"),
        (written("x", UNKNOWN), "not exactly one audit row", "x: 0"),
        (Call("x", "chat", [OK]), "not exactly one audit row", "x: 0"),
        (written("x", EXPIRED), "lost", "x: RESULT_EXPIRED"),
    ],
)
def test_a_wrong_call_is_named(call: Call, promise: str, reported: str) -> None:
    """One additional call without further evidence breaks the promise."""
    assert reported in broken([*CALLS, call])[promise]


@pytest.mark.parametrize(
    ("evidence", "promise", "reported"),
    [
        (replace(EVIDENCE, lines=["a", "b", "a"]), "run twice", "a"),
        (replace(EVIDENCE, lines=["a", "b", "c", "c"]), "run twice", "c"),
        (replace(EVIDENCE, lines=["a", "b", "d"]), "reported not done, with an effect", "d"),
        (replace(EVIDENCE, lines=["a", "b", "?"]), "effects without a call", "?"),
        (replace(EVIDENCE, rows=[*EVIDENCE.rows, row("a", OK, "second")]), "not exactly one audit row", "a: 2"),
        (replace(EVIDENCE, rows=[*EVIDENCE.rows, row("d", OK, "second")]), "not exactly one audit row", "d: 1"),
        (replace(EVIDENCE, rows=EVIDENCE.rows[1:]), "not exactly one audit row", "a: 0"),
        (
            replace(EVIDENCE, rows=[row("a", UNKNOWN), *EVIDENCE.rows[1:]]),
            "audit rows with another outcome",
            "a: ok, but its row OUTCOME_UNKNOWN",
        ),
        (replace(EVIDENCE, remote_ids=["row-a", "row-b", "row-c", "row-d", "again"]), "missing in PostgreSQL", "row-f"),
        (replace(EVIDENCE, remote_ids=[*(EVIDENCE.remote_ids or ()), "?"]), "only in PostgreSQL", "?"),
        (replace(EVIDENCE, remote_ids=[*(EVIDENCE.remote_ids or ()), "row-a"]), "twice in PostgreSQL", "row-a"),
        (replace(EVIDENCE, tracebacks=2), "tracebacks in the log", "2"),
    ],
)
def test_wrong_evidence_is_named(evidence: Evidence, promise: str, reported: str) -> None:
    """The calls are correct, but the evidence is not."""
    assert reported in broken(CALLS, evidence)[promise]
    assert not tally(CALLS, evidence).kept


def test_an_answer_that_the_disk_refused_may_be_unknown() -> None:
    """A call that was answered although the disk refused its end may have a row of unknown outcome, but no other."""
    refused = replace(EVIDENCE, unpersisted=frozenset({"a"}))
    assert tally(CALLS, replace(refused, rows=[row("a", UNKNOWN), *EVIDENCE.rows[1:]])).kept
    assert not tally(CALLS, replace(refused, rows=[row("a", REJECTED), *EVIDENCE.rows[1:]])).kept


def test_an_answer_that_the_disk_refused_may_be_lost() -> None:
    """Its repeats may have an unknown outcome, if the daemon was killed before the disk had space, but no other."""
    promise = "repeats with a different answer"
    refused = replace(EVIDENCE, unpersisted=frozenset({"a"}))
    assert promise not in broken([written("a", OK, UNKNOWN)], refused)
    assert promise in broken([written("a", OK, REJECTED)], refused)
    assert promise in broken([written("a", OK, UNKNOWN)])


def test_a_run_without_postgresql_omits_its_figures() -> None:
    """Without PostgreSQL its rows are neither counted nor judged."""
    outcome = tally(CALLS, replace(EVIDENCE, remote_ids=None))
    assert outcome.kept
    assert "rows in PostgreSQL" not in outcome.figures
