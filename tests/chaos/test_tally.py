"""The judgement of a fault run can fail: each promise is broken once in doctored observations, and named."""

from dataclasses import replace

import pytest
from tests.chaos.tally import Answer, Call, Evidence, Row, tally

OK = Answer("ok", "yes", own=True)
UNKNOWN = Answer("OUTCOME_UNKNOWN", "maybe", own=True)
TURNED_AWAY = Answer("SERVICE_UNAVAILABLE", "no", own=True)
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
    written("d", TURNED_AWAY),
    Call("e", "echo", [OK, TURNED_AWAY]),
    Call("f", "chat", [OK]),
    Call("g", "sim_effect", lost="no connection", sent=False),
]
EVIDENCE = Evidence(
    lines=["a", "b"],
    rows=[row("a"), row("b", UNKNOWN), row("c", UNKNOWN), row("d", TURNED_AWAY), row("f"), row("a", EXPIRED, "again")],
    remote_ids=["row-a", "row-b", "row-c", "row-d", "row-f", "again"],
)


def broken(calls: list[Call], evidence: Evidence = EVIDENCE) -> dict[str, list[str]]:
    """The promises that do not hold."""
    return {promise: list(ids) for promise, ids in tally(calls, evidence).breaches.items() if ids}


def test_a_run_in_order_breaks_nothing() -> None:
    """Honest answers hold: unknown with and without effect, turned away, replayed, forgotten, never sent."""
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
        "never executed though unknown": 1,
        "never sent": 1,
        "lost": 0,
        "run twice": 0,
        "answers to the wrong caller": 0,
        "audit rows expected": 4,
        "audit rows found": 4,
        "rows in all, in the file": 6,
        "rows in all, in PostgreSQL": 6,
    }


@pytest.mark.parametrize(
    ("call", "promise", "told"),
    [
        (written("x"), "lost", "x: None"),
        (replace(written("x"), lost="the session is gone"), "lost", "x: the session is gone"),
        (Call("x", "echo", lost="gone"), "lost", "x: gone"),
        (written("x", TURNED_AWAY, OK), "two answers that differ", "x: SERVICE_UNAVAILABLE, ok"),
        (Call("x", "echo", [replace(OK, own=False)]), "answers to the wrong caller", "x"),
        (Call("x", "echo", [OK, replace(OK, own=False)]), "answers to the wrong caller", "x"),
        (written("x", OK), "told as done, and not done", "x"),
        (written("x", OK), "not one audit row", "x: 0"),
        (written("x", UNKNOWN), "not one audit row", "x: 0"),
        (Call("x", "chat", [OK]), "not one audit row", "x: 0"),
        (written("x", EXPIRED), "lost", "x: RESULT_EXPIRED"),
    ],
)
def test_a_call_that_was_dealt_with_wrongly_is_named(call: Call, promise: str, told: str) -> None:
    """One more call, of which nothing else is found."""
    assert told in broken([*CALLS, call])[promise]


@pytest.mark.parametrize(
    ("evidence", "promise", "told"),
    [
        (replace(EVIDENCE, lines=["a", "b", "a"]), "run twice", "a"),
        (replace(EVIDENCE, lines=["a", "b", "c", "c"]), "run twice", "c"),
        (replace(EVIDENCE, lines=["a", "b", "d"]), "told as not done, and done", "d"),
        (replace(EVIDENCE, lines=["a", "b", "?"]), "effects that nobody asked for", "?"),
        (replace(EVIDENCE, rows=[*EVIDENCE.rows, row("a", OK, "second")]), "not one audit row", "a: 2"),
        (replace(EVIDENCE, rows=[*EVIDENCE.rows, row("d", OK, "second")]), "not one audit row", "d: 1"),
        (replace(EVIDENCE, rows=EVIDENCE.rows[1:]), "not one audit row", "a: 0"),
        (
            replace(EVIDENCE, rows=[row("a", UNKNOWN), *EVIDENCE.rows[1:]]),
            "audit rows that say otherwise",
            "a: ok, and its row OUTCOME_UNKNOWN",
        ),
        (replace(EVIDENCE, remote_ids=["row-a", "row-b", "row-c", "row-d", "again"]), "not in PostgreSQL", "row-f"),
        (replace(EVIDENCE, remote_ids=[*(EVIDENCE.remote_ids or ()), "?"]), "only in PostgreSQL", "?"),
        (replace(EVIDENCE, remote_ids=[*(EVIDENCE.remote_ids or ()), "row-a"]), "twice in PostgreSQL", "row-a"),
        (replace(EVIDENCE, tracebacks=2), "tracebacks in the log", "2"),
    ],
)
def test_what_was_found_and_may_not_be_is_named(evidence: Evidence, promise: str, told: str) -> None:
    """The calls are in order; what they left behind is not."""
    assert told in broken(CALLS, evidence)[promise]
    assert not tally(CALLS, evidence).kept


def test_without_postgresql_nothing_is_held_against_it() -> None:
    """The short run has none."""
    outcome = tally(CALLS, replace(EVIDENCE, remote_ids=None))
    assert outcome.kept
    assert "rows in all, in PostgreSQL" not in outcome.figures
