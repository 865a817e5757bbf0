"""The state of an exchange with an upstream server, without the MCP SDK."""

import subprocess
import sys

import mcp_types
import pytest
from toold.sources.mcp import upstream_exchange

SDK_CODES = [
    "CONNECTION_CLOSED",
    "HEADER_MISMATCH",
    "INVALID_PARAMS",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "REQUEST_TIMEOUT",
]


@pytest.mark.parametrize("name", SDK_CODES)
def test_codes_equal_those_of_the_sdk(name: str) -> None:
    """The SDK raises its errors with the codes that the daemon compares them with."""
    assert getattr(upstream_exchange, name) == getattr(mcp_types, name)


@pytest.mark.process
def test_the_daemon_starts_without_the_sdk() -> None:
    """A daemon without a source of this type does not import the SDK, which takes longer than all its other imports."""
    program = "import sys, toold.daemon.serve; print(sorted({'mcp', 'mcp_types'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
