"""The page Tools and the page of a tool in a browser."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Site
from tests.browser.test_now_page import HOSTILE

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def fill(page: Page, name: str, text: str) -> None:
    """Type into the field of an argument."""
    await page.click(f'[name="{name}"]')
    await page.write(text)


async def choose(page: Page, name: str, label: str) -> None:
    """Choose an option, as the keyboard does."""
    await page.value(
        f"(() => {{ const field = document.querySelector('[name={json.dumps(name)}]');"
        f" field.value = [...field.options].find(option => option.text === {json.dumps(label)}).value;"
        " field.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


async def call(page: Page) -> None:
    await page.click("#arguments .buttons button")


async def test_a_search_leads_to_a_tool(operator: Page) -> None:
    """Typing narrows the cards without a reload; a card leads to the page of its tool."""
    await operator.open("/ui/tools")
    await operator.value("window.sameDocument = true")
    await operator.click("#text")
    await operator.write("every_kin")
    await operator.press("Space")
    await operator.hides("fails_with", "#found")
    await operator.shows("every_kind", "#found")
    assert await operator.value("window.sameDocument") is True
    async with operator.loads():
        await operator.click(".card-title a")
    assert await operator.text("h1") == "every_kind"


async def test_a_form_has_each_kind_of_argument(operator: Page, tmp_path: Path) -> None:
    """Text, number, boolean, choice, list, object, union, paths, a file and JSON arrive as the tool takes them."""
    await operator.open("/ui/tools/every_kind")
    await fill(operator, "/line", "one line")
    await fill(operator, "/prompt", "two\nlines")
    await fill(operator, "/count", "7")
    await choose(operator, "/sure", "true")
    await choose(operator, "/how", "slow")
    await fill(operator, "/files", "a.py\nb.py")
    for _ in range(2):
        await operator.click('[data-add="/points"]')
    await fill(operator, "/points/0/x", "1.5")
    await fill(operator, "/points/1/x", "2")
    await operator.click('[data-list="/points"] [data-remove]')
    await fill(operator, "/place/name", "here")
    await choose(operator, "/either|", "list")
    await operator.click('[data-add="/either|1"]')
    await fill(operator, "/either|1/0", "x")
    await fill(operator, "/anything", '{"a": [null]}')
    file = tmp_path / "file.bin"
    file.write_bytes(b"\x00\x01")
    found = await operator.send("Runtime.evaluate", expression="document.querySelector('input[type=file]')")
    await operator.send("DOM.setFileInputFiles", files=[str(file)], objectId=found["result"]["objectId"])
    await operator.shows("content=AAE=", "#snippets")
    await call(operator)
    await operator.shows("ok", "#outcome .state")
    assert json.loads(await operator.text("#outcome pre")) == {
        "line": "one line",
        "prompt": "two\nlines",
        "count": 7,
        "sure": True,
        "how": "slow",
        "files": ["a.py", "b.py"],
        "points": [{"x": 2.0, "label": None}],
        "place": {"name": "here"},
        "either": ["x"],
        "anything": {"a": [None]},
        "content": "AAE=",
    }


async def test_a_required_argument_is_asked_for(operator: Page) -> None:
    """The browser names the empty field, and nothing is called; JSON in place of the form needs no field."""
    await operator.open("/ui/tools/every_kind")
    await call(operator)
    assert await operator.value("document.querySelector('[name=\"/line\"]').matches(':invalid')") is True
    await operator.click(".whole summary")
    await operator.click("#whole")
    await operator.write('{"line": "as JSON"}')
    await call(operator)
    await operator.shows("as JSON", "#outcome pre")


async def test_a_call_reports_streams_and_is_cancelled(operator: Page, site: Site, tmp_path: Path) -> None:
    """Progress is shown as it comes; Cancel ends the call, which says so and has a page."""
    await operator.open("/ui/tools/steps")
    await fill(operator, "/message", "one of four")
    await fill(operator, "/gate", str(tmp_path / "gate"))
    await call(operator)
    await operator.shows("one of four", "#status")
    assert await operator.value("document.querySelector('#status progress').value") == 1
    (tmp_path / "gate").touch()
    await operator.shows("three of four", "#status")
    await operator.click("#cancel")
    await operator.shows("CANCELLED", "#outcome")
    assert await operator.text("#status") == ""
    assert await operator.value("document.querySelector('#cancel').checkVisibility()") is False
    assert await operator.value("document.querySelector('#outcome a[href^=\"/ui/calls/\"]') !== null")


async def test_streamed_text_is_shown(operator: Page, tmp_path: Path) -> None:
    """The text of a tool appears while it is written, and the result replaces it."""
    await operator.open("/ui/tools/writes")
    await fill(operator, "/text", HOSTILE)
    await fill(operator, "/gate", str(tmp_path / "gate"))
    await call(operator)
    await operator.shows("<img src=", "#stream")
    (tmp_path / "gate").touch()
    await operator.shows("ok", "#outcome .state")
    assert "<img src=" in await operator.text("#outcome pre")
    assert await operator.value("document.querySelector('#stream').checkVisibility()") is False
    assert await operator.value("window.hacked") is None
    assert await operator.value("document.querySelectorAll('main img, main script').length") == 0


async def test_an_image_is_shown_on_request(operator: Page) -> None:
    """The result names the image; the button shows it, without a request to any address."""
    await operator.open("/ui/tools/draws")
    await call(operator)
    await operator.shows("An image, image/png", "#outcome")
    assert await operator.value("document.querySelectorAll('#outcome img').length") == 0
    await operator.click("[data-image]")
    await asyncio.sleep(0)
    assert await operator.value(
        "(async () => { const image = document.querySelector('#outcome img'); await image.decode().catch(() => 0);"
        " return image.naturalWidth; })()"
    ) in {0, 1}
    assert await operator.value("document.querySelector('#outcome img').src.startsWith('blob:')") is True


async def test_a_text_is_copied(operator: Page) -> None:
    """The button Copy puts the command into the clipboard, or selects it where the browser permits no more."""
    await operator.open("/ui/tools/echo")
    await fill(operator, "/text", "hello")
    await operator.shows("toold call echo text=hello", "#snippets")
    await operator.click("[data-copy]")
    await operator.shows("ed", "[data-copy]")
    assert await operator.text("[data-copy]") in {"Copied", "Selected"}


async def test_a_question_of_a_tool_is_answered(operator: Page, site: Site, chromium: Chromium) -> None:
    """A form has the fields and says what is wrong, an address is text; no one else can answer, and a script in a
    question does not run. The call continues with the answers.
    """
    await operator.open("/ui/tools/asks")
    await fill(operator, "/text", HOSTILE)
    await call(operator)
    await operator.shows("asks", "#questions h3")
    assert "<img src=" in await operator.text("#questions .prose")
    assert "<img src=" in await operator.text("#questions .hint")
    token = await operator.value("document.querySelector('[data-question]').dataset.question")
    async with chromium.page(site.url) as guest:
        await guest.sign_in(site.guest_token)
        csrf = await guest.value("document.querySelector('meta[name=csrf]').content")
        status = await guest.value(
            f"fetch('/ui/tools/asks/answer', {{method: 'POST', headers: {{'X-CSRF-Token': '{csrf}'}},"
            f" body: new URLSearchParams({{token: '{token}', decision: 'decline'}})}}).then(answer => answer.status)"
        )
        assert status == 404
    await operator.value("document.querySelector('#questions form').noValidate = true")
    await fill(operator, f"|{token}/amount", "70")
    await operator.click("#questions button")
    await operator.shows("amount", "#questions .problem")
    await operator.value(f"document.querySelector('[name=\"|{token}/amount\"]').value = ''")
    await fill(operator, f"|{token}/amount", "7")
    await choose(operator, f"|{token}/kind", "half")
    await operator.click("#questions button")
    await operator.shows("http://192.0.2.1/visit?<img>", "#questions code")
    assert await operator.value("document.querySelectorAll('#questions a, #questions img').length") == 0
    await operator.click("#questions button")
    await operator.shows("7 half, accept", "#outcome")
    assert await operator.value("window.hacked") is None
    assert not await operator.text("#questions")
    operator.problems[:] = [text for text in operator.problems if "Failed to load resource" not in text]


async def test_a_question_is_declined_or_ends_with_its_call(operator: Page) -> None:
    """A declined question goes to the tool as such; one whose call is cancelled disappears."""
    await operator.open("/ui/tools/asks")
    await fill(operator, "/text", "How much?")
    await call(operator)
    await operator.shows("How much?", "#questions")
    await operator.click("#questions button[value=decline]")
    await operator.shows("declined", "#outcome")
    await call(operator)
    await operator.shows("How much?", "#questions")
    await operator.click("#cancel")
    await operator.shows("CANCELLED", "#outcome")
    assert not await operator.text("#questions")


async def test_the_form_works_with_the_keyboard(operator: Page) -> None:
    """Tab reaches the field and the button; Space presses it; the result is announced."""
    await operator.open("/ui/tools/echo")
    for _ in range(40):
        await operator.press("Tab")
        if await operator.value("document.activeElement.name") == "/text":
            break
    await operator.write("by keyboard")
    for _ in range(20):
        await operator.press("Tab")
        if await operator.value("document.activeElement.matches('#arguments .buttons button')"):
            break
    await operator.press("Space")
    await operator.shows("by keyboard", "#outcome")
    assert await operator.value("document.querySelector('#outcome').getAttribute('aria-live')") == "polite"
