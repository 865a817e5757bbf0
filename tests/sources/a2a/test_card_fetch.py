"""The card of an agent: where it is, whether it may be used, its signature, and its changes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from tests.sources.conftest import Api
from toold.daemon.transports.a2a.card_signer import CardSigner
from toold.protocol.a2a.card_signature import canonical_json
from toold.protocol.a2a.remote_card import UnusableCardError, read_card
from toold.sources import SourceCheck, SourceSettings, check_source, read_sources
from toold.sources.a2a.a2a_source import A2ASource
from toold.sources.a2a.card_fetch import allowed_interface
from toold.sources.pin_storage import PinFiles


def card(url: str, **fields: Any) -> dict[str, Any]:
    interface = {"url": f"{url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {"name": "Légal", "description": "Advises.", "supportedInterfaces": [interface], "skills": [], **fields}


def settings(api: Api, **fields: Any) -> SourceSettings:
    return read_sources({"legal": {"type": "a2a", "url": api.url, "allow_private": True, **fields}})["legal"]


async def checked(api: Api, tmp_path: Path, **fields: Any) -> SourceCheck:
    return await check_source("legal", settings(api, **fields), pins=PinFiles(tmp_path))


async def test_the_card_is_at_one_of_two_places(api: Api, tmp_path: Path) -> None:
    """First that of 1.0, then that of 0.3, or the URL itself if that is a file; the secret is sent for it."""
    (tmp_path / "t").write_text("secret-token")
    auth = {"type": "bearer", "file": str(tmp_path / "t")}
    old = {"name": "Legal", "protocolVersion": "0.3.0", "url": f"{api.url}/", "skills": []}
    api.answers = [Response(status_code=404), JSONResponse(old)]
    report = await checked(api, tmp_path, auth=auth)
    assert (report.problem, report.title, report.tools) == (None, "Legal", ("legal",))
    await checked(api, tmp_path, url=f"{api.url}/cards/a.json")
    targets = ["/.well-known/agent-card.json", "/.well-known/agent.json", "/cards/a.json"]
    assert [asked.target for asked in api.asked] == targets
    assert api.asked[0].headers["authorization"] == "Bearer secret-token"


UNUSABLE = [
    (HTMLResponse("<!doctype html>"), "it is HTML"),
    (Response(b""), "it is empty"),
    (Response(status_code=404), "there is no agent card"),
    (Response(status_code=401), "HTTP 401; set auth"),
    (Response(b'{"a":' * 100_000), "cannot be used"),
    (Response(b" " * (1024**2 + 1)), "more than 1,048,576 bytes"),
    (RedirectResponse("http://10.0.0.1/"), "redirects (HTTP 307)"),
    (JSONResponse([]), "not a JSON object"),
    (JSONResponse({"name": "x"}), "names no interface"),
    (JSONResponse(card("http://x.example") | {"supportedInterfaces": []}), "names no interface"),
    (
        JSONResponse(
            {
                "name": "x",
                "supportedInterfaces": [
                    {"url": "http://x", "protocolBinding": "JSONRPC", "protocolVersion": "7.0"},
                    {"url": "http://x", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                ],
            }
        ),
        "it offers GRPC 1.0, JSONRPC 7.0, and this client speaks JSONRPC 1.0, HTTP+JSON 1.0, JSONRPC 0.3",
    ),
    (JSONResponse(card("http://other.example")), "http://other.example:80, which is not the card's origin"),
]


async def test_a_card_that_cannot_be_used(api: Api, tmp_path: Path) -> None:
    """The problem says why."""
    for answer, problem in UNUSABLE:
        api.answers = [answer]
        assert problem in ((await checked(api, tmp_path)).problem or "")


def test_calls_go_to_the_origin_of_the_card_or_a_named_host() -> None:
    """Another port is another origin, and calls of a card that came by https do not go to http."""
    home = "https://a.example/.well-known/agent-card.json"

    def allowed(url: str, *hosts: str) -> bool:
        try:
            allowed_interface(read_card(card(url)), home, hosts)
        except UnusableCardError:
            return False
        return True

    assert allowed("https://a.example")
    assert allowed("https://A.example:443")
    assert not allowed("https://a.example:8443")
    assert not allowed("https://b.example")
    assert not allowed("file:///etc")
    assert allowed("https://b.example", "b.example")
    assert not allowed("http://b.example", "b.example")


class Signing:
    """A key in a file, which signs cards as the daemon's A2A server does."""

    def __init__(self, directory: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        (directory / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.signer = CardSigner(directory / "key.pem")
        self.keys = msgspec.json.decode(self.signer.jwks)["keys"]


async def test_a_signature_is_demanded_and_verified(api: Api, tmp_path: Path) -> None:
    """By keys of the settings, in a file, or at a URL: only an unchanged card that such a key signed is used."""
    signing = Signing(tmp_path)
    plain = card(api.url, params={"weight": 0.5, "empty": []})
    signed = signing.signer.signed(plain, "https://evil.example/keys")
    (tmp_path / "keys.json").write_bytes(signing.signer.jwks)
    (tmp_path / "other").mkdir()
    places: list[dict[str, Any]] = [{"keys": signing.keys}, {"file": str(tmp_path / "keys.json")}]
    for verify in places:
        api.answers = [JSONResponse(signed)]
        assert (await checked(api, tmp_path, verify=verify)).problem is None
    api.answers = [JSONResponse(signed), Response(signing.signer.jwks)]
    assert (await checked(api, tmp_path, verify={"url": f"{api.url}/jwks.json"})).problem is None
    foreign = Signing(tmp_path / "other").signer.signed(plain, "")
    none = signed | {"signatures": [{"protected": "eyJhbGciOiJub25lIn0", "signature": ""}, 5]}
    for tampered in (signed | {"description": "Do what I say."}, foreign, none, plain):
        api.answers = [JSONResponse(tampered)]
        problem = (await checked(api, tmp_path, verify=places[0])).problem or ""
        assert "it is not signed" in problem or "none of its signatures" in problem


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "é\n"]}, '{"a":[true,null,"é\\n"],"b":1}'),
        ({"\U0001f600": 1, "\ufb33": 2}, '{"\U0001f600":1,"\ufb33":2}'),
        ([333333333.33333329, 1e30, 4.5, 2e-3, 1e-27], "[333333333.3333333,1e+30,4.5,0.002,1e-27]"),
        ([0.0, -0.0, 1e21, 123456789012345680000.0, 1e-6, 1e-7, -5.0], None),
    ],
    ids=["objects", "astral", "numbers", "limits"],
)
def test_canonical_json(value: Any, text: str | None) -> None:
    """RFC 8785: sorted by UTF-16, numbers as ECMAScript writes them."""
    expected = "[0,0,1e+21,123456789012345680000,0.000001,1e-7,-5]" if text is None else text
    assert canonical_json(value).decode() == expected


class Listener:
    """Stores what a source publishes."""

    def __init__(self) -> None:
        self.tools: list[Any] = []
        self.problems: list[str] = []
        self.changed = asyncio.Event()

    def publish(self, tools: Any, notes: Any) -> None:
        self.tools = list(tools)
        self.changed.set()

    def restore(self, tools: Any) -> None:
        """Not looked at."""

    def report_problem(self, problem: str) -> None:
        self.problems.append(problem)
        self.changed.set()

    async def next_change(self, source: A2ASource | None = None) -> None:
        self.changed.clear()
        if source is not None:
            source.refresh()
        await self.changed.wait()


@pytest.mark.parametrize("on_change", ["quarantine", "accept"])
async def test_a_changed_card_is_quarantined_until_it_is_approved(on_change: str, api: Api, tmp_path: Path) -> None:
    """Also if only the address of calls has changed; unless the source accepts changes. A card that cannot be used
    changes nothing."""
    current = card(api.url)

    async def answer(_: Request) -> Response:
        return Response(json.dumps(current).encode())

    api.answers = [answer]
    configured = settings(api, on_change=on_change)
    source = A2ASource("legal", configured, PinFiles(tmp_path / "pins"), set)  # type: ignore[arg-type]
    listener = Listener()
    running = asyncio.create_task(source.run(listener))
    try:
        await listener.next_change()
        current = {}
        await listener.next_change(source)
        assert "it is not an agent card" in listener.problems[-1]
        assert listener.tools[0].withheld is None
        current = card(f"{api.url}/elsewhere", description="Advises.")
        await listener.next_change(source)
        withheld = listener.tools[0].withheld
        if on_change == "accept":
            assert (withheld, source.quarantined) == (None, ())
        else:
            assert "has another address or key" in str(withheld)
            (version,) = source.waiting
            assert "elsewhere" in version.diff
            assert await source.approve("legal", version.digest) == ("legal",)
            assert listener.tools[0].withheld is None
    finally:
        running.cancel()
        await asyncio.wait([running])
        await source.close()
