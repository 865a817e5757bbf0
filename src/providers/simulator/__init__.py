"""Both vendors' HTTP on loopback, so that real SDKs do real HTTP without keys, money or network."""

from .app import SIMULATOR_KEY, Seen
from .server import Simulator

__all__ = ["SIMULATOR_KEY", "Seen", "Simulator"]
