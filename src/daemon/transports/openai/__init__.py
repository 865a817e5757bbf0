"""OpenAI's API on the HTTP port: ``/v1``. Each request is a call of a tool, on the same path as all calls.

The HTTP port uses it. It depends on the router, OpenAI's format and ASGI, but not on limits, timeouts or tools.
"""

from .openai_server import OpenAIServer

__all__ = ["OpenAIServer"]
