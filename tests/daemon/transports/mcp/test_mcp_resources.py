"""Resources, prompts, completions and log messages over HTTP, of a source and of the daemon, with the SDK's client."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import mcp_types
import pytest
import pytest_asyncio
from mcp import Client, MCPError
from tests.cli.bridge.conftest import channel
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.cli.bridge import DaemonStarter, StdioBridge
from toold.client import MCPWebSocketClient
from toold.daemon.access import change_tokens
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.protocol.mcp.request_envelope import CAPABILITIES_KEY, VERSION_KEY
from toold.protocol.tool_call import LOCAL
from toold.providers.simulator import Simulator

from .content_gateway import Gateway, served, upstream

BOTH_WAYS = pytest.mark.parametrize("mode", ["auto", "legacy"])
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),  # of earlier revisions
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    directory = tmp_path_factory.mktemp("gateway")
    (directory / "state").mkdir(mode=0o700)
    (directory / "work").mkdir()
    (directory / "work" / "notes.txt").write_text("to do")
    (directory / "work" / ".env").write_text("KEY=secret")
    guest = ""

    def add(book: Any) -> Any:
        nonlocal guest
        book, guest = book.with_new("guest", time.time(), toolsets=("small",))
        return book

    change_tokens(directory / "state", add)
    async with Simulator() as simulator, served(upstream("one")) as first, served(upstream("two")) as second:
        sources = "".join(
            f'[sources.{name}]\ntype = "mcp"\nurl = "{url}"\nallow_private = true\n'
            for name, url in (("one", first), ("two", second))
        )
        (directory / "toold.toml").write_text(f'{sources}[toolsets.small]\ninclude = ["echo", "smart_file_query"]\n')
        env = simulated_environment(directory / "state", simulator, TOOLD_WORKSPACE=str(directory / "work"))
        async with running(load_settings({}, env=env, cwd=directory)) as daemon:
            async with asyncio.timeout(60):
                while len(daemon.sources.offering) < 2 or not all(
                    source.latest.resources for source in daemon.sources.offering.values()
                ):
                    await asyncio.sleep(0.01)
            yield Gateway(daemon, guest, directory / "work")


async def until(done: Callable[[], object]) -> None:
    """Waits for an event."""
    async with asyncio.timeout(30):
        while not done():
            await asyncio.sleep(0.01)


@BOTH_WAYS
async def test_resources_of_sources(gateway: Gateway, mode: str) -> None:
    """URIs pass unchanged; those that two sources list have a form with the source's name for the second."""
    async with gateway.client(mode) as client:
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        assert listed[:2] == ["test://text", "test://image"]
        assert "toold://source/two/test://text" in listed
        templates = [entry.uri_template for entry in (await client.list_resource_templates()).resource_templates]
        assert {"test://item/{id}", "toold://source/two/test://item/{id}", "file://{+path}"} <= set(templates)
        contents = (await client.read_resource("test://text")).contents
        assert [(part.uri, part.text) for part in contents] == [("test://text", "plain")]  # type: ignore[union-attr]
        other = (await client.read_resource("toold://source/two/test://item/7")).contents[0]
        assert (other.uri, other.text) == ("toold://source/two/test://item/7", "item 7")  # type: ignore[union-attr]
        assert (await client.read_resource("test://image")).contents[0].blob == "iVBORw=="  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="no resource") as missing:
            await client.read_resource("test://missing")
        assert missing.value.error.code == (-32602 if mode == "auto" else -32002)
        assert missing.value.error.data["uri"] == "test://missing"


@BOTH_WAYS
async def test_prompts_of_sources(gateway: Gateway, mode: str) -> None:
    """They are listed next to those of workflow tools, and got with their arguments."""
    async with gateway.client(mode) as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert {"greeting", "codereview"} <= set(prompts)
        (prefixed,) = set(prompts) & {"one_greeting", "two_greeting"}  # of the source that connected later
        got = await client.get_prompt(prefixed, {"name": "Ada"})
        assert got.messages[0].content.text == "Greet Ada."  # type: ignore[union-attr]
        own = await client.get_prompt("codereview", {"step": "Review it.", "relevant_files": "a.py, b.py"})
        text = own.messages[0].content.text  # type: ignore[union-attr]
        assert '"relevant_files": [' in text
        assert "`codereview`" in text
        with pytest.raises(MCPError, match="did you mean"):
            await client.get_prompt("greting", {})
        with pytest.raises(MCPError, match="lacks step"):
            await client.get_prompt("codereview", {})


async def glad(_: Any, params: Any) -> mcp_types.ElicitResult:
    assert params.message == "one asks: How?"
    return mcp_types.ElicitResult(action="accept", content={"mood": "glad"})


@BOTH_WAYS
async def test_questions_of_prompts_and_resources(gateway: Gateway, mode: str) -> None:
    """What a server asks before it answers reaches the client, and the answer the server, as for calls of tools."""
    async with gateway.client(mode, elicitation_callback=glad) as client:
        got = await client.get_prompt("asking_one", {})
        assert got.messages[0].content.text == "Be glad."  # type: ignore[union-attr]
        read = await client.read_resource("asking://one/7")
        assert read.contents[0].text == "7: Be glad."  # type: ignore[union-attr]


@BOTH_WAYS
async def test_a_prompt_that_asks_a_client_without_the_capability(gateway: Gateway, mode: str) -> None:
    """The error says what the client has not declared; 2026-07-28 has a code for it."""
    async with gateway.client(mode) as client:
        with pytest.raises(MCPError, match="has not declared that it can show a form") as missing:
            await client.get_prompt("asking_one", {})
        assert missing.value.error.code == (-32021 if mode == "auto" else -32603)
        if mode == "auto":
            assert missing.value.error.data["requiredCapabilities"] == {"elicitation": {"form": {}}}


@BOTH_WAYS
async def test_completions(gateway: Gateway, mode: str) -> None:
    """A source completes its own arguments; the daemon completes tools, models and paths."""
    of_prompt, of_template = mcp_types.PromptReference, mcp_types.ResourceTemplateReference

    async def values(client: Client, ref: Any, name: str, value: str) -> list[str]:
        return (await client.complete(ref, {"name": name, "value": value})).completion.values

    async with gateway.client(mode) as client:
        assert await values(client, of_prompt(name="greeting"), "name", "A") == ["Ada"]
        assert await values(client, of_template(uri="test://item/{id}"), "id", "B") == ["Bda"]
        assert "glm-4.7-flash" in await values(client, of_prompt(name="codereview"), "model", "glm-4.7")
        assert "echo" in await values(client, of_template(uri="toold://tool/{name}"), "name", "ec")
        path = f"{gateway.workspace}/no"
        assert await values(client, of_template(uri="file://{+path}"), "path", path) == [f"{path}tes.txt"]


async def test_own_resources(gateway: Gateway) -> None:
    """Directories and files of the workspace, tools, models and conversations are read; secrets are not."""
    async with gateway.client() as client:

        async def text(uri: str) -> str:
            content: Any = (await client.read_resource(uri)).contents[0]
            return str(content.text)

        root = gateway.workspace.as_uri()
        assert root in [resource.uri for resource in (await client.list_resources()).resources]
        assert await text(root) == "notes.txt"
        assert await text(f"{root}/notes.txt") == "to do"
        with pytest.raises(MCPError, match="looks like a secret"):
            await text(f"{root}/.env")
        with pytest.raises(MCPError, match="outside the directories"):
            await text("file:///etc/passwd")
        with pytest.raises(MCPError, match="special characters as %XX"):
            await text(f"{root}/%ff")
        assert json.loads(await text("toold://tool/echo"))["name"] == "echo"
        assert json.loads(await text("toold://model/glm-4.7-flash"))["id"] == "glm-4.7-flash"
        answer = await client.call_tool("chat", {"prompt": "Remember seven."})
        assert answer.structured_content is not None
        conversation = f"toold://conversation/{answer.structured_content['continuation_id']}"
        assert conversation in [resource.uri for resource in (await client.list_resources()).resources]
        assert "Remember seven." in await text(conversation)
    async with gateway.client(token=gateway.guest) as guest:
        with pytest.raises(MCPError, match="does not exist"):
            await guest.read_resource(conversation)


async def test_toolset_rules(gateway: Gateway) -> None:
    """A caller whose toolset has no tool of a source sees nothing of it."""
    async with gateway.client(token=gateway.guest) as guest:
        assert [resource.uri for resource in (await guest.list_resources()).resources] == [gateway.workspace.as_uri()]
        assert (await guest.list_prompts()).prompts == []
        with pytest.raises(MCPError, match="no resource"):
            await guest.read_resource("test://text")
        with pytest.raises(MCPError, match="no resource"):
            await guest.read_resource("toold://source/one/test://text")


async def test_calls_are_audited(gateway: Gateway) -> None:
    """Reading a resource leaves an audit row with the method as its tool; listing leaves none."""
    view = gateway.daemon.view
    async with gateway.client() as client:
        before = len(await view.ended(LOCAL, 100))
        await client.list_resources()
        await client.read_resource("test://item/audited")
        async with asyncio.timeout(30):
            while len(await view.ended(LOCAL, 100)) == before:
                await asyncio.sleep(0.01)
        assert [row["tool"] for row in await view.ended(LOCAL, 100)][: -before or None] == ["resources/read"]


async def test_updates_over_a_get_stream(gateway: Gateway) -> None:
    """A 2025 client that has subscribed gets an update by its GET stream, until it unsubscribes."""
    received: list[Any] = []

    async def on_message(message: Any) -> None:
        received.append(message)

    async with gateway.client("legacy", message_handler=on_message) as client:
        await client.subscribe_resource("test://text")
        gateway.daemon.resources.resource_updated("one", "test://text")
        gateway.daemon.resources.resource_updated("two", "test://text")
        await until(lambda: received)
        assert [message.params.uri for message in received] == ["test://text"]
        await client.unsubscribe_resource("test://text")
        gateway.daemon.resources.resource_updated("one", "test://text")
        gateway.daemon.resources.content_changed("one")
        await until(lambda: len(received) >= 3)
        assert [message.method for message in received[1:]] == [
            "notifications/resources/list_changed",
            "notifications/prompts/list_changed",
        ]


async def test_updates_of_an_upstream(gateway: Gateway) -> None:
    """An update that the server announces reaches a 2026 client that listens."""
    async with gateway.client() as client, client.listen(resource_subscriptions=["test://text"]) as subscription:
        assert subscription.honored.resource_subscriptions == ["test://text"]
        async with asyncio.timeout(30):
            heard = asyncio.Event()
            touching = asyncio.create_task(_touch(client, heard))
            event: Any = await anext(aiter(subscription))
            heard.set()
            await touching
        assert event.uri == "test://text"


async def _touch(client: Client, heard: asyncio.Event) -> None:
    while not heard.is_set():  # the daemon's own subscription may not have begun
        await client.call_tool("touch_one", {})
        await asyncio.sleep(0.05)


async def test_log_messages(gateway: Gateway) -> None:
    """A client that has set a level gets the messages of sources at that level and above, at a bounded rate."""
    received: list[Any] = []

    async def on_log(params: Any) -> None:
        received.append(params)

    async with gateway.client("legacy", logging_callback=on_log) as client:
        await client.set_logging_level("warning")
        for level in ("info", "warning"):
            gateway.daemon.resources.logged("one", level, "db", {"slow": True})
        await until(lambda: received)
        assert [(message.level, message.logger, message.data) for message in received] == [
            ("warning", "one/db", {"slow": True})
        ]


async def test_methods_over_websocket(gateway: Gateway) -> None:
    """A WebSocket client calls the same methods as tools, and gets notifications of what it follows."""
    received: list[tuple[str, Any]] = []
    async with MCPWebSocketClient(
        "127.0.0.1",
        gateway.daemon.websocket.port,
        TOKEN,
        on_notification=lambda method, params: received.append((method, params)),
    ) as client:
        listed: Any = (await client.answer("resources/list")).structured
        assert "test://text" in [entry["uri"] for entry in listed["resources"]]
        read = await client.answer("resources/read", {"uri": "test://text"})
        assert read.structured == {"contents": [{"uri": "test://text", "mimeType": "text/plain", "text": "plain"}]}
        assert (await client.answer("resources/subscribe", {"uri": "test://text"})).error is None
        gateway.daemon.resources.resource_updated("one", "test://text")
        await until(lambda: received)
        assert received == [("notifications/resources/updated", {"uri": "test://text"})]
        missing = await client.answer("prompts/get", {"name": "nothing"})
        assert missing.error is not None
        assert missing.error.code == "VALIDATION_ERROR"
        unknown = await client.answer("resources/erase", {})
        assert unknown.error is not None
        assert unknown.error.code == "TOOL_NOT_FOUND"


async def test_methods_over_stdio(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor gets the same by ``toold mcp``, in both forms of the protocol, with notifications."""
    monkeypatch.setenv("TOOLD_PORT", str(gateway.daemon.websocket.port))
    monkeypatch.setenv("TOOLD_TOKEN", TOKEN)
    async with channel() as (lines, editor, close):
        bridge = StdioBridge(lines, DaemonStarter(os.environ), toolset=None, directory=None)
        serving = asyncio.create_task(bridge.serve())
        capabilities = (await editor.initialize())["capabilities"]
        assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
        listed = (await editor.ask("resources/list"))["result"]["resources"]
        assert listed[0]["uri"] == "test://text"
        read = await editor.ask("resources/read", uri="test://text")
        assert read["result"]["contents"][0]["text"] == "plain"
        missing = await editor.ask("resources/read", uri="test://missing")
        assert (missing["error"]["code"], missing["error"]["data"]["uri"]) == (-32002, "test://missing")
        assert (await editor.ask("resources/subscribe", uri="test://text"))["result"] == {}
        gateway.daemon.resources.resource_updated("one", "test://text")
        assert (await editor.receive())["params"] == {"uri": "test://text"}
        meta = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}
        prompt = await editor.ask("prompts/get", name="greeting", arguments={"name": "Ada"}, _meta=meta)
        assert prompt["result"]["messages"][0]["content"]["text"] == "Greet Ada."
        assert prompt["result"]["resultType"] == "complete"
        close()
        await serving
        await bridge.close()


async def test_questions_of_prompts_over_stdio(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor is asked by requests before 2026-07-28, and in rounds since."""
    monkeypatch.setenv("TOOLD_PORT", str(gateway.daemon.websocket.port))
    monkeypatch.setenv("TOOLD_TOKEN", TOKEN)
    answer = {"action": "accept", "content": {"mood": "calm"}}
    async with channel() as (lines, editor, close):
        bridge = StdioBridge(lines, DaemonStarter(os.environ), toolset=None, directory=None)
        serving = asyncio.create_task(bridge.serve())
        await editor.initialize(elicitation={})
        editor.begin(1, "prompts/get", name="asking_one")
        asked = await editor.receive()
        assert (asked["method"], asked["params"]["message"]) == ("elicitation/create", "one asks: How?")
        editor.send_raw(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).encode() + b"\n")
        assert (await editor.receive())["result"]["messages"][0]["content"]["text"] == "Be calm."
        repeated = {"name": "asking_one", "_meta": {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {"elicitation": {}}}}
        first = (await editor.ask("prompts/get", **repeated))["result"]
        assert first["resultType"] == "input_required"
        (name,) = first["inputRequests"]
        brought = {"requestState": first["requestState"], "inputResponses": {name: answer}}
        last = (await editor.ask("prompts/get", **repeated, **brought))["result"]
        assert (last["resultType"], last["messages"][0]["content"]["text"]) == ("complete", "Be calm.")
        meta = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}
        missing = (await editor.ask("prompts/get", name="asking_one", _meta=meta))["error"]
        assert (missing["code"], missing["data"]["requiredCapabilities"]) == (-32021, {"elicitation": {"form": {}}})
        close()
        await serving
        await bridge.close()
