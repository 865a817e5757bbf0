"""Reading and writing records."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from baseline.record import Call, Load, Record, RecordError, read, write


@pytest.fixture
def record(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> Record:
    return make_record([make_call(), make_call(iteration=2, status="error", error_code="TIMEOUT", error="too late")])


def test_record_survives_a_round_trip(tmp_path: Path, record: Record) -> None:
    """A record that is written and read is unchanged, and no other file remains in the directory."""
    write(tmp_path / "a.json", record)
    assert read(tmp_path / "a.json") == record
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", b"[]", "is not a baseline record"),
        ("a.json", b"{}", "is not a baseline record"),
        ("a.json", b'{"format": 2}', "has format 2, and these scripts read format 1"),
        ("a.ndjson", b"{}\n{}\n", "collect.py --continue"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    """A file that is not a record is an error; for a draft the error says how to make a record of it."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordError, match=says):
        read(tmp_path / name)


def test_record_with_the_earlier_name_of_a_field_is_read(tmp_path: Path, record: Record) -> None:
    """``paired_run`` was ``beside`` in earlier records."""
    paired = msgspec.structs.replace(record, paired_run="other")
    (tmp_path / "a.json").write_bytes(msgspec.json.encode(paired).replace(b'"paired_run"', b'"beside"'))
    assert read(tmp_path / "a.json") == paired


def test_failed_write_is_an_error(tmp_path: Path, record: Record) -> None:
    """If a record cannot be written, the error names it, and no partial file remains."""
    (tmp_path / "a.json").mkdir()
    with pytest.raises(RecordError, match=r"a\.json cannot be written: Is a directory"):
        write(tmp_path / "a.json", record)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_loads_have_labels() -> None:
    """A load has a readable label."""
    assert (Load(concurrency=8).label, Load(rate_per_s=12.5).label) == ("8 at once", "12.5 a second")
