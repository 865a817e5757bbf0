"""Tokens that name a node."""

import pytest
from toold.daemon.dispatch.node_tokens import MARK_CHARS, NodeTokens, named_token, node_mark, node_of_token
from toold.store import NodeRow, SessionHeldError

PEER = NodeRow(epoch="b0", name="b.1", address="", details="", state="live", left_s=5, lease_s=10)


@pytest.fixture
def tokens() -> NodeTokens:
    """Those of node ``a``, which knows the node ``b.1``."""
    tokens = NodeTokens()
    tokens.join("a", lambda: [PEER])
    return tokens


def test_a_daemon_that_is_alone_names_nothing() -> None:
    """Its tokens are as they were made, and each is its own."""
    alone = NodeTokens()
    assert (alone.named("secret"), alone.mark) == ("secret", "")
    alone.require_here("b.1~secret")
    alone.require_mark_here(node_mark("b.1"))


def test_a_token_leads_to_its_node(tokens: NodeTokens) -> None:
    """Another living node is named by the error; this node, a dead one and none are served here."""
    assert node_of_token(tokens.named("secret")) == "a"
    with pytest.raises(SessionHeldError) as held:
        tokens.require_here(named_token("b.1", "secret"))
    assert held.value.holder is PEER
    for token in (tokens.named("secret"), "gone~secret", "secret", "", 7, None):
        tokens.require_here(token)


def test_a_mark_leads_to_its_node(tokens: NodeTokens) -> None:
    """Marks are as long as stated, and differ between nodes."""
    assert len(tokens.mark) == MARK_CHARS
    with pytest.raises(SessionHeldError):
        tokens.require_mark_here(node_mark("b.1"))
    for mark in (tokens.mark, node_mark("gone"), ""):
        tokens.require_mark_here(mark)
