"""``toold sources login``: the link, the redirect, and what the daemon gets of it."""

import json
import threading
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from .conftest import Operated, Run

LINK = "https://auth.example/authorize?state=s"
ANSWER = {"state": "s", "code": "c", "issuer_path": "0123"}


def test_the_redirect_reaches_the_daemon(operated: Operated, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the end of its path, which names the issuer. A request with another state does not end the wait."""
    operated.answers["POST /operator/sources/hub/login"] = (200, {"url": LINK})
    operated.answers["POST /operator/login"] = (200, {"source": "hub"})
    opened: list[threading.Thread] = []

    def browse(link: str) -> None:
        assert link == LINK
        redirect = parse_qs(urlsplit(operated.requests[0].path).query)["redirect_uri"][0]

        def visit() -> None:
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"{redirect}/0123?state=guessed&code=x")  # noqa: S310 - http on loopback
            urlopen(f"{redirect}/0123?state=s&code=c&other=1").close()  # noqa: S310 - as above

        opened.append(threading.Thread(target=visit))
        opened[0].start()

    monkeypatch.setattr("webbrowser.open", browse)
    result = run("sources", "login", "hub")
    opened[0].join()
    assert result.output.splitlines() == [f"Sign in at {LINK}", "hub: signed in"]
    assert json.loads(operated.requests[-1].body) == ANSWER


def test_a_pasted_address_reaches_the_daemon(operated: Operated, run: Run) -> None:
    """The address of the page that the browser shows after the sign-in."""
    operated.answers["POST /operator/sources/hub/login"] = (200, {"url": LINK})
    operated.answers["POST /operator/login"] = (200, {"source": "hub"})
    result = run("sources", "login", "--paste", "hub", stdin="http://127.0.0.1:9/callback/0123?state=s&code=c\n")
    assert result.exit_code == 0, result.output
    assert json.loads(operated.requests[-1].body) == ANSWER
