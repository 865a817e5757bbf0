"""Both vendors' HTTP on loopback, so that real SDKs do real HTTP without keys, money or network."""

from .request_log import LoggedRequest, Operation
from .simulator_endpoint import SIMULATOR_KEY
from .simulator_server import Simulator

__all__ = ["SIMULATOR_KEY", "LoggedRequest", "Operation", "Simulator"]
