"""Session labels of clients that start with ``initialize``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.transports.mcp.mcp_caller import client_of_label, is_label, make_label, node_of_label
from toold.protocol.tool_call import ClientInfo


@given(st.text(max_size=200), st.sampled_from(["", "0a1b2c3d"]))
def test_labels_are_recognized(name: str, node: str) -> None:
    """Whatever the client's name, its label is short visible ASCII, and names its node in a cluster."""
    label = make_label(ClientInfo(name), node=node)
    assert is_label(label)
    assert node_of_label(label) == node
    assert label.isascii()
    assert 3 <= len(label) <= 64


def test_labels_contain_the_client_name_and_are_unique() -> None:
    """The client's name can be read from the label."""
    label = make_label(ClientInfo("claude-code 2"))
    assert client_of_label(label).name == "claude-code-2"
    assert label != make_label(ClientInfo("claude-code 2"))
    assert client_of_label(make_label(ClientInfo("claude-code 2"), node="0a1b2c3d")).name == "claude-code-2"


@pytest.mark.parametrize(
    "foreign", ["", "x", "0123456789abcdef", "a-0123456789ABCDEF", "a b-0123456789abcdef", "é-0123456789abcdef"]
)
def test_foreign_session_ids_are_not_labels(foreign: str) -> None:
    """Such as those of another server."""
    assert not is_label(foreign)
