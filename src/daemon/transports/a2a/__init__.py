"""A2A on the HTTP port: hosted agents for clients of other agents and platforms."""

from .a2a_server import A2AServer
from .a2a_tasks import A2ATasks

__all__ = ["A2AServer", "A2ATasks"]
