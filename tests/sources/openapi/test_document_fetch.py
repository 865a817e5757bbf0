"""API documents are loaded with the documents that they refer to."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from toold.sources.address_policy import AddressPolicy
from toold.sources.checked_network import CheckedNetwork
from toold.sources.openapi import document_fetch
from toold.sources.openapi.api_document import ApiDocumentError, read_document
from toold.sources.openapi.document_fetch import fetch, have_changed


@pytest.fixture
async def network() -> AsyncIterator[CheckedNetwork]:
    """A network that may connect to loopback."""
    network = CheckedNetwork(AddressPolicy(allow_private=True))
    yield network
    await network.close()


async def test_referenced_files_are_loaded(tmp_path: Path, network: CheckedNetwork) -> None:
    """Each once, transitively; missing and forbidden documents are reported with the reason."""
    apps = tmp_path / "apps"
    apps.mkdir()
    references = ["../common.json#/a", "../common.json#/b", "gone.json#/x", "../../etc.json#/x", "//far.example/x.json"]
    (apps / "crm api.json").write_text(json.dumps({"all": [{"$ref": one} for one in references]}), encoding="utf-8")
    (tmp_path / "common.json").write_text('{"a": {"$ref": "more.yaml#/x"}}', encoding="utf-8")
    (tmp_path / "more.yaml").write_text("x: {$ref: 'common.json#/a'}", encoding="utf-8")
    fetched = await fetch(str(apps / "crm api.json"), network, 64)
    assert {uri.rsplit("/", 1)[1] for uri in fetched.documents} == {"crm%20api.json", "common.json", "more.yaml"}
    assert max(fetched.absent.values()) == "gone.json does not exist or is not a file"
    assert len(fetched.absent) == 3
    other = tmp_path / "other"
    other.mkdir()
    assert (await fetch(str(other / ".." / "apps" / "crm api.json"), network, 64)).absent == fetched.absent


async def test_a_change_of_any_file_is_noticed(
    tmp_path: Path, network: CheckedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a file that was missing, and of one that changed while it was read."""
    main, other = tmp_path / "crm.json", tmp_path / "other.json"
    main.write_text('{"a": {"$ref": "other.json#/x"}}', encoding="utf-8")
    fetched = await fetch(str(main), network, 64)
    assert not await have_changed(fetched)
    other.write_text("{}", encoding="utf-8")
    assert await have_changed(fetched)

    def read_and_change(content: bytes, name: str) -> dict[str, Any]:
        main.write_text("{ }", encoding="utf-8")
        return read_document(content, name)

    monkeypatch.setattr(document_fetch, "read_document", read_and_change)
    assert await have_changed(await fetch(str(main), network, 64))


async def test_referenced_documents_of_the_same_server_are_loaded(api: Any, network: CheckedNetwork) -> None:
    """Relative to the URL after redirects."""

    async def answer(request: Request) -> Response:
        match request.url.path:
            case "/old":
                return RedirectResponse("/v2/api.json")
            case "/v2/api.json":
                return JSONResponse({"a": {"$ref": "parts/x.json#/y"}, "b": {"$ref": "http://other.example/z"}})
            case _:
                return JSONResponse({"y": 1})

    api.answers = [answer]
    fetched = await fetch(f"{api.url}/old", network, 64)
    assert fetched.uri == f"{api.url}/v2/api.json"
    assert fetched.documents[f"{api.url}/v2/parts/x.json"] == {"y": 1}
    assert list(fetched.absent) == ["http://other.example/z"]
    assert not fetched.versions


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(status_code=404), "127.0.0.1 answered HTTP 404"),
        (Response(b"<html>"), "is not an object at its top level"),
        (RedirectResponse("/again"), "redirects more than"),
        (Response(status_code=302, headers={"location": "http://["}), "sent an invalid response"),
        (Response(status_code=302, headers={"location": "ftp://x/"}), "cannot be reached"),
        (Response(b"no gzip at all", headers={"content-encoding": "gzip"}), "sent an invalid response"),
    ],
)
async def test_a_url_without_a_document_is_an_error(
    answer: Response, said: str, api: Any, network: CheckedNetwork
) -> None:
    """The message says what was answered."""
    api.answers = [answer]
    with pytest.raises(ApiDocumentError, match=said):
        await fetch(f"{api.url}/api.json", network, 64)


async def test_a_document_at_a_private_address_is_not_fetched(api: Any) -> None:
    """Unless the source allows it."""
    network = CheckedNetwork(AddressPolicy(allow_private=False))
    with pytest.raises(ApiDocumentError, match="is loopback"):
        await fetch(f"{api.url}/api.json", network, 64)
    await network.close()
    assert not api.asked


async def test_a_missing_file_is_an_error(tmp_path: Path, network: CheckedNetwork) -> None:
    """So is a directory; the message has its name but not its path."""
    for path in (tmp_path, tmp_path / "gone.json"):
        with pytest.raises(ApiDocumentError, match="does not exist or is not a file") as caught:
            await fetch(str(path), network, 64)
        assert str(tmp_path) not in str(caught.value)


async def test_the_number_of_documents_is_limited(tmp_path: Path, network: CheckedNetwork) -> None:
    """By the setting; the others have a reason."""
    references = [{"$ref": f"{number}.json#/x"} for number in range(7)]
    (tmp_path / "all.json").write_text(json.dumps({"all": references}), encoding="utf-8")
    for number in range(7):
        (tmp_path / f"{number}.json").write_text('{"x": 1}', encoding="utf-8")
    fetched = await fetch(str(tmp_path / "all.json"), network, 4)
    assert len(fetched.documents) == 5
    assert set(fetched.absent.values()) == {"the documents refer to more than 4 others, the setting max_documents"}
    assert not (await fetch(str(tmp_path / "all.json"), network, 7)).absent


async def test_the_total_size_of_documents_is_limited(
    tmp_path: Path, network: CheckedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is missing, with a reason."""
    monkeypatch.setattr(document_fetch, "MAX_TOTAL_BYTES", 2 * 1024 * 1024)
    names = ["a", "b", "c"]
    (tmp_path / "all.json").write_text(json.dumps([{"$ref": f"{name}.json#/x"} for name in names]).join(('{"a":', "}")))
    for name in names:
        (tmp_path / f"{name}.json").write_text(json.dumps({"x": "y" * 900_000}), encoding="utf-8")
    fetched = await fetch(str(tmp_path / "all.json"), network, 64)
    assert len(fetched.documents) == 3
    assert set(fetched.absent.values()) == {"the documents have more than 2 MiB together"}
