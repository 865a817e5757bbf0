"""A collector of traces on loopback: decodes what it gets with the official types, and answers as a test says."""

import gzip
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Answer(NamedTuple):
    """The answer to one request."""

    status: int = 200
    body: bytes = b""
    headers: Sequence[tuple[str, str]] = ()


@dataclass
class Collector:
    """What the collector got."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    """For the next requests; then each is accepted."""
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    """All requests, refused ones too."""
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    hold: threading.Event | None = None
    """While it is not set, no request is answered."""

    @property
    def spans(self) -> list[Any]:
        """The spans of all requests."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def wait_until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait in a thread until the condition is true; it is checked after each request."""
        with self.changed:
            assert self.changed.wait_for(condition, seconds)

    def get(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        request = ExportTraceServiceRequest()
        request.ParseFromString(gzip.decompress(body))
        with self.changed:
            self.paths.append(path)
            self.headers.append(headers)
            self.requests.append(request)
            answer = self.answers.pop(0) if self.answers else Answer()
            self.changed.notify_all()
        if self.hold is not None:
            self.hold.wait(60)
        return answer


def attributes(owner: Any) -> dict[str, Any]:
    """The attributes of a span or resource as Python values."""
    return {pair.key: _value(pair.value) for pair in owner.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@contextmanager
def running_collector() -> Iterator[Collector]:
    """A collector, until the block ends."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = collector.get(self.path, headers, body)
            self.send_response(answer.status)
            for name, value in (*answer.headers, ("Content-Length", str(len(answer.body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        if collector.hold is not None:
            collector.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
