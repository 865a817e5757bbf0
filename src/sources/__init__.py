"""Sources: external systems that provide tools. They are REST APIs with OpenAPI documents, MCP servers, and remote
agents.

The daemon, which runs the configured sources, and `toold sources check` use this package. It depends on tools and their
context, but not on sessions, limits, transports or result storage.
"""

from .address_policy import AddressPolicy
from .body_decompression import read_body
from .checked_network import CheckedNetwork, ForbiddenAddressError
from .google_token import GoogleAccount, GoogleToken
from .json_server import MAX_JSON_BYTES, MAX_REQUESTS_PER_SERVER, JsonAnswer, JsonServer, UnusableAnswerError
from .kept_files import KeptFile, KeptFiles
from .keyed_tables import keyed_table_message, read_keyed_table
from .mcp.server_output import ServerLog
from .oauth.sign_in_desk import SignInDesk
from .oauth.sign_in_values import DAEMON as DAEMON_SIGN_IN
from .pin_storage import PINS_DIRECTORY, KnownPins, PinFiles, PinStorage, ReadablePins, SharedPins
from .program_process import end_program, ended_within, environment, signal_group
from .read_rate import ReadRate
from .registered_servers import McpRegistry, RegisteredServer, tables_of
from .source import QuarantinedVersion, RefusedServer, Source, SourceCheck, SourceListener, SourceNote
from .source_auth import BearerAuth, SecretTable
from .source_content import ContentSource, Entry, OffersContent, SourceContent, SourceEvents, SourcePrompt
from .source_factory import check_source, may_provide, open_source
from .source_manager import SourceManager, SourceState
from .source_secrets import COMMAND_ENVIRONMENT, unavailable_secrets
from .source_setting_types import Environment, Hosts, HttpUrl
from .source_settings import A2ASettings, McpSettings, SourceSettings
from .source_settings_reader import SourceSettingsError, anchored, read_sources
from .tool_pins import PinError

__all__ = [
    "COMMAND_ENVIRONMENT",
    "DAEMON_SIGN_IN",
    "MAX_JSON_BYTES",
    "MAX_REQUESTS_PER_SERVER",
    "PINS_DIRECTORY",
    "A2ASettings",
    "AddressPolicy",
    "BearerAuth",
    "CheckedNetwork",
    "ContentSource",
    "Entry",
    "Environment",
    "ForbiddenAddressError",
    "GoogleAccount",
    "GoogleToken",
    "Hosts",
    "HttpUrl",
    "JsonAnswer",
    "JsonServer",
    "KeptFile",
    "KeptFiles",
    "KnownPins",
    "McpRegistry",
    "McpSettings",
    "OffersContent",
    "PinError",
    "PinFiles",
    "PinStorage",
    "QuarantinedVersion",
    "ReadRate",
    "ReadablePins",
    "RefusedServer",
    "RegisteredServer",
    "SecretTable",
    "ServerLog",
    "SharedPins",
    "SignInDesk",
    "Source",
    "SourceCheck",
    "SourceContent",
    "SourceEvents",
    "SourceListener",
    "SourceManager",
    "SourceNote",
    "SourcePrompt",
    "SourceSettings",
    "SourceSettingsError",
    "SourceState",
    "UnusableAnswerError",
    "anchored",
    "check_source",
    "end_program",
    "ended_within",
    "environment",
    "keyed_table_message",
    "may_provide",
    "open_source",
    "read_body",
    "read_keyed_table",
    "read_sources",
    "signal_group",
    "tables_of",
    "unavailable_secrets",
]
