"""Connects the parts of traces: the recorder on the event loop, the queue, and the thread that sends."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...tools import SecretUnavailableError
from ...version import __version__, install_extra
from ..config.otel_settings import OtelSettings
from ..config.setting_sources import SettingsError
from . import gen_ai_names
from .span_queue import SpanQueue
from .span_recorder import SpanRecorder

if TYPE_CHECKING:  # needs an extra
    from .span_sender import SpanSender


@dataclass(frozen=True, slots=True)
class Traces:
    """The parts of a daemon that records traces."""

    queue: SpanQueue
    recorder: SpanRecorder
    sender: "SpanSender"

    def counts(self) -> dict[str, int]:
        """The spans that were sent, and those that were lost, by reason."""
        sender = self.sender
        return {"sent": sender.sent, "queue_full": self.queue.dropped, "refused": sender.refused}

    @property
    def waiting(self) -> int:
        """Spans that are not sent yet."""
        return self.sender.waiting


def open_traces(settings: OtelSettings | None, instance: str) -> Traces | None:
    """Returns the parts, not started; None if no traces are recorded. ``instance`` identifies this run of the daemon.

    Raises:
        SettingsError: the extra is not installed, or a header cannot be read.
    """
    if settings is None:
        return None
    try:
        from .collector_client import CollectorClient  # noqa: PLC0415 - needs an extra
        from .span_sender import SpanSender  # noqa: PLC0415 - as above
    except ImportError as error:
        message = f"otel: traces need the package {error.name}; {install_extra('otel')}, or remove the endpoint"
        raise SettingsError(message) from None
    try:
        headers = settings.read_headers(os.environ)
    except SecretUnavailableError as error:
        raise SettingsError(f"otel: headers: {error}") from None
    queue = SpanQueue(max_spans=settings.queue_spans, max_chars=settings.queue_bytes)
    resource = {
        "service.name": settings.service_name,
        "service.version": __version__,
        "service.instance.id": instance,
        gen_ai_names.PROJECT: settings.project or settings.service_name,
    }
    sender = SpanSender(queue, CollectorClient(settings.traces_url, headers), resource)
    return Traces(queue, SpanRecorder(queue, full=settings.content == "full"), sender)
