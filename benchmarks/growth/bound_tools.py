"""The cost of bound arguments at the start and at a reload, by the number of tools that have them.

As in an installation where many small APIs of one vendor need the same account id, the tools come from sources of
``_TOOLS_PER_SOURCE`` tools each, and one binding applies to all.
"""

import json
import re
import signal
import tempfile
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from ..servers import Server, daemon
from .curves import Curve
from .tools import api_document, connected, source_table, wait_for_tools

_TOOLS_PER_SOURCE: Final = 15
_BUCKET: Final = re.compile(r'^toold_loop_lag_seconds_bucket\{le="([^"]+)"\} (\d+)', re.MULTILINE)


def bound_tools(numbers: Sequence[int], say: Callable[[str], None]) -> list[Curve]:
    """The server's CPU time and its longest turn of the event loop, with and without a bound argument."""
    starting, ratios, reloading, turns = [], [], [], []
    for number in numbers:
        say(f"{number:,} bound tools")
        with tempfile.TemporaryDirectory(prefix="toold-bench-") as temporary:
            directory = Path(temporary)
            value = directory / "location"
            value.write_text("first", encoding="utf-8")
            sources = _write_sources(directory, number)
            with daemon(config=sources) as server:
                unbound_s = _started_s(server, number)
            with daemon(config=f'{sources}[bind."*"]\nlocationId = {{file = {json.dumps(str(value))}}}\n') as server:
                bound_s = _started_s(server, number)
                value.write_text("second", encoding="utf-8")
                server.process.send_signal(signal.SIGHUP)
                server.settle()
                reloading.append((number, (server.cpu_s() - bound_s) * 1000))
                turns.append((number, _longest_turn_ms(server)))
        starting.append((number, bound_s * 1000))
        ratios.append((number, bound_s / unbound_s))
    return [
        Curve("start, bound", "bound tools", "CPU ms until all are listed", 1, starting),
        Curve("start, bound to unbound", "bound tools", "times the CPU time", 0, ratios),
        Curve("reload, bound", "bound tools", "CPU ms", 1, reloading),
        Curve("longest turn, bound", "bound tools", "ms at most, at start and reload", 0, turns),
    ]


def _started_s(server: Server, number: int) -> float:
    """The CPU seconds of the server until all tools are listed."""
    with connected(server.port) as socket:
        wait_for_tools(socket, number)
    server.settle()
    return server.cpu_s()


def _longest_turn_ms(server: Server) -> float:
    """The upper end of the highest bucket of ``toold_loop_lag_seconds`` that is not empty."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/metrics", timeout=10) as answer:
        buckets = [(float(limit), int(count)) for limit, count in _BUCKET.findall(answer.read().decode())]
    return next(limit for limit, count in buckets if count == buckets[-1][1]) * 1000


def _write_sources(directory: Path, number: int) -> str:
    """Write the documents of sources with ``number`` tools in total; returns their configuration."""
    lines = [
        'default_toolset = "bench"\nlist_init = false\n[toolsets.bench]\ninclude = ["crm*"]',
    ]
    for first in range(0, number, _TOOLS_PER_SOURCE):
        path = directory / f"crm{first}.json"
        document = api_document(min(_TOOLS_PER_SOURCE, number - first), _operation)
        path.write_text(json.dumps(document), encoding="utf-8")
        lines.append(source_table(f"crm{first}", path))
    return "\n".join(lines)


def _operation(number: int) -> dict[str, Any]:
    text = {"type": "string", "description": "A text of the record."}
    fields = {"locationId": text, "name": text, "tags": {"type": "array", "items": text}, "amount": {"type": "number"}}
    body = {"type": "object", "properties": fields, "required": ["locationId", "name"]}
    return {
        "operationId": f"update_record{number}",
        "summary": "Update a record of the location.",
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {"200": {"description": "The record."}},
    }
