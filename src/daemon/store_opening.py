"""Opens the daemon's store and its retained results: in the state directory, or in a database that nodes share."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ..audit import content_reducer
from ..sources import PINS_DIRECTORY, KnownPins, PinFiles, PinStorage, ReadablePins, SharedPins
from ..store import Store, StoreError, open_sqlite_store
from .cluster.node_address import decode_node_address
from .config import settings_mapping
from .config.setting_sources import SettingsError
from .config.settings import Settings
from .persistence.key_files import make_key_files
from .persistence.result_files import RESULTS_DIRECTORY, ResultFiles, open_results
from .persistence.state_directory import StateDirectory

if TYPE_CHECKING:
    from ..store.postgres.result_bucket import ResultBucket

_LISTENS_S: Final = 1.0
"""How long to wait for a connection to a node that has the name of this one."""


def open_store(
    settings: Settings, state: StateDirectory, epoch: str, node_name: str, on_fenced: Callable[[str], None]
) -> Store:
    """Opens the database. ``epoch`` identifies this process, ``node_name`` its node. ``on_fenced`` is called on the
    store's thread, with the reason, if this process is a node of a cluster and must end.

    Raises:
        SettingsError: the package for the database is not installed.
        StateError: the key of the audit chain cannot be used.
        StoreError: the database cannot be opened.
    """
    content, retention = content_reducer(settings.audit_content), settings_mapping.retention(settings)
    copies = settings_mapping.copies_conversations(settings)
    expects_chain = state.has_audit_key
    key = state.load_or_create_audit_key()
    try:
        if settings.store is None:
            return open_sqlite_store(
                state.database,
                content=content,
                retention=retention,
                key=key,
                expects_chain=expects_chain,
                copy_conversations=copies,
            )
        make_key_files(state.path, key)
        return _postgres()(
            settings.store.get_secret_value(),
            epoch=epoch,
            node_name=node_name,
            lease_s=settings.lease_s,
            content=content,
            retention=retention,
            key=key,
            path=state.path,
            on_fenced=on_fenced,
            expects_chain=expects_chain,
            copy_conversations=copies,
            listens=listens,
        )
    except StoreError:
        if not expects_chain:
            state.remove_audit_key()  # it has not signed anything, so the next start is a first start again
        raise


def open_retained_results(settings: Settings, state: StateDirectory, node_name: str) -> ResultFiles:
    """Opens the retained results: files of the state directory, or the database that several nodes share, so that each
    node finds the results of the others.
    """
    ttl_s, max_bytes = settings.retained_results_keep_s, settings.retained_results_keep_bytes
    if settings.store is None:
        return open_results(state.path / RESULTS_DIRECTORY, ttl_s=ttl_s, max_bytes=max_bytes)
    from ..store.postgres.postgres_results import open_postgres_results  # noqa: PLC0415 - needs an extra

    bucket = None if settings.results_bucket is None else open_bucket(settings.results_bucket)
    shared = open_postgres_results(
        settings.store.get_secret_value(),
        node_name=node_name,
        lost_after_s=settings.lease_s,
        ttl_s=ttl_s,
        max_bytes=max_bytes,
        bucket=bucket,
    )
    return ResultFiles(shared, check_bucket=None if bucket is None else bucket.check)


def open_pins(store: Store, state_dir: Path) -> PinStorage:
    """Returns the storage of the pins of sources: the database that several nodes share, or files."""
    return PinFiles(state_dir / PINS_DIRECTORY) if store.cluster is None else SharedPins(store.cluster.pins)


def known_pins(settings: Settings, state_dir: Path) -> ReadablePins:
    """Returns the pins of sources for a command, which only reads them.

    Raises:
        StoreError: the database that nodes share cannot be read, or its package is not installed.
    """
    if settings.store is None:
        return PinFiles(state_dir / PINS_DIRECTORY)
    try:
        from ..store.postgres.pg_inspection import read_pins  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        message = f"PostgreSQL needs the package {error.name}; pip install 'toold[postgres]'"
        raise StoreError(message, message) from None
    return KnownPins(read_pins(settings.store.get_secret_value()))


def open_bucket(url: str) -> "ResultBucket":
    """
    Raises:
        SettingsError: the URL cannot be used, or the package is not installed.
    """
    try:
        from ..store.postgres.result_bucket import ResultBucket  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        raise SettingsError(f"results_bucket: needs the package {error.name}: pip install 'toold[bucket]'") from None
    try:
        return ResultBucket(url)
    except StoreError as error:
        raise SettingsError(f"results_bucket: {error.reason}") from None


def _postgres() -> "Callable[..., Store]":
    """Returns ``open_postgres_store``.

    Raises:
        SettingsError: its package is not installed.
    """
    try:
        from ..store.postgres.postgres_store import open_postgres_store  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"store: PostgreSQL needs the package {error.name}: pip install 'toold[postgres]'"
        ) from None
    return open_postgres_store


def listens(announced: str) -> bool:
    """Returns whether something may accept connections at the address that a node announced: False only if its machine
    refuses them.
    """
    address = decode_node_address(announced)
    if address is None:
        return True
    parts = urlsplit(address.websocket)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), _LISTENS_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    return True
