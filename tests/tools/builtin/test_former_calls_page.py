"""The tables of docs/migrating.md about EX-AI-MCP-Server and PAL: each row runs on a daemon, in both forms."""

import json
import re
from pathlib import Path
from typing import Any

from toold.client import MCPWebSocketClient
from toold.protocol.error_codes import CallError

PAGE = (Path(__file__).parents[3] / "docs/migrating.md").read_text(encoding="utf-8")
HEADER = "| before | what happens | write |"
CALL = re.compile(r"([A-Za-z0-9_-]+) (\{.*\})")


def rows() -> list[list[str]]:
    """The cells of the rows of all tables of calls."""
    tables = [table for table in re.split(r"\n\n+", PAGE) if table.startswith(HEADER)]
    lines = [line for table in tables for line in table.splitlines()[2:]]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]


def calls(cell: str) -> list[str]:
    """The calls in backticks."""
    return [code for code in re.findall(r"`([^`]+)`", cell) if CALL.fullmatch(code)]


async def test_each_call_does_what_the_page_says(serve: Any, workspace: Path) -> None:
    """An old call works, with the notice or the text that the page quotes, or fails with its error. What to write
    instead works without a notice.
    """
    (workspace / "app.py").write_text("print(1)\n")
    (workspace / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    old: MCPWebSocketClient = (await serve(workspace)).client
    (uploaded,) = (await old.call("kimi_upload_files", {"files": ["app.py"]})).structured["files"]

    async def run(client: MCPWebSocketClient, call: str) -> tuple[str, list[str], CallError | None]:
        """The text, the notices and the error of a call."""
        call = call.replace("FILE_ID", uploaded["file_id"]).replace("WORKSPACE", str(workspace))
        match = CALL.fullmatch(call)
        assert match is not None
        try:
            result = await client.call(match[1], json.loads(match[2]), timeout=600)
        except CallError as error:
            return "", [], error
        return result.text, list(result.metadata.argument_notices), None

    checked = rows()
    assert len(checked) > 30
    # Sessions that never sent a former name get no notices about changed defaults.
    async with MCPWebSocketClient(old.url, token="a-token-for-the-tests") as new:
        for before, happens, write in checked:
            (call,) = calls(before)
            text, notices, error = await run(old, call)
            if happens.startswith("works"):
                assert error is None, (call, error)
                _, _, notice = happens.partition("; the notice: ")
                assert not notice or any(notice in sentence for sentence in notices), (call, notices)
                _, _, answer = happens.partition("; the answer: ")
                assert answer in text, (call, text)
            else:
                code, _, words = happens.strip("`").partition("`: ")
                assert error is not None, call
                assert (error.code, words in error.message) == (code, True), (call, error.message)
            assert write == "the same" or calls(write), write
            for call in calls(write):
                text, notices, error = await run(new, call)
                assert (error, notices) == (None, []), call
