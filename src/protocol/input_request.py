"""The requests to a person for which a paused call waits, and the decisions on them."""

import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from .tool_call import Json
from .user_credential import CredentialField

REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:#\[\]/-]{1,1000}")
"""The format of request ids. If a child pauses, its parent prefixes them with the child's name and a slash."""
MAX_REQUESTS: Final = 100
"""The maximum number of requests in one pause."""
MAX_REQUESTS_BYTES: Final = 256 * 1024
"""The maximum size, as JSON, of all requests of one pause: a person reads them, and ``call_status`` sends them."""

RequestKind = Literal["approve", "question", "credential"]
DecisionKind = Literal["approve", "reject", "answer", "provided", "expired"]


_FITTING: Final[Mapping[RequestKind, tuple[DecisionKind, ...]]] = {
    "approve": ("approve", "reject"),
    "question": ("answer",),
    "credential": ("provided", "reject"),
}


class InputRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request to a person."""

    id: str
    """In the format of ``REQUEST_ID``; unique within the call, across all its pauses."""
    kind: RequestKind
    """``approve``: may ``tool`` be called with ``arguments``? ``question``: the question in ``text``. ``credential``:
    ``tool`` needs a credential of the user; ``text`` says where to give it.
    """
    tool: str | None = None
    arguments: dict[str, Json] | None = None
    text: str = ""
    """The question, or why the approval or the credential is needed."""
    credential: CredentialField | None = None


class InputDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's decision on a request, or ``expired``."""

    decision: DecisionKind
    """``approve`` and ``reject`` are decisions on a request to approve, ``answer`` on a question, ``provided`` and
    ``reject`` on a request for a credential; ``expired``: there was no decision in time.
    """
    arguments: dict[str, Json] | None = None
    """With ``approve``: the arguments as the person changed them; None: as requested."""
    text: str | None = None
    """With ``answer``: the answer. With ``reject``: the reason, if one was given."""


class CallPausedError(Exception):
    """Raised by an orchestration tool whose call cannot continue before a person has decided.

    While the call is paused, no task waits. After the last decision, or at ``expires_at`` (a Unix time in seconds), the
    tool runs again from its beginning, as after a restart: ended children are replayed, and
    ``OrchestrationContext.decision`` returns the decisions. Raise it when no child is running, because running children
    are cancelled. Pauses of several parallel children are raised as one, with all their requests.

    Raises:
        ValueError: there are no requests or too many, they are too large, or an id is invalid or used twice.
    """

    def __init__(self, requests: tuple[InputRequest, ...], expires_at: float) -> None:
        if not 1 <= len(requests) <= MAX_REQUESTS:
            raise ValueError(f"a call pauses for 1 to {MAX_REQUESTS} requests, not {len(requests)}")
        ids = {request.id for request in requests}
        invalid = sorted(request_id for request_id in ids if not REQUEST_ID.fullmatch(request_id))
        if invalid or len(ids) < len(requests):
            raise ValueError(
                f"{invalid[0][:80]!r} does not match {REQUEST_ID.pattern}" if invalid else "two requests share an id"
            )
        size = len(msgspec.json.encode(requests))
        if size > MAX_REQUESTS_BYTES:
            raise ValueError(f"the requests have {size:,} bytes, more than {MAX_REQUESTS_BYTES:,}")
        self.requests = requests
        self.expires_at = expires_at
        super().__init__(f"the call waits for {len(requests)} decisions of a person")

    def of_child(self, name: str) -> "CallPausedError":
        """Returns the parent's pause after its child ``name`` paused."""
        requests = tuple(msgspec.structs.replace(request, id=f"{name}/{request.id}") for request in self.requests)
        return CallPausedError(requests, self.expires_at)


def decision_problem(request: InputRequest, decision: InputDecision) -> str | None:
    """Returns why a person's decision does not fit a request; None if it does."""
    fitting = _FITTING[request.kind]
    if decision.decision not in fitting:
        return f"the request {request.id!r} takes {' or '.join(fitting)}, not {decision.decision}"
    if decision.arguments is not None and decision.decision != "approve":
        return f"{decision.decision} takes no arguments"
    if decision.text is not None and decision.decision in {"approve", "provided"}:
        return f"{decision.decision} takes no text"
    if not decision.text and decision.decision == "answer":
        return "answer needs a text"
    if decision.arguments is not None and len(msgspec.json.encode(decision.arguments)) > MAX_REQUESTS_BYTES:
        return f"the changed arguments have more than {MAX_REQUESTS_BYTES:,} bytes"
    return None
