"""Tables on a terminal and elsewhere."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.console_tables import plain_table, print_table

CELLS = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=8)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5))
def test_a_plain_row_is_one_line_with_its_columns_aligned(rows: list[tuple[str, str]]) -> None:
    """Every row is a line, and the second column begins at the same place in each."""
    lines = plain_table(("A", "B"), rows)
    start = max(len(first) for first, _ in [("A", ""), *rows]) + 2
    assert [(line[:start].strip(), line[start:]) for line in lines] == [("A", "B"), *rows]


def test_without_a_terminal_the_table_has_no_rules(capsys: pytest.CaptureFixture[str]) -> None:
    """Title and rows, and nothing that breaks grep."""
    print_table(("NAME", "N"), [("a", "1")], title="Things")
    assert capsys.readouterr().out == "Things\nNAME  N\na     1\n"


def test_on_a_terminal_the_table_is_ruled(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same cells, with a rule below the headers; markup in a cell is text."""
    on_a_terminal(monkeypatch, columns=80)
    print_table(("NAME", "N"), [("[bold]a", "1")], title="Things")
    output = capsys.readouterr().out
    assert "[bold]a" in output
    assert "───" in output


def test_on_a_narrow_terminal_one_column_is_truncated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The named column is truncated with an ellipsis; each row stays one line with its other cells whole."""
    on_a_terminal(monkeypatch, columns=50)
    print_table(("OUTCOME", "SESSION"), [("CONTEXT_LENGTH_EXCEEDED", "label-" * 10)], shrink="SESSION")
    (row,) = [line.split() for line in capsys.readouterr().out.splitlines() if "CONTEXT" in line]
    assert row[0] == "CONTEXT_LENGTH_EXCEEDED"
    assert row[1].startswith("label-label-")
    assert row[1].endswith("…")
