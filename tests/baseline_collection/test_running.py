"""What keeps a run from going on, where its records lie, and which two daemons may take turns."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from baseline.draft import Draft
from baseline.matrix import SHIPPED
from baseline.record import Record, RecordError
from baseline.running import candidate_path, changed, continue_run, draft_of, go_on_with, numbered


@pytest.mark.parametrize(
    ("python", "commit", "daemon", "says"),
    [
        ("CPython 3.11.7", None, "toold 0.1.0", None),
        ("CPython 3.13.1", None, "toold 0.1.0", "Python has changed from CPython 3.11.7 to CPython 3.13.1"),
        ("CPython 3.11.7", "abc", "toold 0.1.0", "the commit has changed from None to abc"),
        ("CPython 3.11.7", None, "toold 0.2.0", "the daemon has changed from toold 0.1.0 to toold 0.2.0"),
    ],
)
def test_a_run_goes_on_with_what_it_began_with(
    make_record: Callable[..., Record], python: str, commit: str | None, daemon: str, says: str | None
) -> None:
    """Another Python, commit or daemon would make two kinds of calls, and the first difference is named."""
    assert changed(make_record(), python, commit, daemon) == says


def test_where_files_lie() -> None:
    """The draft, the other daemon's record and those of several runs lie beside the record."""
    assert draft_of(Path("a/run.json")) == Path("a/run.ndjson")
    assert candidate_path(Path("a/run.json")) == Path("a/run-candidate.json")
    assert numbered(Path("a/run.json"), 7) == Path("a/run-07.json")


@pytest.mark.parametrize("field", ["python", "daemon"])
def test_what_changed_is_taken_from_the_run(make_record: Callable[..., Record], field: str) -> None:
    """The comparison is with what stands in the draft, not with this process."""
    record = make_record()
    now = msgspec.structs.replace(record.environment, **{field: "another"})
    assert changed(record, now.python, now.commit, now.daemon) is not None


def test_how_to_go_on() -> None:
    """Another matrix than the shipped one is named, since the run can only go on with it."""
    assert go_on_with(Path("run.ndjson"), SHIPPED) == "--continue run.ndjson"
    assert go_on_with(Path("run.ndjson"), Path("my.toml")) == "--continue run.ndjson --matrix my.toml"


def test_another_matrix_is_named(make_record: Callable[..., Record], tmp_path: Path) -> None:
    """A run that began with another matrix does not go on with this one, and the error says what to name."""
    with Draft.begin(tmp_path / "run.ndjson", make_record()) as draft:
        path = draft.path
    with pytest.raises(RecordError, match=r"other arguments for echo .* name the --matrix that it began with"):
        continue_run(path, SHIPPED, Console())
