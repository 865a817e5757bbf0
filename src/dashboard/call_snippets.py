"""A call as a command, as Python, and as requests to the HTTP port: texts to copy. Pure."""

import json
import re
import shlex
from collections.abc import Mapping
from pprint import pformat
from typing import Any, Final
from urllib.parse import quote

MAX_CHARS: Final = 20_000
"""The maximum length of a shown text. Command lines do not accept longer ones."""
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def call_snippets(tool: str, arguments: Mapping[str, Any], address: str) -> list[tuple[str, str]]:
    """Returns the title and the text of each form. ``address`` is the HTTP port's address in the browser."""
    snippets = [
        ("Command line", _command(tool, arguments)),
        ("Python", _python(tool, arguments)),
        ("JSON-RPC", _json_rpc(tool, arguments, address)),
        ("REST", _rest(tool, arguments, address)),
    ]
    return [(title, text if len(text) <= MAX_CHARS else _TOO_LONG) for title, text in snippets]


_TOO_LONG: Final = "These arguments are too long to be shown."


def _command(tool: str, arguments: Mapping[str, Any]) -> str:
    words = [_word(key, value) for key, value in arguments.items()]
    lines = shlex.join(["toold", "call", tool])
    return " ".join([lines, *words]) if len(" ".join(words)) < 80 else " \\\n    ".join([lines, *words])


def _word(key: str, value: Any) -> str:
    plain = isinstance(value, str) and not value.startswith("@") and _PLAIN_KEY.fullmatch(key)
    return shlex.quote(f"{key}={value}" if plain else f"{key}:={_compact(value)}")


def _python(tool: str, arguments: Mapping[str, Any]) -> str:
    shown = pformat(dict(arguments), width=88, sort_dicts=False).replace("\n", "\n        ")
    return (
        "import asyncio\n\nfrom toold.client import MCPWebSocketClient\n\n\nasync def main() -> None:\n"
        "    async with MCPWebSocketClient() as client:\n"
        f"        arguments = {shown}\n"
        f"        success, outputs, error = await client.call_tool({tool!r}, arguments)\n"
        "        print(outputs if success else error)\n\n\nasyncio.run(main())\n"
    )


def _json_rpc(tool: str, arguments: Mapping[str, Any], address: str) -> str:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return _curl(f"{address}/mcp", json.dumps(request, ensure_ascii=False, indent=2))


def _rest(tool: str, arguments: Mapping[str, Any], address: str) -> str:
    return _curl(f"{address}/tools/{quote(tool, safe='')}", json.dumps(arguments, ensure_ascii=False))


def _curl(url: str, body: str) -> str:
    return (
        f'curl {shlex.quote(url)} \\\n    -H "Authorization: Bearer $(toold token)" \\\n'
        f"    -H 'Content-Type: application/json' \\\n    -d {shlex.quote(body)}"
    )


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
