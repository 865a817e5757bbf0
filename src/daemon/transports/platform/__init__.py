"""The platform API, ``/api/v1/…``. ``daemon/platform_host.py`` makes the server and its routes. This package knows
paths, bodies and errors, but no tools."""

from .platform_error import PlatformError, error_of, invalid_fields
from .platform_route import PlatformAnswer, PlatformRequest, PlatformRoute
from .platform_server import PlatformServer
from .user_credential_routes import UserCredentialRoutes

__all__ = [
    "PlatformAnswer",
    "PlatformError",
    "PlatformRequest",
    "PlatformRoute",
    "PlatformServer",
    "UserCredentialRoutes",
    "error_of",
    "invalid_fields",
]
