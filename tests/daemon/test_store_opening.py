"""Whether a process may still listen at the address that a node announced."""

import socket

import pytest
from toold.daemon.cluster.node_address import node_address
from toold.daemon.store_opening import listens


def test_a_port_that_is_open_or_closed() -> None:
    """Only a refused connection shows that nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        address = node_address("127.0.0.1", port, 1, tls=False)
        assert listens(address)
    assert not listens(address)


@pytest.mark.parametrize("announced", ["", "something else", node_address("host.invalid", 8079, 8080, tls=False)])
def test_an_address_that_cannot_be_tried(announced: str) -> None:
    """A node that announced nothing, or whose name cannot be resolved, may run."""
    assert listens(announced)
