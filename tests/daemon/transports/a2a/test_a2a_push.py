"""Push notifications of A2A, to a receiver of the test."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.tools.agents.hosted import script
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.config.settings import Settings
from toold.daemon.transports.a2a import push_operations
from toold.providers.simulator import Simulator

from .conftest import SETTINGS, environment, message, served

SECRET = "credentials-of-the-receiver"


class Receiver:
    """An HTTP server that answers with ``statuses`` in turn, then with 204."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.received: asyncio.Queue[tuple[int, dict[str, str], dict[str, Any]]] = asyncio.Queue()
        """The status that it sent, the headers and the body."""
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:] if line)
        }
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        status = self.statuses.pop(0) if self.statuses else 204
        writer.write(f"HTTP/1.1 {status} S\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()
        await self.received.put((status, headers, body))

    async def until_ended(self) -> list[tuple[int, dict[str, str], dict[str, Any]]]:
        """All notifications up to the accepted one of the end."""
        found = [await self.received.get()]
        while found[-1][0] != 204 or "COMPLETED" not in json.dumps(found[-1][2]).upper():
            found.append(await self.received.get())
        return found


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    async with server:
        yield receiver


@pytest_asyncio.fixture
async def settings(tmp_path: Path) -> AsyncIterator[Settings]:
    (tmp_path / "toold.toml").write_text(SETTINGS)
    async with Simulator() as simulator:
        env = environment(tmp_path, simulator) | {"TOOLD_A2A_PUSH_HOSTS": "127.0.0.1,*.example,local*"}
        yield load_settings({}, env=env, cwd=tmp_path)


def config(receiver: Receiver) -> dict[str, Any]:
    return {"url": receiver.url, "token": "of-task", "authentication": {"scheme": "Bearer", "credentials": SECRET}}


async def test_events_are_sent_until_they_are_accepted(settings: Settings, receiver: Receiver, tmp_path: Path) -> None:
    """A receiver gets all events in order with its credentials, again after failures and a restart; the database does
    not have the credentials.
    """
    receiver.statuses = [503] * 2
    async with served(settings) as (_, client):
        configuration = {"taskPushNotificationConfig": config(receiver)}
        params = {"message": message(script("sent"), "p-1"), "configuration": configuration}
        task = (await client.rpc("helper", "SendMessage", params))["result"]["task"]
        first = await receiver.received.get()
    assert not any(SECRET.encode() in path.read_bytes() for path in (tmp_path / "state").glob("*.db*"))
    async with served(settings):
        rest = await receiver.until_ended()
    notifications = [first, *rest]
    assert all(headers["authorization"] == f"Bearer {SECRET}" for _, headers, _ in notifications)
    assert all(headers["x-a2a-notification-token"] == "of-task" for _, headers, _ in notifications)
    accepted = [body for status, _, body in notifications if status == 204]
    assert accepted[0]["artifactUpdate"]["artifact"]["parts"][0]["text"] == "sent"
    assert accepted[-1]["statusUpdate"]["taskId"] == task["id"]
    assert len(accepted) == 2
    assert sum(status == 503 for status, _, _ in notifications) == 2


async def test_configurations_of_both_versions(settings: Settings, receiver: Receiver) -> None:
    """They are created, read, listed and deleted, without their secrets; in 0.3, the task is sent."""
    async with served(settings) as (_, client):
        working = await client.ask("helper", message("[[sim:delay=30]]", "p-2"), at_once=True)
        values = {"taskId": working["id"], "id": "mine", **config(receiver)}
        plain = {"taskId": working["id"], "id": "mine", "url": receiver.url}

        async def push(action: str, params: Any, version: str = "1.0") -> Any:
            return (await client.rpc("helper", action, params, version))["result"]

        assert await push("CreateTaskPushNotificationConfig", values) == plain
        chosen = {"taskId": working["id"], "id": "mine"}
        assert await push("GetTaskPushNotificationConfig", chosen) == plain
        assert (await push("ListTaskPushNotificationConfigs", {"taskId": working["id"]}))["configs"] == [plain]
        await push("DeleteTaskPushNotificationConfig", chosen)
        await push("DeleteTaskPushNotificationConfig", chosen)
        path = f"/agents/helper/tasks/{working['id']}/pushNotificationConfigs"
        headers = {"authorization": f"Bearer {client.token}", "A2A-Version": "1.0"}
        assert (await client.http.post(path, json=config(receiver), headers=headers)).json()["url"] == receiver.url
        (left,) = (await client.http.get(path, headers=headers)).json()["configs"]
        assert (await client.http.delete(f"{path}/{left['id']}", headers=headers)).status_code == 200
        await push("CreateTaskPushNotificationConfig", values)
        named = {"id": working["id"], "pushNotificationConfigId": "mine"}
        assert await push("tasks/pushNotificationConfig/delete", named, "0.3") is None
        assert await push("tasks/pushNotificationConfig/list", {"id": working["id"]}, "0.3") == []
        sent = {"messageId": "p-3", "role": "user", "parts": [{"kind": "text", "text": script("old")}]}
        params = {"message": sent, "configuration": {"pushNotificationConfig": config(receiver)}}
        await push("message/send", params, "0.3")
        (ended,) = await receiver.until_ended()
        assert (ended[2]["kind"], ended[2]["status"]["state"]) == ("task", "completed")
        await client.rpc("helper", "CancelTask", {"id": working["id"]})


BAD: list[tuple[dict[str, Any], str]] = [
    ({"url": "http://127.0.0.2/"}, "not allowed"),
    ({"url": "https://localhost/"}, "a2a_push_hosts with its name can allow it"),
    ({"url": "http://hook.example/"}, "https://"),
    ({"url": "ftp://127.0.0.1/"}, "https://"),
    ({"url": "http://user:word@127.0.0.1/"}, "password"),
    ({"url": 7}, "url"),
    ({"url": " http://127.0.0.1/"}, "blanks"),
    ({"url": "https://[v1.a.example]/"}, "valid host"),
    ({"url": "https://evil.com[v1.a.example]/"}, "valid host"),
    ({"url": "https://hook%2e.example/"}, "valid host"),
    ({"url": "https://hook.example:99999/"}, "https://"),
    ({"url": "//127.0.0.1/"}, "https://"),
    ({"url": "http://127.0.0.1/", "token": "a\r\nb"}, "token"),
    ({"url": "http://127.0.0.1/", "authentication": {"scheme": "two words"}}, "scheme"),
]


async def test_addresses_that_must_not_be_notified(settings: Settings) -> None:
    """Each is refused before the message is taken, with the reason."""
    async with served(settings) as (_, client):
        for number, (values, words) in enumerate(BAD):
            params = {"message": message("x", f"b-{number}"), "configuration": {"taskPushNotificationConfig": values}}
            error = (await client.rpc("helper", "SendMessage", params))["error"]
            assert (error["code"], words in error["message"]) == (-32602, True), error
        assert (await client.rpc("helper", "ListTasks", {}))["result"]["tasks"] == []


async def test_a_principal_has_a_limited_number_of_configurations(
    settings: Settings, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond it, a message with a configuration is refused before it is taken; a deleted one counts no more."""
    monkeypatch.setattr(push_operations, "MAX_OF_PRINCIPAL", 1)
    async with served(settings) as (_, client):
        params = {
            "message": message("[[sim:delay=30]]", "c-1"),
            "configuration": {"taskPushNotificationConfig": config(receiver), "returnImmediately": True},
        }
        task = (await client.rpc("helper", "SendMessage", params))["result"]["task"]
        error = (await client.rpc("helper", "SendMessage", params | {"message": message("x", "c-2")}))["error"]
        assert (error["code"], error["data"][0]["reason"]) == (-32000, "OVER_CAPACITY")
        assert [row["id"] for row in (await client.rpc("helper", "ListTasks", {}))["result"]["tasks"]] == [task["id"]]
        create = ("CreateTaskPushNotificationConfig", {"taskId": task["id"], **config(receiver)})
        assert (await client.rpc("helper", *create))["error"]["data"][0]["reason"] == "OVER_CAPACITY"
        listed = (await client.rpc("helper", "ListTaskPushNotificationConfigs", {"taskId": task["id"]}))["result"]
        chosen = {"taskId": task["id"], "id": listed["configs"][0]["id"]}
        await client.rpc("helper", "DeleteTaskPushNotificationConfig", chosen)
        assert (await client.rpc("helper", *create))["result"]["url"] == receiver.url
        await client.rpc("helper", "CancelTask", {"id": task["id"]})
