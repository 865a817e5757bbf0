"""Creates the server of the platform API."""

from ..protocol.authorization import Authenticate
from ..store import Store
from ..user_credentials import CredentialVault
from .config.settings import Settings
from .deploy_host import DeployHost
from .dispatch import Router
from .observability.job_view import JobView
from .transports.http_intake import HttpIntake
from .transports.platform import PlatformServer, UserCredentialRoutes
from .transports.platform.deploy_routes import deploy_routes
from .transports.platform.platform_calls import PlatformCalls


def platform_server(
    settings: Settings,
    router: Router,
    intake: HttpIntake,
    store: Store,
    deployments: DeployHost,
    vault: CredentialVault,
    authenticate: Authenticate,
) -> PlatformServer:
    """Serves ``/api/v1``."""
    calls = PlatformCalls(router)
    credentials = UserCredentialRoutes(vault, record=store.audit.record, changed=router.paused.credentials_changed)
    deploying = deploy_routes(deployments.service, JobView(router, store), calls, deployments.list_prompts)
    routes = [*deploying, *credentials.routes]
    return PlatformServer(intake, routes, origins=settings.allowed_origins, authenticate=authenticate)
