"""A2A for the daemon: its tasks, its operations and its server, made from the daemon's parts."""

from collections.abc import Callable
from pathlib import Path

from ..protocol.authorization import Authenticate
from ..store import Store
from .config.setting_sources import SettingsError
from .config.settings import Settings
from .dispatch import Router
from .persistence.a2a_task_records import A2ATaskRecords
from .persistence.conversation_manager import ConversationManager
from .transports.a2a import A2AServer, A2ATasks
from .transports.a2a.a2a_operations import TRANSPORT, A2AOperations
from .transports.a2a.agent_catalogue import AgentCatalogue, CatalogueSettings
from .transports.a2a.card_signer import CardKeyError, CardSigner
from .transports.http_intake import HttpIntake


class A2AHost:
    """The parts of A2A that outlive a request."""

    def __init__(
        self,
        router: Router,
        store: Store,
        conversations: ConversationManager,
        intake: HttpIntake,
        *,
        settings: Callable[[], Settings],
        authenticate: Authenticate,
    ) -> None:
        """
        Raises:
            SettingsError: the key of the cards cannot be used.
        """
        self.tasks = A2ATasks(router, A2ATaskRecords(store), transport=TRANSPORT)
        operations = A2AOperations(router, self.tasks, conversations)
        agents = AgentCatalogue(
            lambda: router.catalog, lambda: _catalogue_settings(settings()), _signer(settings().a2a_card_key)
        )
        self.server = A2AServer(
            intake, operations, agents, origins=settings().allowed_origins, authenticate=authenticate
        )


def _signer(key: Path | None) -> CardSigner | None:
    try:
        return None if key is None else CardSigner(key)
    except CardKeyError as error:
        raise SettingsError(f"a2a_card_key: {error}") from None


def _catalogue_settings(settings: Settings) -> CatalogueSettings:
    return CatalogueSettings(settings.a2a_url, settings.a2a_agent, auth=settings.auth)
