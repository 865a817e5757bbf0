"""``zenml_trigger`` runs a pipeline and waits, ``zenml_stop`` stops a run, ``zenml_artifact`` finds artifacts."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from ..protocol.detached_answer import detached_answer
from ..protocol.error_codes import (
    CallError,
    InvalidArgumentsError,
    NotFoundError,
    OutcomeUnknownError,
    ServiceUnavailableError,
    ToolExecutionError,
    error_from_wire,
)
from ..tools import Arguments, LookupContext, OrchestrationContext, Tool, tool
from .run_stops import FINISHED, RunStops, status_of
from .zenml_client import ZenmlClient
from .zenml_settings import ZenmlSettings

ZENML_SOURCE: Final = "zenml"
WAIT_S: Final = 1800.0
"""The maximum time of a call that is not detached."""
MAX_WAIT_S: Final = 86_400.0
"""The maximum time of a detached call: as long as results are kept by default."""
MAX_FAILED_POLLS: Final = 30
"""The failed status requests in a row after which the call gives up; the run continues."""
LOOKS_AFTER_UNKNOWN: Final = 3
"""How often to search a run whose start was not answered, before the outcome counts as unknown."""
MAX_ARTIFACTS: Final = 100
_SUCCESSFUL: Final = frozenset({"completed", "cached", "skipped"})

_Name = Annotated[str, StringConstraints(min_length=1, max_length=255)]


class TriggerArguments(Arguments):
    """The pipeline, and how to run it."""

    snapshot: _Name = Field(description="Name or id of the pipeline snapshot.")
    parameters: dict[str, Any] = Field(default={}, max_length=200, description="Parameters of the pipeline.")
    configuration: dict[str, Any] = Field(
        default={},
        max_length=50,
        description="Other fields of ZenML's run configuration, such as steps and tags.",
    )
    timeout_s: float | None = Field(
        default=None, gt=0, le=MAX_WAIT_S, description=f"How long to wait; default {WAIT_S:g}, detached {MAX_WAIT_S:g}."
    )
    on_cancel: Literal["stop", "keep"] = Field(
        default="stop", description="What happens to the run if this call is cancelled."
    )
    detach: bool = Field(default=False, description="Return a call_id at once, for call_status and call_result.")


class StopArguments(Arguments):
    """The run to stop."""

    run_id: _Name = Field(description="The id of the run.")
    graceful: bool = Field(default=False, description="Let running steps finish where possible.")


class ArtifactArguments(Arguments):
    """The artifacts to find."""

    id: _Name | None = Field(default=None, description="The id of one artifact version.")
    name: _Name | None = Field(default=None, description="All versions of the artifact with this name.")
    version: _Name | None = Field(default=None, description="Only this version.")
    run_id: _Name | None = Field(default=None, description="Only artifacts of this run.")
    limit: int = Field(default=20, ge=1, le=MAX_ARTIFACTS, description="How many, the newest first.")


class StartArguments(Arguments):
    """The arguments of a start, for the audit."""

    snapshot: str
    run_name: str


@tool("zenml_start", read_only=False, open_world=True, idempotent=True, unmetered=True)
async def _zenml_start(_arguments: StartArguments, _context: LookupContext) -> None:
    """Starts a run, unless it exists already."""
    raise NotImplementedError  # each call gives it its function


def zenml_tools(client: ZenmlClient, settings: ZenmlSettings, stops: RunStops) -> list[Tool]:
    """The tools for this server."""

    @tool("zenml_trigger", read_only=False, open_world=True, orchestration=True, timeout_s=WAIT_S)
    async def zenml_trigger(arguments: TriggerArguments, context: OrchestrationContext) -> dict[str, Any]:
        """Run a ZenML pipeline from a snapshot and wait until it ends. Cancelling the call stops the run, unless
        on_cancel is keep.
        """
        _check(arguments, detached=arguments.detach or context.detached)
        if arguments.detach and not context.detached:
            seconds = arguments.timeout_s or MAX_WAIT_S
            return detached_answer(await context.detach(changed={}, timeout_s=seconds))
        run_name = run_name_of(context.call_id)
        try:
            # Deadlines, lost connections and shutdowns cancel a call too; the run then continues.
            with stops.after_cancel(run_name, lambda: arguments.on_cancel == "stop" and context.cancel_requested):
                run = await _start(client, settings, arguments, run_name, context)
                async with asyncio.timeout(arguments.timeout_s):
                    return await _wait(client, settings, run, context)
        except TimeoutError:
            raise ServiceUnavailableError(
                f"The run {run['id']} is still in progress after {arguments.timeout_s:g} s, and continues.",
                executed="yes",
                transient=False,
                details={"run_id": run["id"], "run_name": run_name},
            ) from None

    @tool("zenml_stop", read_only=False, open_world=True, idempotent=True, destructive=True)
    async def zenml_stop(arguments: StopArguments, _context: LookupContext) -> dict[str, Any]:
        """Stop a run of a ZenML pipeline; returns its status. It ends some time later."""
        run = await client.get("runs", arguments.run_id, hydrate=False)
        if status_of(run) not in FINISHED:
            await client.stop(arguments.run_id, graceful=arguments.graceful)
            run = await client.get("runs", arguments.run_id, hydrate=False)
        return _run_data(run)

    @tool("zenml_artifact", read_only=True, open_world=True, idempotent=True)
    async def zenml_artifact(arguments: ArtifactArguments, _context: LookupContext) -> dict[str, Any]:
        """Find artifacts that ZenML pipelines produced, by id, name or run: type, URI, producer, metadata."""
        if arguments.id is not None:
            found = await client.get("artifact_versions", arguments.id, hydrate=True)
            return {"artifacts": [_artifact_data(found)], "total": 1}
        if arguments.name is None and arguments.run_id is None:
            raise InvalidArgumentsError("name: send id, name or run_id.")
        filters = {"artifact": arguments.name, "version": arguments.version, "pipeline_run": arguments.run_id}
        present = {name: f"equals:{value}" for name, value in filters.items() if value is not None}
        artifacts, total = await client.newest("artifact_versions", present, arguments.limit)
        return {"artifacts": list(map(_artifact_data, artifacts)), "total": total}

    return [zenml_trigger, zenml_stop, zenml_artifact]


def _check(arguments: TriggerArguments, *, detached: bool) -> None:
    """
    Raises:
        InvalidArgumentsError: the arguments do not fit together.
    """
    for name in ("run_name", "parameters"):
        if name in arguments.configuration:
            advice = "toold sets it" if name == "run_name" else "send it as the argument parameters"
            raise InvalidArgumentsError(f"configuration: has {name}; {advice}.")
    if not detached and (arguments.timeout_s or 0) > WAIT_S:
        raise InvalidArgumentsError(f"timeout_s: is at most {WAIT_S:g}, or with detach {MAX_WAIT_S:g}.")


def run_name_of(call_id: str) -> str:
    """The name of the run of a call: the same when the call continues after a restart."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", call_id)[:80]
    return f"toold-{readable}-{hashlib.sha256(call_id.encode()).hexdigest()[:8]}"


async def _start(
    client: ZenmlClient,
    settings: ZenmlSettings,
    arguments: TriggerArguments,
    run_name: str,
    context: OrchestrationContext,
) -> dict[str, Any]:
    """Starts the run once: a call that continues after a restart finds its earlier run."""
    configuration = {**arguments.configuration, "run_name": run_name}
    if arguments.parameters:
        configuration["parameters"] = arguments.parameters

    async def start(_arguments: StartArguments, _context: LookupContext) -> dict[str, Any]:
        if (known := await client.find("runs", run_name)) is not None:
            return _run_data(known)
        snapshot_id = await _snapshot_id(client, arguments.snapshot)
        try:
            return _run_data(await client.run_snapshot(snapshot_id, configuration))
        except CallError as error:
            if error.executed != "maybe":
                raise
        return await _started(client, run_name, settings.poll_s)

    context.progress(f"starting {arguments.snapshot}")
    child = {"snapshot": arguments.snapshot, "run_name": run_name}
    result = await context.call(_zenml_start.with_function(start), child, name="start", journal=True)
    if result.error is not None:
        raise error_from_wire(result.error)
    if not isinstance(result.structured, dict):
        raise OutcomeUnknownError
    return result.structured


async def _snapshot_id(client: ZenmlClient, name: str) -> str:
    if _is_id(name):
        return name
    snapshot = await client.find("pipeline_snapshots", name)
    if snapshot is None:
        raise NotFoundError(f"ZenML has no snapshot {name!r}, or the API key may not see it.")
    return str(snapshot["id"])


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


async def _started(client: ZenmlClient, run_name: str, poll_s: float) -> dict[str, Any]:
    """Searches the run of a start that was not answered."""
    for _ in range(LOOKS_AFTER_UNKNOWN):
        await asyncio.sleep(poll_s)
        try:
            if (run := await client.find("runs", run_name)) is not None:
                return _run_data(run)
        except ServiceUnavailableError:
            continue
    raise OutcomeUnknownError(f"ZenML did not answer; whether the run {run_name} was started is unknown.")


async def _wait(
    client: ZenmlClient, settings: ZenmlSettings, run: Mapping[str, Any], context: OrchestrationContext
) -> dict[str, Any]:
    """Waits until the run ends."""
    run_id, failed = str(run["id"]), 0
    while True:
        try:
            now = await client.get("runs", run_id, hydrate=False)
        except ServiceUnavailableError as error:
            failed += 1
            if failed >= MAX_FAILED_POLLS:
                raise ServiceUnavailableError(
                    f"{error.message} The run {run_id} continues.", executed="yes", details={"run_id": run_id}
                ) from error
            context.progress("ZenML does not answer")
        else:
            failed = 0
            status = status_of(now)
            if status in FINISHED:
                return _ended(now)
            context.progress(f"run {run_id}: {status}")
        await asyncio.sleep(settings.poll_s)


def _ended(run: Mapping[str, Any]) -> dict[str, Any]:
    data = _run_data(run)
    if data["status"] in _SUCCESSFUL:
        return data
    reason = f": {data['status_reason']}" if data.get("status_reason") else ""
    raise ToolExecutionError(f"The run {data['id']} ended as {data['status']}{reason}.", details=data)


def _run_data(run: Mapping[str, Any]) -> dict[str, Any]:
    body = _table(run, "body")
    data = {"id": str(run.get("id", "")), "name": run.get("name"), "status": status_of(run)}
    if not data["id"]:
        raise ServiceUnavailableError("ZenML's answer is not a run.", executed="maybe", transient=False)
    return {**data, "status_reason": body.get("status_reason"), "created": body.get("created")}


def _artifact_data(artifact: Mapping[str, Any]) -> dict[str, Any]:
    body, metadata = _table(artifact, "body"), _table(artifact, "metadata")
    name = _table(body, "artifact").get("name", artifact.get("name"))
    kept = {field: body.get(field) for field in ("version", "type", "uri", "producer_pipeline_run_id", "created")}
    source = _table(body, "data_type")
    return {
        "id": artifact.get("id"),
        "name": name,
        **kept,
        "data_type": ".".join(str(source[part]) for part in ("module", "attribute") if source.get(part)),
        "metadata": metadata.get("run_metadata") or {},
    }


def _table(value: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = value.get(field)
    return found if isinstance(found, dict) else {}
