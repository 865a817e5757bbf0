"""Writes entries about conversations, A2A, the registry, credentials and files, within a node's commit.

Except for settled calls, nothing is fetched.
"""

from typing import Any

import psycopg

from ..a2a_push_rows import A2APushDeleted, A2APushProgress, A2APushRow
from ..a2a_task_rows import A2ATaskRow
from ..chain_extension import ChainExtension
from ..conversation_rows import ConversationReleased, ConversationUpdate, SettledConversationCopies
from ..registry_entry_rows import RegistryEntryDeleted, RegistryEntrySaved
from ..store_rows import SettledCalls
from ..user_credential_rows import UserCredentialDeleted, UserCredentialRow
from ..vendor_file_rows import VendorFileDeleted, VendorFileUploaded
from . import (
    pg_a2a_push_sql,
    pg_a2a_task_sql,
    pg_chain_sql,
    pg_conversation_sql,
    pg_copy_sql,
    pg_outbox_sql,
    pg_registry_entry_sql,
    pg_user_credential_sql,
    pg_vendor_file_sql,
)

Connection = psycopg.Connection[tuple[Any, ...]]


def write_part(connection: Connection, entry: object, chain: ChainExtension, node: str) -> None:
    """Writes an entry of this module's kinds for a node, which extends the chain; any other entry is ignored."""
    match entry:
        case A2ATaskRow():
            pg_a2a_task_sql.save(connection, entry, node)
        case A2APushRow() | A2APushDeleted() | A2APushProgress():
            pg_a2a_push_sql.write(connection, entry)
        case UserCredentialRow() | UserCredentialDeleted():
            pg_user_credential_sql.write(connection, entry)
        case VendorFileUploaded() | VendorFileDeleted():
            pg_vendor_file_sql.write(connection, [entry])
        case RegistryEntrySaved() | RegistryEntryDeleted():
            pg_registry_entry_sql.write(connection, [entry])
        case SettledCalls():
            pg_outbox_sql.settle(connection, chain, [entry])
        case _:
            _write_conversation(connection, entry, chain, node)


def _write_conversation(connection: Connection, entry: object, chain: ChainExtension, node: str) -> None:
    match entry:
        case ConversationUpdate():
            pg_conversation_sql.update(connection, entry)
        case ConversationReleased(conversation_id):
            pg_conversation_sql.release(connection, conversation_id, node)
        case SettledConversationCopies():
            pg_copy_sql.settle(connection, pg_chain_sql.number_of(chain), entry)
