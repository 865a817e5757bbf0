"""``toold agents decide``: shows the open requests of a paused run, and decides on them."""

import json
import sys
from typing import Any, Final

import click
import msgspec

from ..client import CallResult, MCPWebSocketClient
from ..protocol.error_codes import CallError, ErrorCode
from .daemon_connection import connected, describe, run
from .paused_answer import paused_lines
from .terminal_output import say, say_json

_NOT_PAUSED: Final = frozenset({ErrorCode.VALIDATION_ERROR, ErrorCode.NOT_FOUND})
"""The error codes of ``agent_decide`` for a call that is not paused."""


@click.command("decide", short_help="Approve or reject calls of a paused run, or answer its questions.")
@click.argument("call_id")
@click.argument("request_id", required=False)
@click.option("--approve", is_flag=True, help="The call may run as requested.")
@click.option("--edit", metavar="JSON", help="The call may run with these arguments.")
@click.option("--reject", metavar="REASON", help="The call must not run; the model reads the reason.")
@click.option("--answer", metavar="TEXT", help="The answer to a question.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    call_id: str,
    request_id: str | None,
    approve: bool,
    edit: str | None,
    reject: str | None,
    answer: str | None,
    as_json: bool,
) -> None:
    """Decide on the request REQUEST_ID of the paused call CALL_ID. Without REQUEST_ID, list the call's open requests.

    CALL_ID may also be the id of a run. Exits with 1 if the call is not paused.
    """
    chosen = (approve, edit is not None, reject is not None, answer is not None).count(True)
    if request_id is None and not chosen:
        outcome = run(_status(call_id))
    elif request_id is None or chosen != 1:
        raise click.UsageError("name the request and use exactly one of --approve, --edit, --reject and --answer")
    else:
        decision = decision_of(request_id, approve=approve, edit=edit, reject=reject, answer=answer)
        outcome = run(_decided(call_id, decision))
    if isinstance(outcome, CallError):
        say(describe(outcome), err=True)
        sys.exit(1)
    status = outcome.structured if request_id is None else {}
    waits = request_id is not None or status.get("state") == "paused"
    if as_json:
        say_json(msgspec.json.encode(outcome.structured))
    elif request_id is not None:
        say(outcome.text)
    elif waits:
        say("\n".join(paused_lines(status)))
    else:
        say(f"The call {call_id} is {status.get('state')}: it is not waiting for a decision.", err=True)
    sys.exit(not waits)


async def _status(call_id: str) -> CallResult | CallError:
    async with connected(all_tools=True) as client:
        try:
            status = await client.call("call_status", {"call_id": call_id})
            if status.structured.get("state") != "paused" and (waiting := await _continued_by(call_id, client)):
                return await client.call("call_status", {"call_id": waiting})
        except CallError as error:
            return error
        return status


async def _decided(call_id: str, decision: dict[str, Any]) -> CallResult | CallError:
    async with connected(all_tools=True) as client:
        try:
            return await client.call("agent_decide", {"call_id": call_id, "decisions": [decision]})
        except CallError as error:
            waiting = await _continued_by(call_id, client) if error.code in _NOT_PAUSED else None
            if waiting is None:
                return error
        try:
            return await client.call("agent_decide", {"call_id": waiting, "decisions": [decision]})
        except CallError as error:
            return error


async def _continued_by(run_id: str, client: MCPWebSocketClient) -> str | None:
    """The paused call that continues a run under another id; None if there is none."""
    try:
        record = (await client.call("agent_runs", {"run_id": run_id})).structured
    except CallError:  # not a run of an agent, or the daemon has no agents
        return None
    waiting = record.get("call_id") if record.get("state") == "paused" else None
    return None if waiting == run_id else waiting


def decision_of(
    request_id: str, *, approve: bool, edit: str | None, reject: str | None, answer: str | None
) -> dict[str, Any]:
    """The decision in the form of ``agent_decide``'s arguments.

    Raises:
        click.UsageError: the edited arguments are not a JSON object.
    """
    if reject is not None:
        return {"id": request_id, "decision": "reject", **({"text": reject} if reject else {})}
    if answer is not None:
        return {"id": request_id, "decision": "answer", "text": answer}
    if approve or edit is None:
        return {"id": request_id, "decision": "approve"}
    try:
        arguments = json.loads(edit)
    except ValueError as error:
        raise click.UsageError(f"--edit is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise click.UsageError("--edit must be a JSON object with the arguments of the call")
    return {"id": request_id, "decision": "approve", "arguments": arguments}
