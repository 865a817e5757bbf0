"""The record: reading and writing it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from baseline.record import Call, Load, Record, RecordError, read, write


@pytest.fixture
def record(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> Record:
    return make_record([make_call(), make_call(iteration=2, status="error", error_code="TIMEOUT", error="too late")])


def test_written_and_read_it_is_the_same(tmp_path: Path, record: Record) -> None:
    """A record comes back from its file as it was, and nothing else is left in the directory."""
    write(tmp_path / "a.json", record)
    assert read(tmp_path / "a.json") == record
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", b"[]", "is no baseline record"),
        ("a.json", b"{}", "is no baseline record"),
        ("a.json", b'{"format": 2}', "is of format 2, and these scripts read format 1"),
        ("a.ndjson", b"{}\n{}\n", "collect.py --continue"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    """A file that is no record is an error that names it; a draft's says how it becomes one."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordError, match=says):
        read(tmp_path / name)


def test_what_cannot_be_written_is_said(tmp_path: Path, record: Record) -> None:
    """Where a record cannot be written the error names it, and no half of it is left."""
    (tmp_path / "a.json").mkdir()
    with pytest.raises(RecordError, match=r"a\.json cannot be written: Is a directory"):
        write(tmp_path / "a.json", record)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_loads_say_what_they_are() -> None:
    """A load is written in words."""
    assert (Load(concurrency=8).label, Load(rate_per_s=12.5).label) == ("8 at once", "12.5 a second")
