"""Documents are fetched with what they refer to, from where they may be."""

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
from toold.sources.openapi.api_document import ApiDocumentError
from toold.sources.openapi.document_fetch import fetch, marks


@pytest.fixture
async def network() -> AsyncIterator[CheckedNetwork]:
    """One that reaches loopback."""
    network = CheckedNetwork(AddressPolicy(allow_private=True))
    yield network
    await network.close()


async def test_files_draw_in_their_neighbours(tmp_path: Path, network: CheckedNetwork) -> None:
    """Each once, those of others too; what is not there, or may not be followed, is told with its reason."""
    apps = tmp_path / "apps"
    apps.mkdir()
    references = ["../common.json#/a", "../common.json#/b", "gone.json#/x", "../../etc.json#/x", "//far.example/x.json"]
    (apps / "crm api.json").write_text(json.dumps({"all": [{"$ref": one} for one in references]}), encoding="utf-8")
    (tmp_path / "common.json").write_text('{"a": {"$ref": "more.yaml#/x"}}', encoding="utf-8")
    (tmp_path / "more.yaml").write_text("x: {$ref: 'common.json#/a'}", encoding="utf-8")
    fetched = await fetch(str(apps / "crm api.json"), network)
    assert {uri.rsplit("/", 1)[1] for uri in fetched.documents} == {"crm%20api.json", "common.json", "more.yaml"}
    assert max(fetched.absent.values()) == "gone.json is not there, or is no file"
    assert len(fetched.absent) == 3


async def test_a_change_of_any_of_its_files_is_noticed(tmp_path: Path, network: CheckedNetwork) -> None:
    """Of the one that was missing too."""
    main, other = tmp_path / "crm.json", tmp_path / "other.json"
    main.write_text('{"a": {"$ref": "other.json#/x"}}', encoding="utf-8")
    fetched = await fetch(str(main), network)
    before = marks(fetched)
    assert marks(fetched) == before
    other.write_text("{}", encoding="utf-8")
    assert marks(fetched) != before


async def test_addresses_draw_in_those_of_their_server(api: Any, network: CheckedNetwork) -> None:
    """Relative to where the document was after redirects."""

    async def answer(request: Request) -> Response:
        match request.url.path:
            case "/old":
                return RedirectResponse("/v2/api.json")
            case "/v2/api.json":
                return JSONResponse({"a": {"$ref": "parts/x.json#/y"}, "b": {"$ref": "http://other.example/z"}})
            case _:
                return JSONResponse({"y": 1})

    api.answers = [answer]
    fetched = await fetch(f"{api.url}/old", network)
    assert fetched.uri == f"{api.url}/v2/api.json"
    assert fetched.documents[f"{api.url}/v2/parts/x.json"] == {"y": 1}
    assert list(fetched.absent) == ["http://other.example/z"]
    assert marks(fetched) == ()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(status_code=404), "127.0.0.1 answered HTTP 404"),
        (Response(b"<html>"), "no object at its top"),
        (RedirectResponse("/again"), "sends elsewhere more than"),
        (Response(status_code=302, headers={"location": "http://["}), "not understood"),
        (Response(status_code=302, headers={"location": "ftp://x/"}), "cannot be reached"),
        (Response(b"no gzip at all", headers={"content-encoding": "gzip"}), "not understood"),
    ],
)
async def test_an_address_that_answers_no_document_is_told(
    answer: Response, said: str, api: Any, network: CheckedNetwork
) -> None:
    """With what it answered."""
    api.answers = [answer]
    with pytest.raises(ApiDocumentError, match=said):
        await fetch(f"{api.url}/api.json", network)


async def test_a_document_at_a_private_address_is_not_fetched(api: Any) -> None:
    """Unless the source allows it."""
    network = CheckedNetwork(AddressPolicy(allow_private=False))
    with pytest.raises(ApiDocumentError, match="is loopback"):
        await fetch(f"{api.url}/api.json", network)
    await network.close()
    assert not api.asked


async def test_what_is_no_file_is_told(tmp_path: Path, network: CheckedNetwork) -> None:
    """A directory, or nothing at all; by its name, and without its path."""
    for path in (tmp_path, tmp_path / "gone.json"):
        with pytest.raises(ApiDocumentError, match="is not there, or is no file") as caught:
            await fetch(str(path), network)
        assert str(tmp_path) not in str(caught.value)


async def test_so_many_documents_are_drawn_in(tmp_path: Path, network: CheckedNetwork) -> None:
    """64; for the others there is a reason."""
    references = [{"$ref": f"{number}.json#/x"} for number in range(70)]
    (tmp_path / "all.json").write_text(json.dumps({"all": references}), encoding="utf-8")
    for number in range(70):
        (tmp_path / f"{number}.json").write_text('{"x": 1}', encoding="utf-8")
    fetched = await fetch(str(tmp_path / "all.json"), network)
    assert len(fetched.documents) == 65
    assert set(fetched.absent.values()) == {"the documents refer to more than 64 others"}


async def test_so_large_are_documents_together(
    tmp_path: Path, network: CheckedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that come after are left out, with a reason."""
    monkeypatch.setattr(document_fetch, "MAX_TOGETHER_BYTES", 2 * 1024 * 1024)
    names = ["a", "b", "c"]
    (tmp_path / "all.json").write_text(json.dumps([{"$ref": f"{name}.json#/x"} for name in names]).join(('{"a":', "}")))
    for name in names:
        (tmp_path / f"{name}.json").write_text(json.dumps({"x": "y" * 900_000}), encoding="utf-8")
    fetched = await fetch(str(tmp_path / "all.json"), network)
    assert len(fetched.documents) == 3
    assert set(fetched.absent.values()) == {"the documents have more than 2 MiB together"}
