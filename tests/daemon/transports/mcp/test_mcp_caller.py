"""Labels of clients that begin with ``initialize``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.transports.mcp.mcp_caller import client_of_label, is_label, make_label
from toold.protocol.tool_call import ClientInfo


@given(st.text(max_size=200))
def test_a_label_is_known_again(name: str) -> None:
    """Whatever a client is called, its label is visible ASCII, short, and taken back."""
    label = make_label(ClientInfo(name))
    assert is_label(label)
    assert label.isascii()
    assert 3 <= len(label) <= 64


def test_it_says_whose_it_is_and_no_two_are_the_same() -> None:
    """The client's name can be read from it."""
    label = make_label(ClientInfo("claude-code 2"))
    assert client_of_label(label).name == "claude-code-2"
    assert label != make_label(ClientInfo("claude-code 2"))


@pytest.mark.parametrize(
    "foreign", ["", "x", "0123456789abcdef", "a-0123456789ABCDEF", "a b-0123456789abcdef", "é-0123456789abcdef"]
)
def test_others_are_none_of_ours(foreign: str) -> None:
    """A session's id of another server is not taken for a label."""
    assert not is_label(foreign)
