"""Classifies the errors of commits: is the node fenced, is an entry invalid, is the connection lost?"""

from typing import Any, Final

import psycopg

from ..store_errors import NodeFencedError
from .pg_connection import reason_of

Connection = psycopg.Connection[tuple[Any, ...]]

DEAD: Final = "TLD01"
COMMIT_MISSING: Final = "TLD02"
COMMITTED_BEFORE: Final = "TLD03"
"""The SQLSTATEs of the function ``renew_lease``."""
_READ_ONLY: Final = "25006"
"""The SQLSTATE of a server that has become a standby: another server accepts writes now."""
DATA_ERRORS: Final = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError, psycopg.NotSupportedError)
"""Errors that an invalid entry causes; a later attempt fails too."""


def is_refused_by_number(error: psycopg.Error) -> bool:
    """Whether ``renew_lease`` has refused the commit; ``require_committed`` then finds the reason."""
    return error.sqlstate in {DEAD, COMMIT_MISSING, COMMITTED_BEFORE}


def require_committed(error: psycopg.Error) -> None:
    """Returns if the refused commit had been made before its connection was lost.

    Raises:
        NodeFencedError: this node is dead, or the database has lost commits of this node.
    """
    if error.sqlstate == DEAD:
        raise NodeFencedError("another node has declared this one dead")
    if error.sqlstate == COMMIT_MISSING:
        raise NodeFencedError(
            f"the database has lost acknowledged commits of this node ({reason_of(error)}): was it failed over "
            "to a standby that is not synchronous?"
        )


def is_lost(connection: Connection, error: Exception) -> bool:
    """Whether the connection was lost, so that the outcome of a commit is unknown."""
    if connection.closed:
        return True
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    return state is not None and (state.startswith(("08", "57P")) or state == _READ_ONLY)
