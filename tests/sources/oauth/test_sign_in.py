"""Signing in to a real authorization server: the daemon, each user, and a client by its credentials."""

import asyncio
import json
import re
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.daemon.transports.dashboard.conftest import browser_of

from .oauth_world import ROBOT_SECRET, OAuthWorld

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


def replaying(body: bytes, app: ASGIApp) -> ASGIApp:
    """The app, for a request whose body has been read."""

    async def replayed(scope: Scope, receive: Receive, send: Send) -> None:
        pending = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def body_first() -> Message:
            return next(pending, None) or await receive()

        await app(scope, body_first, send)

    return replayed


def text(result: dict[str, Any]) -> str:
    return json.dumps(result)


async def test_the_daemon_signs_in_and_renews_its_token(oauth: OAuthWorld) -> None:
    """Without a sign-in the source says what to do; many calls at the end of a token renew it once."""
    assert "`toold sources login shared`" in await oauth.problem("shared", "needs a sign-in")
    answer = await oauth.sign_in("olga")
    assert answer.json() == {"source": "shared"}
    await oauth.ready("shared")
    assert "olga with [bound]" in text(await oauth.whoami("ann", "shared"))
    oauth.grants.access.clear()  # the server rejects the token from now on
    before = oauth.grants.refreshed
    answers = await asyncio.gather(*(oauth.whoami("ann", "shared") for _ in range(5)))
    assert ["olga with [bound]" in text(answer) for answer in answers] == [True] * 5
    assert oauth.grants.refreshed == before + 1


async def test_a_late_refusal_does_not_renew_a_new_token(oauth: OAuthWorld) -> None:
    """A refused request compares the token that it had itself, not that of a later request."""
    await oauth.sign_in("olga")
    await oauth.ready("shared")
    arrived, released = asyncio.Event(), asyncio.Event()

    async def refusing_late(request: Request) -> ASGIApp:
        body = await request.body()
        if arrived.is_set() or b"tools/call" not in body:
            return replaying(body, oauth.servers.mcp)
        arrived.set()
        await released.wait()
        return Response(status_code=401, headers={"www-authenticate": "Bearer"})

    oauth.servers.overrides["/mcp"] = refusing_late
    oauth.grants.access.clear()
    before = oauth.grants.refreshed
    first = asyncio.create_task(oauth.whoami("ann", "shared"))
    await arrived.wait()
    assert "olga with [bound]" in text(await oauth.whoami("ann", "shared"))
    released.set()
    assert "olga with [bound]" in text(await first)
    del oauth.servers.overrides["/mcp"]
    assert oauth.grants.refreshed == before + 1


async def test_no_token_is_kept_or_shown_in_plain_text(oauth: OAuthWorld) -> None:
    """Not in the state directory either, where the audit and the results are."""
    await oauth.sign_in("olga")
    await oauth.ready("shared")
    await oauth.whoami("ann", "shared")
    kept = b"".join(path.read_bytes() for path in (oauth.directory / "state").rglob("*") if path.is_file())
    assert oauth.grants.issued
    assert not [token for token in (*oauth.grants.issued, ROBOT_SECRET) if token.encode() in kept]


async def test_each_user_signs_in_for_themselves(oauth: OAuthWorld) -> None:
    """The error has a link that starts the sign-in of this caller; it works once, and in one browser."""
    assert (await oauth.sign_in("olga", "own")).status_code == 200  # the daemon lists the tools
    await oauth.ready("own")
    for caller in ("ann", "bob"):
        error = (await oauth.whoami(caller, "own"))["_meta"]["toold/error"]
        assert error["code"] == "PERMISSION_DENIED", error
        link = error["details"]["sign_in"]["url"]
        assert link in error["message"]
        page = await oauth.http.get(link)
        assert caller in page.text
        started = await oauth.http.post(link)
        assert started.status_code == 303, started.text
        answer = await oauth.agree(started.headers["location"], caller.upper())
        ended = await oauth.redirected(answer)
        assert "Signed in to own" in ended.text
        assert (await oauth.http.get(link)).status_code == 404
        assert f"{caller.upper()} with [bound]" in text(await oauth.whoami(caller, "own"))
    assert "ANN with" in text(await oauth.whoami("ann", "own"))


async def test_a_stolen_redirect_is_refused_in_another_browser(oauth: OAuthWorld) -> None:
    """The address of the redirect is worthless without the cookie, and after its first use."""
    await oauth.operator("POST", "/sources/own/logout?principal=token:ann")
    await oauth.sign_in("olga", "own")
    await oauth.ready("own")
    error = (await oauth.whoami("ann", "own"))["_meta"]["toold/error"]
    link = error["details"]["sign_in"]["url"]
    answer = await oauth.agree((await oauth.http.post(link)).headers["location"], "MALLORY")
    oauth.http.cookies.clear()
    for _ in range(2):
        assert (await oauth.redirected(answer)).status_code == 400
    assert (await oauth.whoami("ann", "own"))["isError"] is True


@pytest.mark.parametrize(
    "change",
    [{"state": "guessed"}, {"iss": "https://evil.example"}, {"code": "stolen"}, {"issuer_path": "0123456789abcdef"}],
)
async def test_a_forged_answer_signs_nobody_in(oauth: OAuthWorld, change: dict[str, str]) -> None:
    """An unknown state, another issuer, another's code, and the redirect address of another issuer."""
    answer = await oauth.agree(await oauth.link(), "olga")
    assert (await oauth.operator("POST", "/login", answer | change)).status_code >= 400


async def test_a_code_of_another_verifier_is_refused(oauth: OAuthWorld) -> None:
    """PKCE: the code of one sign-in does not end another, as the authorization server checks."""
    first = await oauth.agree(await oauth.link(), "olga")
    second = await oauth.agree(await oauth.link(), "olga")
    refused = await oauth.operator("POST", "/login", second | {"code": first["code"]})
    assert "invalid_grant" in refused.text


async def test_a_client_gets_tokens_by_its_credentials(oauth: OAuthWorld) -> None:
    """And more scopes, if the server demands them; its secret goes to the configured issuer only."""
    forms: list[dict[str, Any]] = []

    async def metadata(_: Request) -> Response:
        issuer = f"{oauth.url}/machine"
        endpoints = {"authorization_endpoint": f"{issuer}/authorize", "token_endpoint": f"{issuer}/token"}
        return JSONResponse(
            {"issuer": issuer, **endpoints, "token_endpoint_auth_methods_supported": ["client_secret_post"]}
        )

    async def token(request: Request) -> Response:
        form = dict(await request.form())
        forms.append(form)
        scopes = str(form.get("scope", "")).split()
        return JSONResponse(
            oauth.grants.issue("robot", scopes, None, str(form["resource"])).model_dump(exclude={"refresh_token"})
        )

    oauth.servers.overrides |= {
        "/.well-known/oauth-authorization-server/machine": metadata,
        "/machine/token": token,
    }
    await oauth.ready("machine")
    assert "robot with [bound]" in text(await oauth.whoami("ann", "machine"))
    assert forms[-1]["client_secret"] == ROBOT_SECRET
    assert forms[-1]["resource"] == f"{oauth.url}/mcp"
    forbidden = 'Bearer error="insufficient_scope", scope="write"'

    async def demanding(request: Request) -> Response:
        token = oauth.grants.access.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if token is None or token.client_id != "robot":
            return Response(status_code=503)
        del oauth.servers.overrides["/mcp"]
        return JSONResponse({}, 403, {"www-authenticate": forbidden})

    oauth.servers.overrides["/mcp"] = demanding
    while forms[-1]["scope"].split() != ["read", "write"]:
        assert "robot with [bound]" in text(await oauth.whoami("ann", "machine"))


async def test_hostile_metadata_and_registrations_are_refused(oauth: OAuthWorld) -> None:
    """Redirects, private addresses, other issuers and endless answers: the sign-in fails with the reason."""

    async def redirecting(_: Request) -> Response:
        return RedirectResponse("https://evil.example/")

    async def other_issuer(_: Request) -> Response:
        endpoints = {"authorization_endpoint": f"{oauth.url}/authorize", "token_endpoint": f"{oauth.url}/token"}
        return JSONResponse({"issuer": "https://evil.example", **endpoints})

    async def disguised(_: Request) -> Response:
        endpoints = {"authorization_endpoint": "https://good.example@evil.example", "token_endpoint": oauth.url}
        pkce = {"code_challenge_methods_supported": ["S256"]}
        return JSONResponse({"issuer": oauth.url, **endpoints, **pkce})

    async def other_server(_: Request) -> Response:
        return JSONResponse({"resource": f"{oauth.url}/mcp", "authorization_servers": ["http://169.254.169.254"]})

    async def other_resource(_: Request) -> Response:
        return JSONResponse({"resource": "https://evil.example/mcp", "authorization_servers": [oauth.url]})

    async def metadata_service(_: Request) -> Response:
        return JSONResponse({"resource": f"{oauth.url}/mcp", "authorization_servers": ["https://169.254.169.254"]})

    async def endless(_: Request) -> Response:
        return Response(b"[" * (2 * 1024**2))

    resource, server = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"
    for path, override, expected in (
        (server, redirecting, "redirects, which is refused"),
        (server, other_issuer, "names another issuer"),
        (server, endless, "sent more than 1 MiB"),
        (server, disguised, "an address with a user name"),
        (resource, other_resource, "about another resource"),
        (resource, other_server, "without encryption"),
        (resource, metadata_service, "cloud metadata service"),
    ):
        oauth.servers.overrides[path] = override
        refused = await oauth.operator("POST", "/sources/shared/login?redirect_uri=http://127.0.0.1:9/callback")
        del oauth.servers.overrides[path]
        assert refused.status_code == 503
        assert expected in refused.text, (expected, refused.text)
    oauth.servers.overrides["/register"] = endless
    refused = await oauth.operator("POST", "/sources/shared/login?redirect_uri=http://127.0.0.1:10/callback")
    del oauth.servers.overrides["/register"]
    assert "sent more than 1 MiB" in refused.text
    away = await oauth.operator("POST", "/sources/shared/login?redirect_uri=https://evil.example/")
    assert away.status_code == 400


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        (b"rubbish at-secret", 200, "cannot be renewed: its answer has no token"),
        (b'{"error": "at-secret"}', 400, "refuses (HTTP 400)"),
        (b'{"error": "invalid_grant"}', 400, "`toold sources login shared`"),
    ],
)
async def test_a_failed_renewal_is_a_problem_of_the_source(
    oauth: OAuthWorld, body: bytes, status: int, expected: str
) -> None:
    """With the reason and what to do; what the server sent is not repeated. A new sign-in repairs it."""

    async def failing(_: Request) -> Response:
        return Response(body, status)

    await oauth.sign_in("olga")
    await oauth.ready("shared")
    oauth.servers.overrides["/token"] = failing
    oauth.grants.access.clear()
    problem = await oauth.problem("shared", expected)
    assert "at-secret" not in problem
    assert not re.search("(at|rt)-[0-9a-f]{8}", problem)
    del oauth.servers.overrides["/token"]
    await oauth.sign_in("olga")
    await oauth.ready("shared")


@pytest.mark.parametrize("refused", [True, False])
async def test_a_renewal_does_not_undo_a_newer_sign_in(oauth: OAuthWorld, refused: bool) -> None:
    """A person signs in while the earlier sign-in is being renewed: whatever comes of that, the new one counts."""
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> Response:
        form = dict(await request.form())
        if form["grant_type"] == "authorization_code":
            return JSONResponse(
                oauth.grants.issue(str(form["client_id"]), ["read"], "new", f"{oauth.url}/mcp").model_dump()
            )
        asked.set()
        await answered.wait()
        if refused:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse(
            oauth.grants.issue(str(form["client_id"]), ["read"], "old", f"{oauth.url}/mcp").model_dump()
        )

    await oauth.sign_in("old")
    await oauth.ready("shared")
    oauth.servers.overrides["/token"] = slow
    oauth.grants.access.clear()
    oauth.daemon.sources.refresh()
    await asked.wait()
    assert (await oauth.sign_in("new")).status_code == 200
    answered.set()
    await oauth.ready("shared")
    assert "new with [bound]" in text(await oauth.whoami("ann", "shared"))
    del oauth.servers.overrides["/token"]


async def test_a_token_endpoint_that_redirects_gets_no_code(oauth: OAuthWorld) -> None:
    """Nor does a page for registrations that does: a code, a verifier and a secret go to no other server."""

    async def redirecting(_: Request) -> Response:
        return RedirectResponse("https://evil.example/", 307)

    answer = await oauth.agree(await oauth.link(), "olga")
    oauth.servers.overrides |= {"/token": redirecting, "/register": redirecting}
    refused = await oauth.operator("POST", "/login", answer)
    again = await oauth.operator("POST", "/sources/shared/login?redirect_uri=http://127.0.0.1:11/callback")
    for path in ("/token", "/register"):
        del oauth.servers.overrides[path]
    for failed in (refused, again):
        assert failed.status_code == 503
        assert "redirects, which is refused" in failed.text


async def test_a_user_whose_renewal_fails_is_alone(oauth: OAuthWorld) -> None:
    """The others' sign-ins at the same source stay in use; the error says where to sign in."""
    await oauth.sign_in("olga", "own")
    await oauth.ready("own")
    for caller in ("ann", "bob"):
        await oauth.operator("POST", f"/sources/own/logout?principal=token:{caller}")
        error = (await oauth.whoami(caller, "own"))["_meta"]["toold/error"]
        started = await oauth.http.post(error["details"]["sign_in"]["url"])
        await oauth.redirected(await oauth.agree(started.headers["location"], caller.upper()))

    async def refusing(_: Request) -> Response:
        return JSONResponse({"error": "invalid_grant"}, 400)

    oauth.servers.overrides["/token"] = refusing
    for token in [token for token, access in oauth.grants.access.items() if access.subject == "ANN"]:
        del oauth.grants.access[token]
    failed = (await oauth.whoami("ann", "own"))["_meta"]["toold/error"]
    assert (failed["code"], "sign_in" in failed["details"]) == ("PERMISSION_DENIED", True)
    assert "it has ended (invalid_grant)" in failed["message"]
    assert "BOB with [bound]" in text(await oauth.whoami("bob", "own"))
    del oauth.servers.overrides["/token"]


async def test_a_sign_out_removes_the_tokens(oauth: OAuthWorld) -> None:
    """From then on no request has one."""
    await oauth.sign_in("olga")
    await oauth.ready("shared")
    assert (await oauth.operator("POST", "/sources/shared/logout")).json() == {"removed": True}
    await oauth.problem("shared", "needs a sign-in")
    assert (await oauth.operator("POST", "/sources/nothing/logout")).status_code == 404


async def test_the_daemon_signs_in_from_the_dashboard(oauth: OAuthWorld) -> None:
    """The action gives the operator a link, whose page says for whom it is; its browser ends the sign-in."""
    await oauth.operator("POST", "/sources/shared/logout")
    await oauth.problem("shared", "needs a sign-in")
    async with browser_of(oauth.daemon) as browser:
        page = (await browser.send("/ui/sources/shared/sign-in")).text
        assert (await browser.act("/ui/sources/machine/sign-in")).status_code == 400  # it signs in by itself
    found = re.search(r'class="button" href="([^"]+)"', page)
    assert found is not None
    assert "for all of its callers" in (await oauth.http.get(found[1])).text
    started = await oauth.http.post(found[1])
    answer = await oauth.agree(started.headers["location"], "olga")
    assert "Signed in to shared" in (await oauth.redirected(answer)).text
    await oauth.ready("shared")
