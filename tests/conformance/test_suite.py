"""What the suite's checks come to, beside the exceptions."""

import json
from pathlib import Path

import pytest
from tests.conformance.suite import Check, Exceptions, SuiteError, judge, read

SCENARIO = Exceptions({"resources-list": "none are offered"})
ONE_CHECK = Exceptions({"caching:hints": "none are offered"})


def check(scenario: str, name: str, status: str) -> Check:
    return Check("2026-07-28", scenario, name, status)


GOOD = check("tools-list", "tools-list", "SUCCESS")


def test_all_is_well() -> None:
    """Where nothing fails but what is excepted, and each exception excuses something."""
    verdict = judge([GOOD, check("resources-list", "any", "FAILURE"), check("ping", "x", "SKIPPED")], SCENARIO)
    assert verdict.ok
    assert (verdict.succeeded, verdict.excepted) == (1, 1)


@pytest.mark.parametrize("status", ["FAILURE", "WARNING"])
def test_a_check_that_fails(status: str) -> None:
    """It breaks the run, where no exception names it or its scenario; a warning does too."""
    verdict = judge([GOOD, check("caching", "hints", status), check("caching", "other", status)], ONE_CHECK)
    assert not verdict.ok
    assert [one.id for one in verdict.broken] == ["other"]


def test_an_exception_that_excuses_nothing() -> None:
    """It breaks the run as well, so that the list stays true."""
    verdict = judge([GOOD, check("resources-list", "any", "SUCCESS")], SCENARIO)
    assert not verdict.ok
    assert verdict.stale == ("resources-list",)


def test_a_run_without_checks() -> None:
    """Nothing having failed is no success where nothing was tried."""
    assert not judge([], Exceptions({})).ok


def test_what_the_suite_writes_down(tmp_path: Path) -> None:
    """Its directories name the scenario; a run that left nothing is an error."""
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


def test_each_exception_has_its_reason(tmp_path: Path) -> None:
    """The list that is kept can be read; one without a reason, or with a name twice, is refused."""
    assert all(len(reason) > 20 for reason in Exceptions.load().reasons.values())
    for entries in ('reason = ""\nof = ["a"]', 'reason = "r"\nof = ["a", "a"]'):
        path = tmp_path / "exceptions.toml"
        path.write_text(f"[[exception]]\n{entries}\n")
        with pytest.raises(ValueError, match="a has no reason"):
            Exceptions.load(path)
