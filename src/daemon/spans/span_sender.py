"""The thread that encodes spans and sends them to the collector."""

import asyncio
import random
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from ...protocol.backoff import backoff_s
from .collector_client import TIMEOUT_S, CollectorClient, CollectorFailure
from .otlp_encoding import encode_spans
from .span_projection import AttributeValue, Ended, Span, span_of
from .span_queue import SpanQueue

DELAY_S: Final = 1.0
"""How long a span waits for a whole batch. OpenTelemetry's default of 5 s is too long for a person who watches a
trace."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""The delay before a request is repeated grows from ``FIRST_PAUSE_S`` to this."""
LONGEST_RETRY_AFTER_S: Final = 300.0
"""The longest pause, even if the collector requests a longer one."""

_log = structlog.get_logger(__name__)


class SpanSender:
    """Sends the spans of a queue from ``start`` to ``close``, in order.

    A request that the collector may accept later is repeated until it does. Meanwhile the queue fills up; when it is
    full, new spans are dropped.
    """

    def __init__(self, queue: SpanQueue, client: CollectorClient, resource: Mapping[str, AttributeValue]) -> None:
        self._queue = queue
        self._client = client
        self._resource = resource
        self._closing = threading.Event()
        self._close_at = 0.0
        self._thread = threading.Thread(target=self._run, name="toold-spans", daemon=True)
        self._sending = 0  # spans in the current request
        self._failures = 0  # in a row
        self._partial_reported = False
        # Written by the thread only.
        self.sent = 0
        """Spans that the collector accepted."""
        self.refused = 0
        """Spans that the collector rejected for good."""
        self.unsent = 0
        """Spans that were lost at shutdown."""
        self.problem: str | None = None
        """Why sending currently fails; None if it does not."""

    def __repr__(self) -> str:
        return f"<SpanSender to {self._client.url} sent={self.sent} waiting={self.waiting}>"

    @property
    def waiting(self) -> int:
        """Spans that are not sent yet."""
        return len(self._queue) + self._sending

    def start(self) -> None:
        self._thread.start()

    async def close(self, within_s: float) -> None:
        """Sends the waiting spans, for at most ``within_s`` seconds or until a request fails, and stops."""
        self._close_at = time.monotonic() + within_s
        self._closing.set()
        self._queue.wake()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, within_s)
        lost = self.waiting if self._thread.is_alive() else self.unsent
        if lost:
            _log.warning("spans were not sent before the shutdown", spans=lost, reason=self.problem)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            try:
                while not (self._closing.is_set() and not len(self._queue)):
                    ended = self._queue.take(0.0 if self._closing.is_set() else DELAY_S)
                    self._sending = len(ended)
                    if ended and not self._deliver(runner, ended):
                        break
                    self._sending = 0
            finally:
                self.unsent = self.waiting
                runner.run(self._client.close())

    def _deliver(self, runner: asyncio.Runner, ended: Sequence[Ended]) -> bool:
        """Sends spans until the collector accepts or rejects them. False if the sender closed before that."""
        spans = _projected(ended)
        body = encode_spans(spans, self._resource)
        while True:
            last_try = self._closing.is_set()
            timeout_s = max(0.0, min(TIMEOUT_S, self._close_at - time.monotonic())) if last_try else TIMEOUT_S
            outcome = runner.run(self._client.export(body, timeout_s))
            if not isinstance(outcome, CollectorFailure):
                self._accepted(len(spans), outcome.rejected, outcome.message)
                return True
            self._failed(outcome, len(spans))
            if not outcome.retryable:
                return True
            if last_try:
                return False
            self._closing.wait(retry_pause_s(self._failures, outcome.retry_after_s, random.random()))  # noqa: S311 - a pause, not a secret

    def _accepted(self, count: int, rejected: int, message: str) -> None:
        if self.problem is not None:
            _log.info("spans are sent again", after_failures=self._failures)
        self._failures, self.problem = 0, None
        rejected = min(max(rejected, 0), count)
        self.sent += count - rejected
        self.refused += rejected
        if (rejected or message) and not self._partial_reported:
            self._partial_reported = True
            _log.warning("the collector rejects some spans; reported once", rejected=rejected, reason=message)

    def _failed(self, failure: CollectorFailure, count: int) -> None:
        if failure.reason != self.problem:
            what = "spans cannot be sent; retrying" if failure.retryable else "the collector refuses spans"
            _log.warning(what, reason=failure.reason)
        self._failures, self.problem = self._failures + 1, failure.reason
        if not failure.retryable:
            self.refused += count


def _projected(ended: Sequence[Ended]) -> list[Span]:
    """Creates the spans, and skips those that cannot be created, so that one defect does not end the thread."""
    spans = []
    for each in ended:
        try:
            spans.append(span_of(each))
        except Exception:  # noqa: BLE001 - as above
            _log.exception("a span cannot be made")
    return spans


def retry_pause_s(failures: int, retry_after_s: float, draw: float) -> float:
    """Returns the seconds to wait after ``failures`` failures in a row; ``draw`` is evenly random in [0, 1)."""
    asked = min(retry_after_s, LONGEST_RETRY_AFTER_S)
    return backoff_s(failures - 1, draw, base_s=FIRST_PAUSE_S, cap_s=LONGEST_PAUSE_S, at_least_s=asked)
