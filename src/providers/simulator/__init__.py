"""Both vendors' HTTP on loopback, so that real SDKs do real HTTP without keys, money or network."""

from .census import Operation, Seen
from .endpoint import SIMULATOR_KEY
from .server import Simulator

__all__ = ["SIMULATOR_KEY", "Operation", "Seen", "Simulator"]
