"""Collections of documents for the daemon: made of its settings, models and calls."""

from collections.abc import Callable
from pathlib import Path

from ..knowledge import KnowledgeHost
from ..tools import DaemonView
from .background_calls import call_in_background
from .config import settings_mapping
from .config.settings import Settings
from .dispatch import Router


def open_knowledge(
    settings: Callable[[], Settings],
    state_directory: Path,
    view: Callable[[], DaemonView],
    router: Callable[[], Router],
    changed: Callable[[], None],
) -> KnowledgeHost:
    """The host of the collections in the settings; ``changed`` is called when its tools change."""
    return KnowledgeHost(
        settings().knowledge,
        state_directory,
        files_of=lambda folder: settings_mapping.folder_access(settings(), folder),
        model_id=lambda name: view().catalog.resolve(name).id,
        call=lambda *call, timeout_s: call_in_background(router(), *call, timeout_s=timeout_s),
        changed=changed,
    )
