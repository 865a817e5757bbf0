"""The outcomes of the A2A TCK, and the exceptions for it."""

import json
from pathlib import Path

import pytest
from tests.conformance.a2a_suite import LINES, read_outcomes
from tests.conformance.suite import Check, Exceptions, SuiteError


def test_outcomes_of_the_tck_are_read(tmp_path: Path) -> None:
    """A test's name and its case are what exceptions name. A run without outcomes is an error."""
    results = tmp_path / "results"
    with pytest.raises(SuiteError):
        read_outcomes(results, "1.0")
    lines = [
        {"test": "tests/a.py::TestA::test_a[GET-jsonrpc]", "outcome": "failed", "message": "no"},
        {"test": "tests/a.py::test_b", "outcome": "skipped", "message": ""},
    ]
    results.write_text("\n".join(json.dumps(line) for line in lines))
    assert read_outcomes(results, "1.0") == [
        Check("1.0", "test_a", "GET-jsonrpc", "FAILURE", "no"),
        Check("1.0", "test_b", "", "SKIPPED", ""),
    ]


def test_each_exception_for_the_tck_has_a_reason() -> None:
    """The kept list is valid."""
    for line in LINES.values():
        assert all(len(reason) > 20 for reason in Exceptions.load(line.exceptions).reasons.values())
