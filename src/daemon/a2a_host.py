"""Creates the daemon's A2A parts: tasks, operations and server."""

from collections.abc import Callable, Mapping

from ..protocol.authorization import Authenticate
from ..store import Store
from ..tools import Agent
from .config.setting_sources import SettingsError
from .config.settings import Settings
from .dispatch import Router
from .persistence.a2a_task_records import A2APushRecords, A2ATaskRecords
from .persistence.conversation_manager import ConversationManager
from .persistence.key_files import PUSH_KEY_FILE
from .persistence.sealed_texts import SealedTexts, open_sealed_texts
from .persistence.state_directory import StateDirectory, StateError
from .transports.a2a import A2AServer, A2ATasks
from .transports.a2a.a2a_operations import A2AOperations
from .transports.a2a.agent_catalogue import AgentCatalogue, CatalogueSettings
from .transports.a2a.card_signer import CardKeyError, CardSigner
from .transports.a2a.new_tasks import NewTasks
from .transports.a2a.push_operations import PushOperations
from .transports.a2a.push_sender import PushSender
from .transports.a2a.result_parts import ResultFilePort, ResultParts
from .transports.http_intake import HttpIntake


class A2AHost:
    """The parts of A2A that outlive a request."""

    def __init__(
        self,
        router: Router,
        store: Store,
        conversations: ConversationManager,
        intake: HttpIntake,
        state: StateDirectory,
        files: ResultFilePort,
        *,
        agents: Callable[[], Mapping[str, Agent]],
        settings: Callable[[], Settings],
        authenticate: Authenticate,
    ) -> None:
        """``agents`` returns the definitions of the agents that are hosted now.

        Raises:
            SettingsError: the key of the cards, or the extra for push notifications, cannot be used.
        """
        self.results = ResultParts(files, lambda: settings().a2a_url)
        task_records = A2ATaskRecords(store)
        self.tasks = A2ATasks(router, task_records, self.results, shared=store.cluster is not None)
        records = A2APushRecords(store)
        self._sender = None
        if settings().a2a_push_hosts:
            self._sender = PushSender(records, self.tasks, _push_secrets(state), settings().a2a_push_hosts)
        operations = A2AOperations(router, self.tasks, NewTasks(router, self.tasks, task_records, conversations))
        operations.pushes = pushes = PushOperations(self.tasks, records, self._sender)
        catalogue = AgentCatalogue(
            lambda: router.catalog, agents, lambda: _catalogue_settings(settings()), _signer(settings())
        )
        self.server = A2AServer(
            intake,
            operations,
            pushes,
            catalogue,
            self.results,
            origins=settings().allowed_origins,
            authenticate=authenticate,
        )

    async def send_notifications(self) -> None:
        """Sends push notifications, as long as the daemon runs."""
        if self._sender is not None:
            await self._sender.run()

    async def close_notifications(self) -> None:
        """Ends the requests of push notifications."""
        if self._sender is not None:
            await self._sender.close()


def _push_secrets(state: StateDirectory) -> SealedTexts:
    try:
        return open_sealed_texts(state.path / PUSH_KEY_FILE)
    except ImportError:
        raise SettingsError("a2a_push_hosts: needs the extra a2a: pip install 'toold[a2a]'") from None
    except StateError as error:
        raise SettingsError(f"a2a_push_hosts: {error}") from None


def _signer(settings: Settings) -> CardSigner | None:
    if settings.a2a_card_key is None:
        return None
    if settings.a2a_url is None:
        why = "needs a2a_url: cards are signed only with the URL that you name, not with one that a request names"
        raise SettingsError(f"a2a_card_key: {why}")
    try:
        return CardSigner(settings.a2a_card_key)
    except CardKeyError as error:
        raise SettingsError(f"a2a_card_key: {error}") from None


def _catalogue_settings(settings: Settings) -> CatalogueSettings:
    return CatalogueSettings(
        settings.a2a_url, settings.a2a_agent, auth=settings.auth, push=bool(settings.a2a_push_hosts)
    )
