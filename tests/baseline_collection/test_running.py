"""When a run can be continued, and the paths of its files."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from baseline.draft import Draft
from baseline.matrix import SHIPPED
from baseline.record import Record, RecordError
from baseline.running import candidate_path, changed, continue_run, draft_of, numbered, resume_command


@pytest.mark.parametrize(
    ("python", "commit", "daemon", "says"),
    [
        ("CPython 3.11.7", None, "toold 0.1.0", None),
        ("CPython 3.13.1", None, "toold 0.1.0", "Python has changed from CPython 3.11.7 to CPython 3.13.1"),
        ("CPython 3.11.7", "abc", "toold 0.1.0", "the commit has changed from None to abc"),
        ("CPython 3.11.7", None, "toold 0.2.0", "the daemon has changed from toold 0.1.0 to toold 0.2.0"),
    ],
)
def test_changed_environment_is_reported(
    make_record: Callable[..., Record], python: str, commit: str | None, daemon: str, says: str | None
) -> None:
    """If Python, the commit or the daemon has changed since the run began, the first difference is reported."""
    assert changed(make_record(), python, commit, daemon) == says


def test_file_paths() -> None:
    """The draft, the candidate's record and the records of repeated runs are next to the record."""
    assert draft_of(Path("a/run.json")) == Path("a/run.ndjson")
    assert candidate_path(Path("a/run.json")) == Path("a/run-candidate.json")
    assert numbered(Path("a/run.json"), 7) == Path("a/run-07.json")


@pytest.mark.parametrize("field", ["python", "daemon"])
def test_changes_are_relative_to_the_record(make_record: Callable[..., Record], field: str) -> None:
    """The environment is compared with that in the record."""
    record = make_record()
    now = msgspec.structs.replace(record.environment, **{field: "another"})
    assert changed(record, now.python, now.commit, now.daemon) is not None


def test_continue_option_names_another_matrix() -> None:
    """The advice how to continue names the matrix if it is not the shipped one."""
    assert resume_command(Path("run.ndjson"), SHIPPED) == "--continue run.ndjson"
    assert resume_command(Path("run.ndjson"), Path("my.toml")) == "--continue run.ndjson --matrix my.toml"


def test_run_needs_its_matrix(make_record: Callable[..., Record], tmp_path: Path) -> None:
    """A run that began with another matrix is not continued with this one, and the error says which option to set."""
    with Draft.begin(tmp_path / "run.ndjson", make_record()) as draft:
        path = draft.path
    with pytest.raises(RecordError, match=r"other arguments for echo .* name the --matrix that it began with"):
        continue_run(path, SHIPPED, Console())
