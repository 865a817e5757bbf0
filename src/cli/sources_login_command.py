"""``toold sources login`` and ``logout``: the daemon's sign-in to an MCP server with OAuth.

The daemon creates the link, exchanges the code, and keeps the tokens. This command only opens the browser and receives
the redirect on a loopback port.
"""

import sys
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final, Self
from urllib.parse import parse_qs, quote, urlsplit

import click

from .daemon_connection import CommandFailedError
from .operator_client import daemon_request, operator_request
from .shell_completions import complete_source
from .terminal_output import say

LOGIN_S: Final = 600.0
"""How long to wait for the redirect; equal to the daemon's limit."""
_POLL_S: Final = 1.0
_CALLBACK: Final = "/callback"
_PARTS: Final = ("state", "code", "iss", "error")


@click.command(short_help="Sign the daemon in to an MCP server with OAuth.")
@click.argument("name", shell_complete=complete_source)
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@click.option("--paste", is_flag=True, help="Read the address of the last page in the browser from standard input.")
def login(name: str, no_browser: bool, paste: bool) -> None:
    """Sign the daemon in to the MCP server of the source NAME, in your browser.

    Also prints the link. If the browser runs on another machine, use --paste: after the sign-in the browser shows an
    error page; copy its address. The daemon stores the tokens encrypted.
    """
    with _Redirect() as redirect:
        path = f"/sources/{quote(name, safe='')}/login"
        link = str(operator_request("POST", path, redirect_uri=redirect.uri)["url"])
        state = _answer(link).get("state", "")
        say(f"Sign in at {link}")
        if not (no_browser or paste):
            webbrowser.open(link)
        answer = _pasted() if paste else redirect.wait(state)
    signed = daemon_request("POST", "/operator/login", body=answer)
    say(f"{signed['source']}: signed in")


@click.command(short_help="Remove the daemon's sign-in.")
@click.argument("name", shell_complete=complete_source)
@click.option("--principal", metavar="NAME", help="Remove the sign-in of this caller instead.")
def logout(name: str, principal: str | None) -> None:
    """Remove the daemon's sign-in to the source NAME, or that of a caller.

    The tokens are deleted here; the authorization server may still show the grant.
    """
    query = {} if principal is None else {"principal": principal}
    removed = operator_request("POST", f"/sources/{quote(name, safe='')}/logout", **query)["removed"]
    say(f"{name}: signed out" if removed else f"{name}: there was no sign-in")


def _answer(address: str) -> dict[str, str]:
    """The parts of an authorization server's answer in the query of an address."""
    parts = urlsplit(address)
    query = parse_qs(parts.query)
    answer = {name: query[name][0] for name in _PARTS if len(query.get(name, ())) == 1}
    return answer | {"issuer_path": parts.path.partition(f"{_CALLBACK}/")[2]}


def _pasted() -> dict[str, str]:
    say("Paste the address of the last page in the browser:")
    return _answer(sys.stdin.readline(64 * 1024).strip())


class _Redirect:
    """Listens for the redirect on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        self._answer: dict[str, str] = {}
        self._state = ""
        redirect = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                answer = _answer(self.path)
                # Other programs may send requests, too: only the answer with the state ends the wait.
                path = urlsplit(self.path).path
                known = f"{path}/".startswith(f"{_CALLBACK}/") and answer.get("state") == redirect._state
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.end_headers()
                text = "You can close this page; the command line says whether you are signed in."
                self.wfile.write((text if known else "Nothing is here.").encode())
                if known:
                    redirect._answer = answer

            def log_message(self, *_: Any) -> None:
                """Logs nothing, because the address contains a code."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._server.timeout = _POLL_S

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{_CALLBACK}"

    def wait(self, state: str) -> dict[str, str]:
        """The answer with this state.

        Raises:
            CommandFailedError: it did not come in time.
        """
        self._state = state
        for _ in range(int(LOGIN_S / _POLL_S)):
            self._server.handle_request()
            if self._answer:
                return self._answer
        raise CommandFailedError(f"there was no sign-in within {LOGIN_S:g} s")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.server_close()
