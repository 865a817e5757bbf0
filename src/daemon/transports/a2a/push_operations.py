"""A2A's operations on the push configurations of tasks."""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any, Final

from ....protocol.a2a.a2a_error import PUSH_NOT_SUPPORTED, TASK_NOT_FOUND, A2AError, error_of_call, invalid_field
from ....protocol.a2a.a2a_request import field_of
from ....protocol.a2a.a2a_version import A2AVersion
from ....protocol.a2a.push_config import PushConfig, push_config, push_config_0_3, read_push
from ....protocol.error_codes import OverCapacityError
from ....protocol.tool_call import Principal
from ....store import A2APushDeleted, A2APushRow
from .a2a_caller import A2ACaller
from .a2a_tasks import A2ATasks
from .push_sender import PushRecordPort, PushSender

MAX_PER_TASK: Final = 10
"""Configurations of one task."""
MAX_OF_PRINCIPAL: Final = 1000
"""The maximum number of a principal's configurations that may have notifications to send: those of unfinished tasks,
and those whose last events have not been accepted."""
NO_PUSH: Final = "This agent sends no push notifications; subscribe to the task, or poll it."


class PushOperations:
    """Creates, reads and deletes configurations. Each method raises A2AError if the request is refused, and
    ServiceUnavailableError if the database cannot be read or written.
    """

    def __init__(self, tasks: A2ATasks, records: PushRecordPort, sender: PushSender | None) -> None:
        """``sender``: None if there are no push notifications."""
        self._tasks = tasks
        self._records = records
        self._sender = sender

    async def run(
        self, caller: A2ACaller, action: str, params: Mapping[str, Any], version: A2AVersion
    ) -> dict[str, Any] | list[dict[str, Any]] | None:
        """Performs ``Create``, ``Get``, ``List`` or ``Delete``."""
        if self._sender is None:
            raise A2AError(PUSH_NOT_SUPPORTED, NO_PUSH)
        old = version == "0.3"
        task_id = field_of(params, "id" if old and action != "Create" else "taskId")
        if not isinstance(task_id, str) or not task_id:
            raise invalid_field("taskId", "must be the id of a task")
        view = await self._tasks.get(task_id, caller.agent, caller.principal)
        if action == "Create":
            path = "pushNotificationConfig." if old else ""
            values = params.get("pushNotificationConfig") if old else params
            if not isinstance(values, dict):
                raise invalid_field("pushNotificationConfig", "must be an object")
            config = read_push(values, path)
            await self._sender.check(config)
            await self._check_count(caller.principal)
            created = await self._add(task_id, config, version, after=view.row.last_event)
            return push_config_0_3(created) if old else created
        rows = await self._records.of_task(task_id)
        if action == "List":
            configs = [push_config(task_id, row.id, row.url) for row in rows]
            return [push_config_0_3(config) for config in configs] if old else {"configs": configs, "nextPageToken": ""}
        wanted = field_of(params, "pushNotificationConfigId" if old else "id")
        if action == "Delete":
            if not isinstance(wanted, str):
                raise invalid_field("id", "must be the id of a configuration")
            await self._records.write(A2APushDeleted(task_id, wanted))
            return None if old else {}
        found = next((row for row in rows if wanted is None or row.id == wanted), None)
        if found is None:
            shown = str(wanted)[:100]
            raise A2AError(TASK_NOT_FOUND, f"The task has no push configuration {shown!r}.", metadata={"id": shown})
        config_ = push_config(task_id, found.id, found.url)
        return push_config_0_3(config_) if old else config_

    async def check(self, values: Mapping[str, Any] | None, principal: Principal) -> PushConfig | None:
        """The checked configuration of a message; None if it has none."""
        if values is None:
            return None
        if self._sender is None:
            raise A2AError(PUSH_NOT_SUPPORTED, NO_PUSH)
        config = read_push(values, "configuration.taskPushNotificationConfig.")
        await self._sender.check(config)
        await self._check_count(principal)
        return config

    async def add(self, task_id: str, config: PushConfig, version: A2AVersion) -> None:
        """Adds the configuration of a message, which gets all events of its task. A repeated message adds no
        configuration."""
        if any(row.url == config.url for row in await self._records.of_task(task_id)):
            return
        await self._add(task_id, config, version, after=0)

    async def _check_count(self, principal: Principal) -> None:
        if await self._records.count(principal) >= MAX_OF_PRINCIPAL:
            message = (
                f"You have {MAX_OF_PRINCIPAL:,} push configurations of tasks that have not ended or whose events have "
                "not been accepted; delete some, or wait."
            )
            raise error_of_call(OverCapacityError.content_free(message))

    async def _add(self, task_id: str, config: PushConfig, version: A2AVersion, *, after: int) -> dict[str, Any]:
        assert self._sender is not None  # noqa: S101 - checked by all callers
        rows = await self._records.of_task(task_id)
        config_id = config.id or token_hex(8)
        if len(rows) >= MAX_PER_TASK and all(row.id != config_id for row in rows):
            raise invalid_field("id", f"is one more than the {MAX_PER_TASK} configurations of a task; delete one")
        secrets = self._sender.secrets.sealed(config.headers, f"{task_id}/{config_id}")
        await self._records.write(A2APushRow(task_id, config_id, config.url, version, secrets, after))
        self._sender.wake()
        return push_config(task_id, config_id, config.url)
