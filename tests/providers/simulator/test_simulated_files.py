"""The simulator's files: bounded, and separate per vendor."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from toold.providers.simulator import SIMULATOR_KEY, Simulator, simulated_files

pytestmark = pytest.mark.asyncio(loop_scope="module")

PURPOSES = {"kimi": "file-extract", "glm": "batch"}


@pytest_asyncio.fixture(loop_scope="module")
async def own() -> AsyncIterator[Simulator]:
    """A simulator without files."""
    async with Simulator() as simulator:
        yield simulator


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {SIMULATOR_KEY}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30, verify=False) as client:
        yield client


@pytest.fixture(params=["kimi", "glm"])
def vendor(request: pytest.FixtureRequest) -> Any:
    return request.param


def root(simulator: Simulator, vendor: str) -> str:
    return f"{simulator.kimi_base_url if vendor == 'kimi' else simulator.glm_base_url}/files"


async def upload(
    http: httpx.AsyncClient, url: str, purpose: str, name: str = "a.txt", content: bytes = b"words"
) -> httpx.Response:
    return await http.post(url, data={"purpose": purpose}, files={"file": (name, content)})


async def test_file_has_the_vendors_format(own: Simulator, http: httpx.AsyncClient, vendor: str) -> None:
    """A file has id, size, name, purpose and the simulator's mark. Only Kimi reports a status."""
    about = (await upload(http, root(own, vendor), PURPOSES[vendor])).json()
    assert (about["object"], about["bytes"], about["filename"]) == ("file", 5, "a.txt")
    assert about["purpose"] == PURPOSES[vendor]
    assert about["simulated"] is True
    assert ("status" in about) is (vendor == "kimi")


async def test_extraction_is_marked_as_simulated(own: Simulator, http: httpx.AsyncClient) -> None:
    """The extraction of a text file contains its text. That of any other file says that it is not a text file."""
    url = root(own, "kimi")
    text = (await upload(http, url, "file-extract", "a.txt", b"words")).json()["id"]
    image = (await upload(http, url, "file-extract", "a.png", b"\xff\xfe")).json()["id"]
    assert (await http.get(f"{url}/{text}/content")).text == "Simulated extraction of a.txt (5 bytes):\nwords"
    assert "a.png (2 bytes): not a text file" in (await http.get(f"{url}/{image}/content")).text


async def test_content_is_refused_for_other_purposes(own: Simulator, http: httpx.AsyncClient, vendor: str) -> None:
    """As documented, Kimi returns no content of videos, and GLM none of agent files."""
    other = "video" if vendor == "kimi" else "agent"
    file_id = (await upload(http, root(own, vendor), other)).json()["id"]
    assert (await http.get(f"{root(own, vendor)}/{file_id}/content")).status_code == 400


async def test_glm_lists_files_in_pages(own: Simulator, http: httpx.AsyncClient) -> None:
    """A page has twenty files, filtered by purpose, after the last file of the previous page."""
    url = root(own, "glm")
    ids = [(await upload(http, url, "batch")).json()["id"] for _ in range(21)]
    agent = (await upload(http, url, "agent")).json()["id"]
    first = (await http.get(url, params={"purpose": "batch"})).json()
    assert ([file["id"] for file in first["data"]], first["has_more"]) == (ids[:20], True)
    second = (await http.get(url, params={"purpose": "batch", "after": ids[19]})).json()
    assert ([file["id"] for file in second["data"]], second["has_more"]) == (ids[20:], False)
    assert agent in [file["id"] for file in (await http.get(url, params={"after": ids[19]})).json()["data"]]


async def test_invalid_uploads_are_refused(own: Simulator, http: httpx.AsyncClient, vendor: str) -> None:
    """Uploads without a form or with a missing or unknown purpose are refused, and a missing file gives 404."""
    url = root(own, vendor)
    assert (await http.post(url, json={"purpose": "batch"})).status_code == 400
    assert (await http.post(url, files={"file": ("a", b"x")})).status_code == 400
    assert (await upload(http, url, "retrieval")).status_code == 400
    assert (await http.get(f"{url}/none/content")).status_code == 404
    assert (await http.delete(f"{url}/none")).status_code == 404


async def test_stored_files_are_bounded(
    own: Simulator, http: httpx.AsyncClient, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of files and their total size are bounded. Deleting a file frees capacity."""
    monkeypatch.setattr(simulated_files, "MAX_FILES", 2)
    monkeypatch.setattr(simulated_files, "MAX_TOTAL_BYTES", 12)
    url = root(own, vendor)
    first = (await upload(http, url, "batch")).json()["id"]
    assert (await upload(http, url, "batch", content=b"x" * 8)).status_code == 400
    assert (await upload(http, url, "batch")).status_code == 200
    assert (await upload(http, url, "batch", content=b"x")).status_code == 400
    assert (await http.delete(f"{url}/{first}")).json()["deleted"] is True
    assert (await upload(http, url, "batch")).status_code == 200


async def test_file_name_can_contain_directives(own: Simulator, http: httpx.AsyncClient, vendor: str) -> None:
    """A directive in the file name makes an upload fail."""
    name = "[[sim:status=429 retry_after=2]].txt"
    response = await upload(http, root(own, vendor), PURPOSES[vendor], name)
    assert (response.status_code, response.headers["retry-after"]) == (429, "2")
