"""Who may ask and answer."""

from toold.protocol.questions.client_question import LIST_ROOTS, read_question
from toold.protocol.questions.question_table import (
    MAX_OF_CALL,
    MAX_OPEN,
    MAX_OPEN_OF_CALL,
    MAX_OPEN_OF_PRINCIPAL,
    OpenQuestion,
    QuestionTable,
)

ROOTS = read_question(LIST_ROOTS, {})


def asked(table: QuestionTable, call: str = "c", principal: str = "ada", name: str = "") -> OpenQuestion:
    entry = OpenQuestion(
        id=name, token=f"{call}-{len(table)}", call=call, principal=principal, question=ROOTS, expires_at=0.0
    )
    table.add(entry)
    return entry


def test_only_the_asked_principal_may_answer_once() -> None:
    """A second close has no effect."""
    table = QuestionTable()
    entry = asked(table)
    assert table.answerable(entry.token, "eve") is None
    assert table.answerable(entry.token, "ada") is entry
    assert table.close(entry, "answered")
    assert not table.close(entry, "expired")
    assert (entry.state, table.answerable(entry.token, "ada")) == ("answered", None)


def test_a_taken_name_is_replaced() -> None:
    """So ids are unique within a call."""
    table = QuestionTable()
    assert [asked(table, name="who").id, asked(table, name="who").id, asked(table).id] == [
        "who",
        "question-2",
        "question-3",
    ]


def test_each_bound_is_kept() -> None:
    """Of a call, open or in all, of a principal and of the daemon; an ended call is forgotten."""
    table = QuestionTable()
    for _ in range(MAX_OF_CALL):
        assert table.refusal("one", "ada") is None
        table.close(asked(table, "one"), "answered")
    assert "the limit" in (table.refusal("one", "ada") or "")
    table.forget("one")
    assert table.refusal("one", "ada") is None
    number = 0
    while len(table) < MAX_OPEN:
        call, principal = f"c{number // MAX_OPEN_OF_CALL}", f"p{number // MAX_OPEN_OF_PRINCIPAL}"
        refusal = table.refusal(call, principal)
        if refusal is None:
            asked(table, call, principal)
        else:
            assert "the limit" in refusal
        number += 1
    assert "of this daemon" in (table.refusal("new", "new") or "")
