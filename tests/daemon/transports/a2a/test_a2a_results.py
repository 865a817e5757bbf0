"""Retained results that answers name, as files of A2A."""

import base64
import re

import pytest
from tests.tools.agents.hosted import calls, script
from toold.daemon.transports.a2a import result_parts
from toold.protocol.tool_call import LOCAL

from .conftest import A2APort, message

pytestmark = pytest.mark.asyncio(loop_scope="module")

CSV = b"n\r\n1\r\n2\r\n"
TO_FILE = {"return_mode": "file", "format": "csv"}
HANDLE = "0123456789ab-7"


async def test_a_short_result_that_an_answer_names_is_a_file(port: A2APort) -> None:
    """The artifact has the text and the file that the agent's tool wrote; a repeat of the task has it again."""
    wanted = {"tool_name": "echo", "args": {"value": [{"n": 1}, {"n": 2}]}, "options": TO_FILE}
    await port.client.ask("filer", message(script(calls(("execute_tool", wanted)), "written"), "h-1"))
    (handle,) = re.findall(r'"handle": ?"([^"]+)"', str(port.simulator.log[-1].body["messages"]).replace("\\\\", ""))
    task = await port.client.ask("filer", message(script(f"It is in {handle}."), "h-2"))
    said, file = task["artifacts"][0]["parts"]
    assert said["text"] == f"It is in {handle}."
    assert (base64.b64decode(file["raw"]), file["mediaType"]) == (CSV, "text/csv")
    assert file["filename"].endswith(".csv")
    again = await port.client.rpc("filer", "GetTask", {"id": task["id"]})
    assert again["result"]["artifacts"] == task["artifacts"]


async def test_a_long_result_is_a_link(port: A2APort, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the URL of this port if that is known; its principal alone reads it there, in pieces."""
    monkeypatch.setattr(result_parts, "MAX_INLINE_BYTES", 1000)
    monkeypatch.setattr(result_parts, "PIECE_BYTES", 1000)
    value = "x" * 5000
    await port.daemon.results.keep(LOCAL, HANDLE, value, None, "json")
    text = script(f"See {HANDLE}, not 0123456789ab-8.")
    assert len((await port.client.ask("filer", message(text, "h-3a")))["artifacts"][0]["parts"]) == 1
    monkeypatch.setattr(port.daemon.http_host.a2a.results, "url", lambda: "https://a.example/")
    _, file = (await port.client.ask("filer", message(text, "h-3")))["artifacts"][0]["parts"]
    url = f"https://a.example/agents/filer/results/{HANDLE}"
    assert file == {"url": url, "mediaType": "application/json", "filename": f"{HANDLE}.json"}
    path = url.removeprefix("https://a.example")
    answer = await port.client.get(path)
    assert (answer.json(), answer.headers["content-type"]) == (value, "application/json")
    assert "attachment" in answer.headers["content-disposition"]
    theirs = await port.guest.get(f"/agents/helper/results/{HANDLE}")
    assert (theirs.status_code, theirs.json()["error"]["status"]) == (404, "NOT_FOUND")
    assert (await port.client.http.get(path)).status_code == 401
