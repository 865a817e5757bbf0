"""``toold store``: migrates the database of the setting ``store``, and copies it to or from the embedded database."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ..audit import ChainKeyError, verify_chains, verify_local
from ..daemon.persistence.state_directory import DATABASE_FILE, StateDirectory, StateError, read_audit_key
from ..protocol.daemon_address import default_state_dir
from ..sources import PINS_DIRECTORY, PinError, PinFiles
from ..store import ChainSigner, StoreError, open_archive
from .daemon_connection import CommandFailedError
from .shared_store import postgres_archive, require_postgres, shared_store_address
from .terminal_output import say

if TYPE_CHECKING:
    from ..store.postgres.store_copy import CopiedStore

_NO_STORE: Final = "the setting `store` is not set: set TOOLD_STORE=postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


@click.group()
def command() -> None:
    """Prepare the PostgreSQL database that several nodes share (the setting `store` names it), and copy data to and
    from it.
    """


@command.command(short_help="Create or migrate the tables.")
@click.argument("address", metavar="[URL]", required=False)
def migrate(address: str | None) -> None:
    """Create the tables in a database, or migrate them to this toold's schema. The default is the database that the
    setting `store` names.

    Nodes of the previous version may keep running during the migration; a migration is refused if a running
    node could not work with the migrated tables. A second migration at the same time waits for the first one. A
    database that a newer toold has migrated is refused.
    """
    address = _address() if address is None else address
    require_postgres()
    from ..store.postgres.pg_schema import migrate_postgres

    with _failures():
        before, after = migrate_postgres(address)
    say(f"schema {after}: nothing to do" if before == after else f"migrated from schema {before} to schema {after}")


@command.command(short_help="Copy everything to or from the embedded database.")
@click.option("--from-sqlite", "direction", flag_value="from", help="From toold.db of the state directory.")
@click.option("--to-sqlite", "direction", flag_value="to", help="To a new toold.db of the state directory.")
def copy(direction: str | None) -> None:
    """Copy the store between toold.db in the state directory (TOOLD_STATE_DIR) and the database that the setting
    `store` names.

    The target must be empty: a new database after `toold store migrate`, or a state directory without toold.db.
    Source and target must have the same audit.key; the command uses it to verify the source first. The command refuses
    to copy while a daemon uses one of them. The source stays unchanged. The pins of sources (the directory pins) are
    copied, too; retained results and the other files of the state directory are not.
    """
    if direction is None:
        raise click.UsageError("add --from-sqlite or --to-sqlite")
    address = _address()
    require_postgres()
    directory = default_state_dir(os.environ)
    with _failures(), StateDirectory(directory):
        key = read_audit_key(directory)
        _require_intact(direction, directory, address, key)
        copied = _copied(direction, directory, address, key)
    for table, rows in copied.rows.items():
        say(f"  {table}: {rows}")
    if copied.resigned:
        say(f"{copied.resigned} audit rows of other nodes were signed again")
    say(f"copied {sum(copied.rows.values())} rows")


def _copied(direction: str, directory: Path, address: str, key: bytes) -> "CopiedStore":
    from ..store.postgres.store_copy import copy_to_postgres, copy_to_sqlite

    path, pins = directory / DATABASE_FILE, PinFiles(directory / PINS_DIRECTORY)
    if direction == "from":
        return copy_to_postgres(path, address, key, pins.contents())
    return copy_to_sqlite(address, path, key, pins.write_all)


def _require_intact(direction: str, directory: Path, address: str, key: bytes) -> None:
    """Verifies the source's audit trail, so that the copy does not sign rows without a valid signature."""
    if direction == "from":
        with open_archive(directory / DATABASE_FILE) as archive:
            intact = verify_local(ChainSigner(key), archive.trail(), archive.chained_rows()).intact
    else:
        with postgres_archive(address) as shared:
            intact = all(findings.intact for findings in verify_chains(key, shared).values())
    if not intact:
        raise CommandFailedError("the audit trail of the source is broken: `toold audit verify` shows where")


def _address() -> str:
    address = shared_store_address()
    if address is None:
        raise click.UsageError(_NO_STORE)
    return address


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except (StoreError, StateError, ChainKeyError, PinError) as error:
        raise CommandFailedError(str(error)) from error
