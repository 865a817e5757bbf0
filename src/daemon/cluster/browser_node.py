"""Finds the node at which a browser is signed in to the dashboard. Pure."""

from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from ..dispatch import node_of_token


@dataclass(frozen=True, slots=True)
class BrowserNode:
    """Finds the node of a browser by its cookie, or by the link that signs it in."""

    name: str
    """The name of this node."""
    cookie: str

    def other_node(self, scope: Scope) -> str | None:
        """The name of the other node where the browser is signed in. None if it is signed in at this node or at none,
        or if the request is not for the dashboard.
        """
        path: str = scope["path"]
        if not path.startswith("/ui/") or path.startswith(("/ui/assets/", "/ui/sign-in")):
            return None
        if path == "/ui/open":
            secret = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])[0]
        else:
            secret = cookie_parser(Headers(scope=scope).get("cookie", "")).get(self.cookie, "")
        node = node_of_token(secret)
        return None if node in {"", self.name} else node
