"""The platform API for the daemon: its routes, made from the daemon's parts."""

from ..protocol.authorization import Authenticate
from .transports.http_intake import HttpIntake
from .transports.platform import PlatformRoute, PlatformServer


def platform_server(
    intake: HttpIntake,
    *,
    origins: tuple[str, ...],
    authenticate: Authenticate,
) -> PlatformServer:
    """Serves ``/api/v1``."""
    routes: list[PlatformRoute] = []
    return PlatformServer(intake, routes, origins=origins, authenticate=authenticate)
