"""Listening on a port, and serving an ASGI app there within the running loop: the side port does it, the simulator too.

Beside the rooms, as ``version`` is: those who serve stand on both ends of the arrows. It imports nothing of the house.
"""

from .http_connection import COMPLETE
from .http_server import HttpServer, listen
from .write_batching import BEHIND_BYTES, BatchingTransport

__all__ = ["BEHIND_BYTES", "COMPLETE", "BatchingTransport", "HttpServer", "listen"]
