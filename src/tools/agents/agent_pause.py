"""Pauses of a run, until a person approves a call, answers a question or gives a credential.

A pause raises ``CallPausedError``. A paused run does not stay in memory. After the decisions, it runs again from its
beginning, with the results of its earlier calls.
"""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from ...protocol.input_request import MAX_REQUESTS, MAX_REQUESTS_BYTES, CallPausedError, InputDecision, InputRequest
from ...protocol.user_credential import CredentialField
from ..orchestration_context import OrchestrationContext
from .agent_messages import problem_text

T = TypeVar("T")

_ROOM_BYTES: Final = MAX_REQUESTS_BYTES - 2 * MAX_REQUESTS
"""The maximum size of the requests of one pause, without the brackets and commas of their list."""
NO_CREDENTIAL: Final = "NO_CREDENTIAL"
"""The error code of a call that was not made because the user did not give a credential."""
_PARENT_BYTES: Final = 1000
"""The characters reserved for the names of parents, which precede a request's id."""


def is_askable(request: InputRequest) -> bool:
    """Whether a pause can contain this request, that is, its arguments are not too long."""
    return _size(request) <= _ROOM_BYTES


def pause_for(requests: Iterable[InputRequest], within_s: float) -> CallPausedError:
    """A pause for as many of these requests as it can contain. The run pauses again for the others."""
    chosen: list[InputRequest] = []
    room = _ROOM_BYTES
    for request in requests:
        room -= _size(request)
        if len(chosen) == MAX_REQUESTS or room < 0:
            break
        chosen.append(request)
    return CallPausedError(tuple(chosen), time.time() + within_s)


def joined(pauses: Sequence[CallPausedError]) -> CallPausedError:
    """A pause with the requests of all these pauses. It expires with the first of them."""
    requests = [request for pause in pauses for request in pause.requests]
    return pause_for(requests, min(pause.expires_at for pause in pauses) - time.time())


async def all_of(children: Iterable[Awaitable[T]]) -> list[T]:
    """The results of all children, which run concurrently. A child that pauses does not end the others.

    Raises:
        CallPausedError: children paused; the error has the requests of all of them.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_or_pause(child)) for child in children]
    ended = [task.result() for task in tasks]
    pauses = [pause for pause in ended if isinstance(pause, CallPausedError)]
    if pauses:
        raise joined(pauses)
    return [result for result in ended if not isinstance(result, CallPausedError)]


async def _or_pause(child: Awaitable[T]) -> T | CallPausedError:
    try:
        return await child
    except CallPausedError as pause:
        return pause


def refusal_text(decision: InputDecision) -> str | None:
    """The text for the model about a call that was not approved; None if it was approved."""
    if decision.decision == "expired":
        return problem_text("NOT_APPROVED", "This call was not approved in time, so it did not run.")
    if decision.decision == "reject":
        reason = f" Reason: {decision.text}" if decision.text else ""
        return problem_text("NOT_APPROVED", f"The user rejected this call, so it did not run.{reason}")
    return None


async def credential_refusal(context: OrchestrationContext, tool: str, name: str, within_s: float) -> str | None:
    """The text for the model if the user refuses a credential that the tool needs; None if the call ``name`` can be
    made.

    Raises:
        CallPausedError: a credential is missing, and the user can give it.
        ServiceUnavailableError: the vault cannot be read.
    """
    if context.resumed and name in (await context.earlier_steps()).children:
        return None  # the call's result is stored
    requests: list[InputRequest] = []
    for wanted in context.needed_credentials(tool):
        text = await context.missing_credential(wanted)
        if text is None:
            continue
        attempt = 1
        while decision := context.decision(request_id := f"{name}:{wanted.service}.{wanted.field}.{attempt}"):
            if decision.decision != "provided":
                return _not_provided(wanted, decision)
            attempt += 1  # it was not provided, or was removed meanwhile
        requests.append(InputRequest(request_id, "credential", tool, text=text, credential=wanted))
    if requests:
        raise pause_for(requests, within_s)
    return None


def _not_provided(wanted: CredentialField, decision: InputDecision) -> str:
    if decision.decision == "expired":
        return f"The credential for {wanted} was not given in time, so the call was not made."
    reason = f" Reason: {decision.text}" if decision.text else ""
    return f"The user did not give the credential for {wanted}, so the call was not made.{reason}"


def _size(request: InputRequest) -> int:
    return len(msgspec.json.encode(request)) + _PARENT_BYTES
