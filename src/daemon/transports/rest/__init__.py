"""Tools as a REST API on the HTTP port: ``POST /tools/{name}`` and ``GET /openapi.json``.

The HTTP port uses it. It knows the router, the REST API's format and ASGI, but no limits, timeouts or tools.
"""

from .rest_server import RestServer

__all__ = ["RestServer"]
