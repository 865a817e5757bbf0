"""Listens on ports and serves ASGI apps on the running event loop, for the HTTP port and the simulator.

Imports nothing else of the project, so any package may use it.
"""

from .http_connection import COMPLETE
from .http_server import HttpServer, listen
from .write_batching import BEHIND_BYTES, BatchingTransport

__all__ = ["BEHIND_BYTES", "COMPLETE", "BatchingTransport", "HttpServer", "listen"]
