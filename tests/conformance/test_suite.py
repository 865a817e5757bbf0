"""The verdict on the suite's checks and exceptions."""

import json
from pathlib import Path

import pytest
from tests.conformance import through
from tests.conformance.suite import Check, Exceptions, SuiteError, judge, read

SCENARIO = Exceptions({"resources-list": "none are offered"})
ONE_CHECK = Exceptions({"caching:hints": "none are offered"})


def check(scenario: str, name: str, status: str) -> Check:
    return Check("2026-07-28", scenario, name, status)


GOOD = check("tools-list", "tools-list", "SUCCESS")


def test_excepted_failures_pass() -> None:
    """The run passes if all failures are excepted and each exception excuses a failure."""
    verdict = judge([GOOD, check("resources-list", "any", "FAILURE"), check("ping", "x", "SKIPPED")], SCENARIO)
    assert verdict.ok
    assert (verdict.succeeded, verdict.excepted) == (1, 1)


@pytest.mark.parametrize("status", ["FAILURE", "WARNING"])
def test_failed_check_fails_the_run(status: str) -> None:
    """A failed check or a warning fails the run, unless an exception names it or its scenario."""
    verdict = judge([GOOD, check("caching", "hints", status), check("caching", "other", status)], ONE_CHECK)
    assert not verdict.ok
    assert [item.id for item in verdict.broken] == ["other"]


def test_stale_exception_fails_the_run() -> None:
    """An exception that excuses nothing fails the run, so that the list stays accurate."""
    verdict = judge([GOOD, check("resources-list", "any", "SUCCESS")], SCENARIO)
    assert not verdict.ok
    assert verdict.stale == ("resources-list",)


def test_run_without_checks_fails() -> None:
    """A run without checks does not pass."""
    assert not judge([], Exceptions({})).ok


def test_results_of_the_suite_are_read(tmp_path: Path) -> None:
    """The suite's directories name the scenario. A run without results is an error."""
    with pytest.raises(SuiteError):
        read(tmp_path, "2026-07-28")
    directory = tmp_path / "server-tools-call-error-2026-11-22T08-36-17-152Z"
    directory.mkdir()
    written = [{"id": "a", "status": "FAILURE", "errorMessage": "no"}, {"id": "b", "status": "SUCCESS"}]
    (directory / "checks.json").write_text(json.dumps(written))
    assert read(tmp_path, "2025-06-18") == [
        Check("2025-06-18", "tools-call-error", "a", "FAILURE", "no"),
        Check("2025-06-18", "tools-call-error", "b", "SUCCESS"),
    ]


@pytest.mark.parametrize(
    ("direct", "relayed", "failed"),
    [
        ("SUCCESS", "SUCCESS", False),
        ("SUCCESS", "FAILURE", True),
        ("SUCCESS", "SKIPPED", True),
        ("SUCCESS", None, True),
        ("SUCCESS", "INFO", False),
        ("FAILURE", "WARNING", False),
        ("SKIPPED", "FAILURE", True),
        (None, "FAILURE", True),
    ],
)
def test_only_what_the_server_passes_is_judged_through_the_daemon(
    direct: str | None, relayed: str | None, failed: bool
) -> None:
    """A check that fails directly too is not the daemon's; one that only the server passes is."""
    both = [[] if status is None else [check("tools-list", "a", status)] for status in (direct, relayed)]
    assert any(judged.failed for judged in through.relayed(*both)) == failed


def test_each_exception_has_a_reason(tmp_path: Path) -> None:
    """The kept lists are valid; one without a reason, or with a duplicate name, is refused."""
    for kept in (Exceptions.load(), Exceptions.load(through.EXCEPTIONS)):
        assert all(len(reason) > 20 for reason in kept.reasons.values())
    for entries in ('reason = ""\nof = ["a"]', 'reason = "r"\nof = ["a", "a"]'):
        path = tmp_path / "exceptions.toml"
        path.write_text(f"[[exception]]\n{entries}\n")
        with pytest.raises(ValueError, match="a has no reason"):
            Exceptions.load(path)
