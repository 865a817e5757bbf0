"""The SQL of pins of sources. Each function is one statement."""

from collections.abc import Mapping
from typing import Any, Final

import psycopg

from ..shared_pins import PinNews, StoredPins
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

PINS_CHANNEL: Final = "toold_pins"
"""The channel of notifications, each with the epoch of its sender, a ``PinNews``, and a name."""


def read(connection: Connection, name: str) -> StoredPins | None:
    """Returns a set of pins."""
    query = "SELECT content, revision FROM source_pins WHERE name = %s"
    row = connection.execute(query, (pg_text(name),)).fetchone()
    return None if row is None else StoredPins(bytes(row[0]), int(row[1]))


def replace(connection: Connection, epoch: str, name: str, content: bytes, revision: int | None) -> int | None:
    """Stores a set of pins if the stored one has this revision, or if there is none, and notifies the other nodes.
    Returns the new revision.
    """
    key = pg_text(name)
    notified = "revision, pg_notify(%s, %s)"
    news = (PINS_CHANNEL, _payload(epoch, "pins", name))
    if revision is None:
        row = connection.execute(
            "INSERT INTO source_pins (name, content) VALUES (%s, %s) ON CONFLICT DO NOTHING "
            f"RETURNING {notified}".encode(),
            (key, content, *news),
        ).fetchone()
    else:
        row = connection.execute(
            "UPDATE source_pins SET content = %s, revision = DEFAULT WHERE name = %s AND revision = %s "
            f"RETURNING {notified}".encode(),
            (content, key, revision, *news),
        ).fetchone()
    return None if row is None else int(row[0])


def revisions(connection: Connection) -> dict[str, int]:
    """Returns the revisions of all sets of pins."""
    rows = connection.execute("SELECT name, revision FROM source_pins").fetchall()
    return {text_of(name): int(revision) for name, revision in rows}


def notify_listing(connection: Connection, epoch: str, source: str) -> None:
    """Notifies the other nodes of changes in the listing of a source."""
    connection.execute("SELECT pg_notify(%s, %s)", (PINS_CHANNEL, _payload(epoch, "listing", source)))


def all_pins(connection: Connection) -> dict[str, bytes]:
    """Returns all sets of pins."""
    rows = connection.execute("SELECT name, content FROM source_pins ORDER BY name").fetchall()
    return {text_of(name): bytes(content) for name, content in rows}


def insert(connection: Connection, contents: Mapping[str, bytes]) -> None:
    """Stores sets of pins in a database that has none."""
    for name, content in contents.items():
        connection.execute("INSERT INTO source_pins (name, content) VALUES (%s, %s)", (pg_text(name), content))


def _payload(epoch: str, news: PinNews, name: str) -> str:
    return f"{epoch} {news} {pg_text(name)}"
