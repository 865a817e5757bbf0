"""A daemon as a process, and Chromium. Where it is missing the tests are skipped, and the summary says so once."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from tests.browser.chromium import Chromium, Page, chromium_program, running_chromium
from tests.e2e.conftest import Process, start
from toold.client import MCPWebSocketClient
from toold.daemon.access import TokenBook, change_tokens

PROGRAM: Final = Path(__file__).parents[1] / "sources/mcp/plain_program.py"
NO_BROWSER: Final = "Chromium is not installed: the dashboard is not tested in a browser"

TOOLS = '''
import asyncio
from pathlib import Path
from typing import Any, Literal
from pydantic import Field
from toold.protocol.questions.client_question import read_question
from toold.protocol.tool_call import ImageContent
from toold.tools import Arguments, ToolOutput, tool

HOSTILE = '<img src="http://192.0.2.1/x.png" onerror="window.hacked=1">'

class Steps(Arguments):
    """What to report."""
    message: str
    gate: str

@tool("steps", read_only=True, open_world=False)
async def steps(arguments: Steps, context):
    """Reports progress, waits until the file `gate` exists, reports more, and waits until it is cancelled."""
    context.progress(arguments.message, 1, 4)
    while not Path(arguments.gate).exists():
        await asyncio.sleep(0.01)
    context.progress("three of four", 3, 4)
    await asyncio.Event().wait()

class Text(Arguments):
    """A text."""
    text: str

class Point(Arguments):
    x: float
    label: str | None = None

class Place(Arguments):
    name: str

class EveryKind(Arguments):
    """One argument of each kind."""
    line: str
    prompt: str = ""
    count: int = Field(default=0, ge=0)
    sure: bool = False
    how: Literal["fast", "slow"] = "fast"
    files: list[str] = []
    points: list[Point] = []
    place: Place | None = None
    either: str | list[str] | None = None
    anything: Any = None
    content: str = Field(default="", json_schema_extra={"contentEncoding": "base64"})

@tool("every_kind", read_only=True, open_world=False)
async def every_kind(arguments: EveryKind, context):
    """Returns its arguments. Some are `optional`."""
    return ToolOutput(data=arguments.model_dump(mode="json"))

class Written(Arguments):
    """What to write."""
    text: str
    gate: str

@tool("writes", read_only=True, open_world=False)
async def writes(arguments: Written, context):
    """Streams a text, waits until the file `gate` exists, and returns the text."""
    context.stream(arguments.text)
    while not Path(arguments.gate).exists():
        await asyncio.sleep(0.01)
    return arguments.text

class Nothing(Arguments):
    """No arguments."""

@tool("draws", read_only=True, open_world=False)
async def draws(arguments: Nothing, context):
    """Returns an image."""
    return ToolOutput("a pixel", blocks=(ImageContent(PIXEL, "image/png"),))

class Amount(Arguments):
    """How much."""
    amount: int = Field(ge=1, le=10, description=HOSTILE)
    kind: Literal["whole", "half"] = "whole"

@tool("asks", read_only=True, open_world=False)
async def asks(arguments: Text, context):
    """Asks how much, and then whether a page was visited."""
    amount = await context.elicit(arguments.text, Amount)
    if amount is None:
        return "declined"
    visit = {"mode": "url", "message": "Visit it.", "url": "http://192.0.2.1/visit?<img>", "elicitationId": "1"}
    visited = await context.ask_client(read_question("elicitation/create", visit))
    return f"{amount.amount} {amount.kind}, {visited['action']}"

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

@tool("fails_with", read_only=True, open_world=False)
async def fails_with(arguments: Text, context):
    """Fails with a text."""
    raise ValueError(arguments.text)
'''


AGENTS = """
[agents.careful]
description = "Asks before it writes."
prompt = "Be careful."
tools = ["echo"]
approve = ["echo"]

[agents.typist]
description = "Writes."
prompt = "Write."
tools = ["writes"]

[agents.team]
description = "One after the other, repeatedly."
execution_type = "loop"
max_iterations = 2
roles = [{name = "writer", prompt = "x"}, {name = "critic", prompt = "y"}]
"""


@dataclass
class Site:
    """A daemon that can be restarted at its address."""

    directory: Path
    process: Process
    guest_token: str
    """Of a principal without the operator right."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.process.http_port}"

    @property
    def token(self) -> str:
        return self.process.token

    def caller(self, token: str | None = None) -> MCPWebSocketClient:
        return MCPWebSocketClient(self.process.url, token=token or self.token)

    def restart(self) -> None:
        """Start the daemon again, on the same ports."""
        ports = ("--port", str(self.process.port), "--http-port", str(self.process.http_port))
        self.process = start(self.directory, *ports, TOOLD_AUDIT_CONTENT="full", TOOLD_GRACE_PERIOD_S="0.1")


def new_site(directory: Path) -> Site:
    """Start a daemon with the tools above and a guest's token in a directory."""
    packages = directory / "packages"
    info = packages / "browser_tools-1.0.dist-info"
    info.mkdir(parents=True)
    (packages / "browser_tools.py").write_text(TOOLS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: browser-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[toold.tools]\nbrowser = browser_tools\n")
    if not (directory / "toold.toml").exists():
        (directory / "toold.toml").write_text(AGENTS)
    state = directory / "state"
    state.mkdir(mode=0o700)
    tokens: list[str] = []

    def add(book: TokenBook) -> TokenBook:
        book, token = book.with_new("guest", 0.0)
        tokens.append(token)
        return book

    change_tokens(state, add)
    process = start(directory, TOOLD_AUDIT_CONTENT="full", TOOLD_GRACE_PERIOD_S="0.1")
    return Site(directory, process, tokens[0])


@pytest.fixture(scope="session")
def site(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One daemon for the tests of a worker; it must log no traceback but those of the tool that fails on purpose."""
    site = new_site(tmp_path_factory.mktemp("site"))
    yield site
    assert site.process.stop() == 0, site.process.logged()
    assert not site.process.tracebacks()


@pytest.fixture
def own_site(starts_processes: None, tmp_path: Path) -> Iterator[Site]:
    """A daemon of one test, which may restart it or exhaust its limits."""
    site = new_site(tmp_path / "site")
    yield site
    site.process.stop()


@pytest.fixture
def shop(starts_processes: None, tmp_path: Path) -> Iterator[Site]:
    """A daemon with an MCP server whose tool ``echo`` is described by the file ``shop.json`` at its start."""
    directory = tmp_path / "site"
    directory.mkdir()
    describe(directory, "Say it back.")
    command = [sys.executable, "-S", str(PROGRAM), "--state", str(directory / "shop.json")]
    source = f'[sources.shop]\ntype = "mcp"\ncommand = {json.dumps(command)}\n'
    (directory / "toold.toml").write_text(AGENTS + source)
    site = new_site(directory)
    yield site
    site.process.stop()


def describe(directory: Path, text: str) -> None:
    """Set the description of the server's tool from its next start."""
    (directory / "shop.json").write_text(json.dumps({"description": text}))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chromium]:
    """One browser for the tests of a worker."""
    program = chromium_program()
    if program is None:
        pytest.skip(NO_BROWSER)
    async with running_chromium(program, tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: Chromium, site: Site) -> AsyncIterator[Page]:
    """A tab that is not signed in; nothing may go wrong in it, and it may ask no other address for anything."""
    async with chromium.page(site.url) as page:
        yield page
        assert not page.problems
        assert not foreign_requests(page)


@pytest_asyncio.fixture(loop_scope="session")
async def operator(page: Page, site: Site) -> Page:
    """A tab that is signed in with the daemon's token."""
    await page.sign_in(site.token)
    return page


def foreign_requests(page: Page) -> list[str]:
    """The requests of a page to other addresses than the daemon's."""
    return [
        url
        for url in page.requests
        if not url.startswith((page.origin + "/", "about:", "data:", f"blob:{page.origin}/"))
    ]
