"""The addresses at which the nodes of a cluster reach each other."""

import errno

import msgspec

from ...protocol.daemon_address import http_url, websocket_url
from ...store import NodeRow


class NodeAddress(msgspec.Struct, frozen=True):
    """The ports of a node, as its peers connect to them."""

    websocket: str
    """Such as ``ws://10.0.0.5:8079/``."""
    http: str
    """Such as ``http://10.0.0.5:8080/``."""


def node_address(host: str, port: int, http_port: int, *, tls: bool) -> str:
    """Returns the text that a node announces as its address, for ``address_of``."""
    return msgspec.json.encode(NodeAddress(websocket_url(host, port, tls=tls), http_url(host, http_port))).decode()


def address_of(node: NodeRow) -> NodeAddress | None:
    """Returns the address that a node has announced; None if it has announced none, or in the format of another
    version.
    """
    return decode_node_address(node.address)


def decode_node_address(announced: str) -> NodeAddress | None:
    """Decodes a text that ``node_address`` returned; None for any other text."""
    try:
        return msgspec.json.decode(announced, type=NodeAddress)
    except msgspec.DecodeError:
        return None


def is_refused(error: BaseException) -> bool:
    """Whether an attempt to connect failed because nothing listens at the address. Other failures do not show that the
    node has ended. For several addresses, asyncio reports one error.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ECONNREFUSED
    if isinstance(error, OSError) and "refused" in str(error):
        return True
    if isinstance(error, BaseExceptionGroup):
        return any(is_refused(each) for each in error.exceptions)
    cause = error.__cause__ or error.__context__
    return cause is not None and is_refused(cause)
