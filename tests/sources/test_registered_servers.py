"""Servers of an MCP registry: a stand-in for its API, and tables of sources."""

import json
import re
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest
from toold.sources import McpRegistry, RegisteredServer, UnusableAnswerError, read_sources, tables_of

SERVER = {
    "name": "com.example/files",
    "description": "Files.\x1b[2J",
    "version": "1.2.0",
    "remotes": [{"type": "streamable-http", "url": "https://files.example/mcp"}],
    "packages": [
        {
            "registryType": "npm",
            "identifier": "@example/files",
            "version": "1.2.0",
            "transport": {"type": "stdio"},
            "registryBaseUrl": "https://" + ".".join(("registry", "npmjs", "org")),  # files name no registry
            "runtimeArguments": [{"type": "positional", "value": "-y"}],
            "packageArguments": [
                {"type": "named", "name": "--mode", "value": "fast"},
                {"type": "positional", "value": "/d"},
            ],
            "environmentVariables": [
                {"name": "FILES_KEY", "isSecret": True, "isRequired": True},
                {"name": "LEVEL", "default": "info"},
                {"name": "OPTIONAL"},
            ],
        }
    ],
}


def tables(server: dict[str, Any]) -> list[Any]:
    return [way.table or way.problem for way in tables_of(msgspec.convert(server, RegisteredServer))]


def package(**fields: Any) -> dict[str, Any]:
    return {"name": "a/b", "packages": [{"transport": {"type": "stdio"}, **fields}]}


def test_the_ways_to_use_a_server() -> None:
    """Its addresses, then its packages; secrets are references; each table is a valid source."""
    remote, npm = tables(SERVER)
    assert remote == {"type": "mcp", "url": "https://files.example/mcp"}
    assert npm == {
        "type": "mcp",
        "command": ["npx", "-y", "@example/files@1.2.0", "--mode=fast", "/d"],
        "env": {"FILES_KEY": {"env": "FILES_KEY"}, "LEVEL": "info"},
    }
    assert read_sources({"a": remote, "b": npm})
    (pypi,) = tables(package(registryType="pypi", identifier="files", version="2"))
    assert pypi["command"] == ["uvx", "files@2"]
    (oci,) = tables(package(registryType="oci", identifier="docker.example/files", version="3"))
    assert oci == {"type": "mcp", "image": "docker.example/files:3"}
    (old,) = tables({"name": "a/b", "remotes": [{"type": "sse", "url": "https://h.example/sse"}]})
    assert old["transport"] == "sse"


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (package(registryType="npm", identifier="--eval=1"), "is invalid"),
        (package(registryType="npm", identifier="x; rm -rf /"), "is invalid"),
        (package(registryType="pypi", identifier="-x"), "is invalid"),
        (package(registryType="npm", identifier="x", version="1 --eval"), "is invalid"),
        (package(registryType="oci", identifier="--privileged"), "is invalid"),
        (package(registryType="mcpb", identifier="https://h.example/x"), "not supported"),
        (package(registryType="npm", identifier="x", transport={"type": "sse"}), "not supported"),
        (
            package(registryType="npm", identifier="x", packageArguments=[{"valueHint": "dir", "isRequired": True}]),
            "needs a value for dir",
        ),
        (package(registryType="npm", identifier="x", environmentVariables=[{"name": "A=B"}]), "name of a variable"),
        (
            package(
                registryType="npm", identifier="x", environmentVariables=[{"name": "NODE_OPTIONS", "value": "-r /x"}]
            ),
            "NODE_OPTIONS decides which program runs",
        ),
        (
            package(registryType="oci", identifier="x", environmentVariables=[{"name": "DOCKER_HOST", "value": "a"}]),
            "env.DOCKER_HOST affects docker or podman",
        ),
        (
            package(registryType="npm", identifier="x", registryBaseUrl="https://npm.evil.example"),
            r"in another registry \(https://npm.evil.example\)",
        ),
        (
            package(registryType="npm", identifier="x", runtimeArguments=[{"type": "named", "name": "--call"}]),
            "needs options of npx",
        ),
        (package(registryType="pypi", identifier="x", runtimeArguments=[{"value": "-y"}]), "needs options of uvx"),
        (package(registryType="npm", identifier="x", packageArguments=[{"value": ""}]), "command must not be empty"),
        ({"name": "a", "remotes": [{"type": "sse", "url": "https://[bad]/"}]}, "url must be a URL"),
        ({"name": "a", "remotes": [{"type": "streamable-http", "url": "https://{host}/mcp"}]}, "has variables"),
        ({"name": "a", "remotes": [{"type": "streamable-http", "url": "file:///etc/passwd"}]}, "has variables"),
        (
            {
                "name": "a",
                "remotes": [
                    {"type": "sse", "url": "https://h.example", "headers": [{"name": "X-Key", "isSecret": True}]}
                ],
            },
            "needs the headers X-Key",
        ),
    ],
)
def test_what_cannot_be_added(server: dict[str, Any], problem: str) -> None:
    """A name cannot be an option of a program, and nothing is guessed."""
    (reason,) = tables(server)
    assert re.search(problem, reason)


@pytest.fixture
def registry() -> Iterator[str]:
    """A STAND-IN for a registry; yields its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {
                "/v0.1/servers?search=files&version=latest&limit=30": {"servers": [{"server": SERVER}]},
                "/v0.1/servers?search=none&version=latest&limit=30": {"servers": []},
                "/v0.1/servers/com.example%2Ffiles/versions/latest": {"server": SERVER},
                "/v0.1/servers/odd/versions/latest": [1],
                "/v0.1/servers/com.example%2Ftrusted/versions/latest": {"server": SERVER},
            }
            body = json.dumps(answers.get(self.path, {})).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
            """Quiet."""

    server: socketserver.BaseServer = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"  # type: ignore[index] # of a TCP server
    server.shutdown()
    server.server_close()
    thread.join()


async def test_asking_a_registry(registry: str) -> None:
    """Searching, finding, and what is not there."""
    client = McpRegistry(registry, allow_private=True)
    assert [server.name for server in await client.search("files")] == ["com.example/files"]
    assert await client.search("none") == []
    assert await client.find("com.example/other") is None
    with pytest.raises(UnusableAnswerError, match="does not conform to the API of MCP registries"):
        await client.find("odd")
    with pytest.raises(UnusableAnswerError, match=r"another server \(com\.example/files\)"):
        await client.find("com.example/trusted")
    await client.close()
    refused = McpRegistry(registry)
    with pytest.raises(UnusableAnswerError, match="is loopback"):
        await refused.search("files")
    await refused.close()
