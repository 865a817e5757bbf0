"""A server whose tool ``probe`` tries what a container must not allow. It needs the standard library only."""

import json
import os
import sys
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")


def _attempt(path: str) -> str:
    """The result of writing a file."""
    try:
        Path(path).write_text("x")
    except OSError as error:
        return type(error).__name__
    return "written"


def _status(name: str) -> str:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return line.partition(":")[2].strip()


def _filled(mib: int) -> int:
    """The status of a process that fills this much memory."""
    child = os.fork()
    if child == 0:
        kept = [bytearray(b"x" * 1024**2) for _ in range(mib)]
        os._exit(len(kept) != mib)
    return os.waitpid(child, 0)[1]


def _forked(most: int) -> int:
    """How many processes can be started at the same time."""
    reading, writing = os.pipe()
    children = []
    try:
        for _ in range(most):
            child = os.fork()
            if child == 0:
                os.close(writing)
                os.read(reading, 1)  # until the parent has started all
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    os.close(writing)
    for child in children:
        os.waitpid(child, 0)
    os.close(reading)
    return len(children)


def probe() -> dict[str, Any]:
    return {
        "routes": len(Path("/proc/net/route").read_text().splitlines()) - 1,
        "root": _attempt("/written"),
        "tmp": _attempt("/tmp/written"),
        "data": _attempt("/data/written"),
        "shared": _attempt("/shared/written"),
        "capabilities": int(_status("CapEff"), 16),
        "no_new_privileges": _status("NoNewPrivs"),
        "filled": _filled(200),
        "forked": _forked(100),
        "key": os.environ.get("API_KEY"),
        "daemon": os.environ.get("GLM_API_KEY"),
    }


_TOOL = {"name": "probe", "inputSchema": {"type": "object", "properties": {}}}
_ANSWERS: dict[str, Any] = {
    "initialize": lambda: {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "probing", "version": "1"},
    },
    "tools/list": lambda: {"tools": [_TOOL]},
    "tools/call": lambda: {"content": [], "structuredContent": probe()},
}


def main() -> None:
    """Answers requests until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = _ANSWERS.get(message["method"])
        outcome = {"error": {"code": -32601, "message": "no"}} if answer is None else {"result": answer()}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
