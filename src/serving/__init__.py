"""Listens on ports and serves ASGI apps on the running event loop, for the HTTP port and the simulator.

Imports nothing else of the project, so any package may use it.
"""

from .http_connection import COMPLETE
from .http_server import HttpServer, listen
from .write_batching import SLOW_READER_BYTES, BatchingTransport

__all__ = ["COMPLETE", "SLOW_READER_BYTES", "BatchingTransport", "HttpServer", "listen"]
