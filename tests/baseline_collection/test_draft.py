"""The draft: calls are in the file as they end, and what is cut off can be gone on with."""

from collections.abc import Callable
from pathlib import Path

import pytest

from baseline.draft import Draft
from baseline.record import Call, Record, RecordError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ndjson"


def test_calls_are_there_at_once(
    path: Path, make_record: Callable[..., Record], make_call: Callable[..., Call]
) -> None:
    """Each call is in the file when it was added, a line each, without the draft being closed."""
    with Draft.begin(path, make_record()) as draft:
        draft.add(make_call())
        draft.add(make_call(iteration=2))
        assert len(path.read_bytes().splitlines()) == 3


def test_reopened_it_goes_on(path: Path, make_record: Callable[..., Record], make_call: Callable[..., Call]) -> None:
    """A draft that is opened again has its run and its calls, takes more, and counts the parts of the run."""
    with Draft.begin(path, make_record(id="cut-off")) as draft:
        assert draft.segment == 1
        draft.add(make_call())
    with Draft.reopen(path) as draft:
        assert (draft.run.id, draft.calls, draft.segment) == ("cut-off", [make_call()], 2)
        draft.add(make_call(iteration=2, segment=2))
    with Draft.reopen(path) as draft:
        assert [call.iteration for call in draft.calls] == [1, 2]


def test_half_a_line_is_taken_away(
    path: Path, make_record: Callable[..., Record], make_call: Callable[..., Call]
) -> None:
    """A call whose line was cut off by a crash is not there, and the next one begins a line of its own."""
    with Draft.begin(path, make_record()) as draft:
        draft.add(make_call())
    with path.open("ab") as file:
        file.write(b'{"tool_name":"ec')
    with Draft.reopen(path) as draft:
        assert len(draft.calls) == 1
        draft.add(make_call(iteration=2))
    with Draft.reopen(path) as draft:
        assert [call.iteration for call in draft.calls] == [1, 2]


def test_a_draft_is_not_overwritten(path: Path, make_record: Callable[..., Record]) -> None:
    """What another run left behind is kept, and the message says how to go on with it."""
    Draft.begin(path, make_record(id="earlier")).__exit__(None, None, None)
    with pytest.raises(RecordError, match="--continue"):
        Draft.begin(path, make_record())
    with Draft.reopen(path) as draft:
        assert draft.run.id == "earlier"


@pytest.mark.parametrize("content", [b"", b"{}\n", b"not JSON\n", b"\xff\xfe\n"])
def test_what_is_no_draft_is_refused(path: Path, content: bytes) -> None:
    """A file that is no draft is named as such and left as it is."""
    path.write_bytes(content)
    with pytest.raises(RecordError, match="is not a draft"):
        Draft.reopen(path)
    assert path.read_bytes() == content


def test_what_cannot_be_read_or_written_is_named(tmp_path: Path, make_record: Callable[..., Record]) -> None:
    """A file that is not there, or a directory that is not, is an error with its path."""
    with pytest.raises(RecordError, match="cannot be read"):
        Draft.reopen(tmp_path / "none.ndjson")
    with pytest.raises(RecordError, match="cannot be written"):
        Draft.begin(tmp_path / "none" / "run.ndjson", make_record())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
def test_a_disk_that_is_full_is_said(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> None:
    """A call that cannot be written is an error that names the file, and is not counted as kept."""
    with Draft(Path("/dev/full"), make_record(), []) as draft:
        with pytest.raises(RecordError, match="/dev/full cannot be written: No space left on device"):
            draft.add(make_call())
        assert draft.calls == []
