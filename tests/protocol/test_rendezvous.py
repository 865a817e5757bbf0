"""Both sides look for the daemon in the same place."""

from pathlib import Path

import msgspec
import pytest
from toold.protocol.rendezvous import Address, decode_address, default_state_dir, encode_address, websocket_url


def test_the_state_folder_can_be_named(tmp_path: Path) -> None:
    """``TOOLD_STATE_DIR`` wins over the platform's folder; empty is not set."""
    assert default_state_dir({"TOOLD_STATE_DIR": str(tmp_path)}) == tmp_path
    assert default_state_dir({"TOOLD_STATE_DIR": ""}).name == "toold"


def test_an_address_is_read_as_it_was_written() -> None:
    """The file that the daemon writes is the one that clients understand."""
    address = Address(1, "127.0.0.1", 8079, 8080, False, True, "0.1.0")
    assert decode_address(encode_address(address)) == address
    with pytest.raises(msgspec.DecodeError):
        decode_address(b'{"pid":1}')


def test_urls_fit_their_host() -> None:
    """IPv6 addresses stand in brackets, TLS makes it wss."""
    assert websocket_url("127.0.0.1", 8079) == "ws://127.0.0.1:8079/"
    assert websocket_url("::1", 1, tls=True) == "wss://[::1]:1/"
