"""At which node a browser is signed in."""

import pytest
from toold.daemon.cluster.browser_node import BrowserNode

HERE = BrowserNode("a", "toold_1")


@pytest.mark.parametrize(
    ("path", "cookie", "query", "node"),
    [
        ("/ui/now", "toold_1=b~secret", "", "b"),
        ("/ui/now", "other=x; toold_1=b~secret", "", "b"),
        ("/ui/now", "toold_1=a~secret", "", None),
        ("/ui/now", "toold_1=secret", "", None),
        ("/ui/now", "toold_2=b~secret", "", None),
        ("/ui/now", "", "", None),
        ("/ui/open", "", "code=b~secret", "b"),
        ("/ui/open", "toold_1=b~secret", "code=a~secret", None),
        ("/ui/open", "", "", None),
        ("/ui/sign-in", "toold_1=b~secret", "", None),
        ("/ui/assets/x.css", "toold_1=b~secret", "", None),
        ("/mcp", "toold_1=b~secret", "", None),
    ],
)
def test_the_node_of_a_browser(path: str, cookie: str, query: str, node: str | None) -> None:
    """The cookie names it, or the link; what any node can answer, and what is not the dashboard's, names none."""
    headers = [(b"cookie", cookie.encode())] if cookie else []
    scope = {"type": "http", "path": path, "query_string": query.encode(), "headers": headers}
    assert HERE.other_node(scope) == node
