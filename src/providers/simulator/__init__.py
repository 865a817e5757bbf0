"""The simulator: the vendors' HTTP APIs on loopback, so that the real SDKs work without keys, cost or network."""

from .request_log import LoggedRequest, Operation
from .simulator_endpoint import SIMULATOR_KEY
from .simulator_server import Simulator

__all__ = ["SIMULATOR_KEY", "LoggedRequest", "Operation", "Simulator"]
