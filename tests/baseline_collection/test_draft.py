"""The draft: calls are written to the file as they end, and an interrupted run can be continued."""

from collections.abc import Callable
from pathlib import Path

import pytest

from baseline.draft import Draft
from baseline.record import Call, Record, RecordError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ndjson"


def test_calls_are_written_at_once(
    path: Path, make_record: Callable[..., Record], make_call: Callable[..., Call]
) -> None:
    """Each added call is in the file at once, one line per call, while the draft is open."""
    with Draft.begin(path, make_record()) as draft:
        draft.add(make_call())
        draft.add(make_call(iteration=2))
        assert len(path.read_bytes().splitlines()) == 3


def test_draft_continues(path: Path, make_record: Callable[..., Record], make_call: Callable[..., Call]) -> None:
    """A reopened draft has its run and its calls, accepts more calls, and counts the segments of the run."""
    with Draft.begin(path, make_record(id="cut-off")) as draft:
        assert draft.segment == 1
        draft.add(make_call())
    with Draft.reopen(path) as draft:
        assert (draft.run.id, draft.calls, draft.segment) == ("cut-off", [make_call()], 2)
        draft.add(make_call(iteration=2, segment=2))
    with Draft.reopen(path) as draft:
        assert [call.iteration for call in draft.calls] == [1, 2]


def test_incomplete_line_is_removed(
    path: Path, make_record: Callable[..., Record], make_call: Callable[..., Call]
) -> None:
    """A line that a crash truncated is removed, and the next call starts on a new line."""
    with Draft.begin(path, make_record()) as draft:
        draft.add(make_call())
    with path.open("ab") as file:
        file.write(b'{"tool_name":"ec')
    with Draft.reopen(path) as draft:
        assert len(draft.calls) == 1
        draft.add(make_call(iteration=2))
    with Draft.reopen(path) as draft:
        assert [call.iteration for call in draft.calls] == [1, 2]


def test_draft_is_not_overwritten(path: Path, make_record: Callable[..., Record]) -> None:
    """The draft of another run is kept, and the message says how to continue it."""
    Draft.begin(path, make_record(id="earlier")).__exit__(None, None, None)
    with pytest.raises(RecordError, match="--continue"):
        Draft.begin(path, make_record())
    with Draft.reopen(path) as draft:
        assert draft.run.id == "earlier"


@pytest.mark.parametrize("content", [b"", b"{}\n", b"not JSON\n", b"\xff\xfe\n"])
def test_other_files_are_refused(path: Path, content: bytes) -> None:
    """A file that is not a draft is refused and not changed."""
    path.write_bytes(content)
    with pytest.raises(RecordError, match="is not a draft"):
        Draft.reopen(path)
    assert path.read_bytes() == content


def test_unreadable_and_unwritable_paths_are_errors(tmp_path: Path, make_record: Callable[..., Record]) -> None:
    """A missing file or a missing directory is an error with its path."""
    with pytest.raises(RecordError, match="cannot be read"):
        Draft.reopen(tmp_path / "none.ndjson")
    with pytest.raises(RecordError, match="cannot be written"):
        Draft.begin(tmp_path / "none" / "run.ndjson", make_record())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
def test_full_disk_is_an_error(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> None:
    """If a call cannot be written, the error names the file, and the call does not count as recorded."""
    with Draft(Path("/dev/full"), make_record(), []) as draft:
        with pytest.raises(RecordError, match="/dev/full cannot be written: No space left on device"):
            draft.add(make_call())
        assert draft.calls == []
