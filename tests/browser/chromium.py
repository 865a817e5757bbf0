"""Drives Chromium over the Chrome DevTools Protocol, with real mouse and keyboard events.

``websockets`` is all that it needs (docs/dependencies.md).
"""

import asyncio
import base64
import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

from tests.waiting import LONG_S, until
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS: Final = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-sync",
    "--password-store=basic",
    "--lang=en-US",
    # A name is never resolved, so nothing leaves the machine even if a page asks for it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_KEYS: Final = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "Space": ("Space", 32, " ")}


def chromium_program() -> str | None:
    """The program of the variable ``CHROMIUM``, or the first of ``PROGRAMS`` on PATH; None if there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)


class ScriptError(Exception):
    """An expression that was evaluated in a page failed."""


class Chromium:
    """A running browser. Each ``page`` has its own cookies."""

    def __init__(self, socket: ClientConnection, limit_s: float | None = LONG_S) -> None:
        """``limit_s``: how long an answer of the browser, or what a page has to show, may take; None: any time."""
        self._socket = socket
        self.limit_s = limit_s
        self._last_id = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listeners: dict[str, Callable[[str, dict[str, Any]], None]] = {}

    async def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its answer.

        Raises:
            ScriptError: the browser refuses it.
        """
        self._last_id += 1
        answer = self._answers[self._last_id] = asyncio.get_running_loop().create_future()
        message = {"id": self._last_id, "method": method, "params": parameters}
        await self._socket.send(json.dumps(message if session is None else {**message, "sessionId": session}))
        async with asyncio.timeout(self.limit_s):
            received = await answer
        if "error" in received:
            raise ScriptError(f"{method}: {received['error']['message']}")
        result: dict[str, Any] = received["result"]
        return result

    async def receive(self) -> None:
        """Pass answers and events on, until the browser ends."""
        try:
            async for text in self._socket:
                message = json.loads(text)
                if "id" in message:
                    self._answers.pop(message["id"]).set_result(message)
                elif (listener := self._listeners.get(message.get("sessionId", ""))) is not None:
                    listener(message["method"], message["params"])
        except ConnectionClosed:
            pass

    @asynccontextmanager
    async def page(self, origin: str, *, width: int = 1280, dark: bool = False) -> AsyncIterator["Page"]:
        """An empty tab with its own cookies; ``origin`` begins the addresses that ``open`` takes."""
        context = (await self.send("Target.createBrowserContext"))["browserContextId"]
        target = await self.send("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, attached["sessionId"], origin)
        self._listeners[page.session] = page.happened
        try:
            for domain in ("Page", "Runtime", "Network", "Log"):
                await page.send(f"{domain}.enable")
            await page.show(width=width, dark=dark)
            yield page
        finally:
            del self._listeners[page.session]
            await self.send("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """One tab."""

    def __init__(self, browser: Chromium, session: str, origin: str) -> None:
        self._browser = browser
        self.session = session
        self.origin = origin
        self.requests: list[str] = []
        """The address of each request that the page made."""
        self.problems: list[str] = []
        """Uncaught exceptions, and what the browser logged as an error, such as a violation of the policy."""
        self.questions: list[str] = []
        """The texts of the dialogs that the page opened; each was accepted."""
        self.received: dict[str, int] = {}
        """The bytes that each request received over the socket, headers included, by the request's id."""
        self._loads = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._counts: defaultdict[str, int] = defaultdict(int)

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._browser.send(method, self.session, **parameters)

    def happened(self, method: str, event: dict[str, Any]) -> None:
        """Take an event of the protocol."""
        self._counts[method] += 1
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Network.dataReceived":
            # A stream never finishes; a compressed one has fewer encoded bytes.
            size = event["encodedDataLength"] or event["dataLength"]
            self.received[event["requestId"]] = self.received.get(event["requestId"], 0) + size
        elif method == "Network.loadingFinished":
            self.received[event["requestId"]] = int(event["encodedDataLength"])
        elif method == "Network.eventSourceMessageReceived":
            self._counts[f"event {event['eventName']}"] += 1
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] == "error":
            self.problems.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")
        elif method == "Page.javascriptDialogOpening":
            self.questions.append(event["message"])
            task = asyncio.create_task(self.send("Page.handleJavaScriptDialog", accept=True))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def show(self, *, width: int, dark: bool) -> None:
        """Set the width of the view in CSS pixels, and the preferred colours."""
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[feature])

    async def open(self, path: str) -> None:
        """Load a page, with its scripts and styles."""
        async with self.loads():
            await self.send("Page.navigate", url=self.origin + path)

    @asynccontextmanager
    async def loads(self) -> AsyncIterator[None]:
        """Wait until what happens inside has loaded a page."""
        before = self._counts["Page.loadEventFired"]
        yield
        await self._until(lambda: self._counts["Page.loadEventFired"] > before)

    async def value(self, expression: str) -> Any:
        """The JSON value of an expression of JavaScript; promises are awaited.

        Raises:
            ScriptError: it failed.
        """
        answer = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise ScriptError(str(answer["exceptionDetails"].get("exception", answer["exceptionDetails"])))
        return answer["result"].get("value")

    async def text(self, selector: str = "body") -> str:
        """What a person reads in the first element that matches; empty if none does."""
        return str(await self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    async def shows(self, text: str, selector: str = "body") -> None:
        """Wait until an element shows a text."""

        async def shown() -> bool:
            return text in await self.text(selector)

        await self._until(shown)

    async def hides(self, text: str, selector: str = "body") -> None:
        """Wait until an element no longer shows a text."""

        async def hidden() -> bool:
            return text not in await self.text(selector)

        await self._until(hidden)

    async def events(self, name: str, count: int) -> None:
        """Wait until the page has received this number of server-sent events of this name."""
        await self._until(lambda: self._counts[f"event {name}"] >= count)

    async def _until(self, reached: Callable[[], object]) -> None:
        await until(reached, limit_s=self._browser.limit_s)

    async def click(self, selector: str) -> None:
        """Click in the middle of the first element that matches."""
        box = await self.value(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)});"
            " found.scrollIntoView({block: 'center'}); const box = found.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    async def write(self, text: str) -> None:
        """Type into the element that has the focus."""
        await self.send("Input.insertText", text=text)

    async def press(self, key: str) -> None:
        """Press Tab, Enter or Space."""
        code, number, text = _KEYS[key]
        event = {"key": text if key == "Space" else key, "code": code, "windowsVirtualKeyCode": number}
        await self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    async def picture(self) -> bytes:
        """A screenshot of the view as PNG."""
        return base64.b64decode((await self.send("Page.captureScreenshot", format="png"))["data"])

    async def sign_in(self, token: str) -> None:
        """Sign in with the form, as a person does."""
        await self.open("/ui/sign-in")
        await self.click("#token")
        await self.write(token)
        async with self.loads():
            await self.press("Enter")


class _Process:
    """The browser's process; it ends with the block."""

    def __init__(self, program: str, directory: Path) -> None:
        self._profile = directory / "profile"
        # A process of root, as in most containers, cannot have Chromium's sandbox; the pages are our own.
        flags = [*_FLAGS, f"--user-data-dir={self._profile}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        self._log = (directory / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            [program, *flags, "about:blank"], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()

    async def address(self, limit_s: float | None) -> str:
        """The address of its protocol, once it listens."""
        file = self._profile / "DevToolsActivePort"

        def listens() -> bool:
            assert self._process.poll() is None, Path(self._log.name).read_text(errors="replace")
            return file.exists() and file.read_text().count("\n") == 1

        await until(listens, limit_s=limit_s)
        port, path = file.read_text().splitlines()
        return f"ws://127.0.0.1:{port}{path}"


@asynccontextmanager
async def running_chromium(program: str, directory: Path, *, limit_s: float | None = LONG_S) -> AsyncIterator[Chromium]:
    """A browser with an empty profile in the directory. ``limit_s``: as for ``Chromium``."""
    with _Process(program, directory) as process:
        address = await process.address(limit_s)
        async with connect(address, max_size=None, compression=None, proxy=None, ping_interval=None) as socket:
            browser = Chromium(socket, limit_s)
            receiving = asyncio.create_task(browser.receive())
            try:
                yield browser
            finally:
                receiving.cancel()
                await asyncio.gather(receiving, return_exceptions=True)
