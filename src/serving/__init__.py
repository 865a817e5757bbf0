"""Listens on ports and serves ASGI apps on the running event loop, for the HTTP port and the simulator.

Imports nothing else of the project, so any package may use it.
"""

from .connection_slots import ConnectionLimits, ConnectionSlots
from .file_descriptors import DescriptorShares, descriptors_needed, raise_limit, reachable_limit, share_descriptors
from .http_connection import COMPLETE, PEER, HttpPeer
from .http_server import HttpServer, listen, listen_on
from .write_batching import SLOW_READER_BYTES, BatchingTransport

__all__ = [
    "COMPLETE",
    "PEER",
    "SLOW_READER_BYTES",
    "BatchingTransport",
    "ConnectionLimits",
    "ConnectionSlots",
    "DescriptorShares",
    "HttpPeer",
    "HttpServer",
    "descriptors_needed",
    "listen",
    "listen_on",
    "raise_limit",
    "reachable_limit",
    "share_descriptors",
]
