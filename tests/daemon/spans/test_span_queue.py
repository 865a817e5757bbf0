"""The bounded queue of spans."""

from msgspec.structs import replace
from tests.daemon.spans.test_span_projection import CALL
from toold.daemon.spans.span_content import CallContent
from toold.daemon.spans.span_projection import EndedCall
from toold.daemon.spans.span_queue import BATCH_CHARS, SpanQueue


def test_spans_beyond_the_limit_are_dropped_and_counted() -> None:
    """The earliest are kept; once they are taken, there is space again."""
    queue = SpanQueue(max_spans=2, max_chars=100, batch=2)
    for call_id in ("a", "b", "c"):
        queue.add(replace(CALL, call_id=call_id))
    assert (len(queue), queue.dropped) == (2, 1)
    assert [call.call_id for call in queue.take(60.0) if isinstance(call, EndedCall)] == ["a", "b"]
    queue.add(CALL)
    assert (len(queue), queue.dropped) == (1, 1)


def test_a_span_whose_content_has_no_space_is_kept_without_it() -> None:
    """The limit is on the content of all spans that wait."""
    queue = SpanQueue(max_spans=10, max_chars=100)
    call = replace(CALL, content=CallContent({}, "", 60))
    queue.add(call)
    queue.add(call)
    queue.add(CALL)
    assert queue.stripped == 1
    assert [taken.content is None for taken in queue.take(0.0)] == [False, True, True]
    queue.add(call)
    assert queue.stripped == 1


def test_a_request_is_bounded_by_its_content() -> None:
    """A batch ends early if its content is large."""
    queue = SpanQueue(max_spans=10, max_chars=10 * BATCH_CHARS)
    for _ in range(3):
        queue.add(replace(CALL, content=CallContent({}, "", BATCH_CHARS - 1)))
    assert [len(queue.take(0.0)) for _ in range(2)] == [2, 1]
