"""Session labels of clients that start with ``initialize``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.transports.mcp.mcp_caller import ClientLabel, make_label, read_label, request_label
from toold.protocol.tool_call import ClientInfo


def labelled(label: str) -> ClientLabel:
    """What a valid label says."""
    read = read_label(label)
    assert read is not None
    return read


@given(st.text(max_size=200), st.sampled_from(["", "0a1b2c3d"]))
def test_labels_are_recognized(name: str, node: str) -> None:
    """Whatever the client's name, its label is short visible ASCII, and names its node in a cluster."""
    label = make_label(ClientInfo(name), node=node)
    assert labelled(label).node == node
    assert label.isascii()
    assert 3 <= len(label) <= 64


def test_labels_contain_the_client_name_and_are_unique() -> None:
    """The client's name can be read from the label."""
    label = make_label(ClientInfo("claude-code 2"))
    assert labelled(label).client.name == "claude-code-2"
    assert label != make_label(ClientInfo("claude-code 2"))
    assert labelled(make_label(ClientInfo("claude-code 2"), node="0a1b2c3d")).client.name == "claude-code-2"


def test_requests_without_a_label_get_different_ones() -> None:
    """So that log lines and audit rows of one request can be found."""
    labels = {request_label(ClientInfo("claude-code 2")) for _ in range(3)}
    assert len(labels) == 3
    assert {labelled(label).client.name for label in labels} == {"claude-code-2"}


@pytest.mark.parametrize(
    "foreign", ["", "x", "0123456789abcdef", "a-0123456789ABCDEF", "a b-0123456789abcdef", "é-0123456789abcdef"]
)
def test_foreign_session_ids_are_not_labels(foreign: str) -> None:
    """Such as those of another server."""
    assert read_label(foreign) is None
