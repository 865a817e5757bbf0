"""The services behind the contexts of tools, which all calls share."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import msgspec

from ...call_hooks import CallHooks
from ...fairness import RunPermit
from ...protocol.tool_call import Principal
from ...sandbox import Sandbox
from ...tools import Conversation, CredentialLookup, DaemonView, FileAccess, RetainedResults
from .budget import Budget
from .call_quotas import CallQuotas
from .principal_files import FileOwnersPort
from .provider_limiter import ProviderLimiter
from .rate_limits import RateLimits
from .recording_ports import TracePort
from .vendor_admission import VendorAdmissions


class ConversationCaller(NamedTuple):
    """The principal, session and call that continue a conversation."""

    principal: Principal
    session_id: str
    call_id: str


class ConversationAccess(Protocol):
    """The conversations that calls can continue."""

    def hold(
        self, continuation_id: str | None, caller: ConversationCaller, permit: RunPermit, on_wait: Callable[[], None]
    ) -> AbstractAsyncContextManager[Conversation]:
        """Implements ``ToolContext.conversation``. Before it waits, it calls ``on_wait``; while it waits, ``permit`` is
        released."""
        ...


class ContextServices(msgspec.Struct, frozen=True, eq=False):
    """Services that all calls share."""

    daemon: DaemonView
    files: FileAccess
    limiters: Mapping[str, ProviderLimiter]
    unconfigured: Mapping[str, str]
    """Provider → the setting that it lacks."""
    conversations: ConversationAccess
    budgets_of: Callable[[Principal, str], Sequence[Budget]]
    """Returns the budgets into which a completion of this provider for this principal must fit."""
    results: RetainedResults
    sandbox: Sandbox
    file_owners: FileOwnersPort
    rate_limits: RateLimits
    credentials: CredentialLookup
    quotas: CallQuotas
    hooks: CallHooks
    traces: TracePort | None = None
    admissions: VendorAdmissions | None = None
    """The limits that all nodes share; None if this daemon shares no limits."""
