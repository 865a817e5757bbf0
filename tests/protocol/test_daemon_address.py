"""Both sides look for the daemon in the same place."""

from pathlib import Path

import msgspec
import pytest
from toold.protocol.daemon_address import (
    DaemonAddress,
    connectable,
    decode_address,
    default_state_dir,
    encode_address,
    is_loopback,
    websocket_url,
)


def test_the_state_directory_can_be_named(tmp_path: Path) -> None:
    """``TOOLD_STATE_DIR`` overrides the platform's directory; an empty value counts as unset."""
    assert default_state_dir({"TOOLD_STATE_DIR": str(tmp_path)}) == tmp_path
    assert default_state_dir({"TOOLD_STATE_DIR": ""}).name == "toold"


def test_an_address_round_trips() -> None:
    """Clients decode the file that the daemon encodes."""
    address = DaemonAddress(1, "127.0.0.1", 8079, 8080, False, True, "0.1.0")
    assert decode_address(encode_address(address)) == address
    with pytest.raises(msgspec.DecodeError):
        decode_address(b'{"pid":1}')


def test_urls() -> None:
    """IPv6 addresses are in brackets; TLS changes the scheme to wss."""
    assert websocket_url("127.0.0.1", 8079) == "ws://127.0.0.1:8079/"
    assert websocket_url("::1", 1, tls=True) == "wss://[::1]:1/"


@pytest.mark.parametrize(
    ("host", "url", "http_url"),
    [
        ("127.0.0.1", "wss://127.0.0.1:1/", "http://127.0.0.1:2/"),
        ("::1", "wss://[::1]:1/", "http://[::1]:2/"),
        ("0.0.0.0", "wss://127.0.0.1:1/", "http://127.0.0.1:2/"),  # noqa: S104 - nothing is bound
        ("::", "wss://[::1]:1/", "http://[::1]:2/"),
        ("tools.example", "wss://tools.example:1/", "http://tools.example:2/"),
    ],
)
def test_urls_name_a_host_to_connect_to(host: str, url: str, http_url: str) -> None:
    """Whatever address the daemon listens on, both URLs reach it from this machine."""
    address = DaemonAddress(1, host, 1, 2, True, True, "0.1.0")
    assert (address.url, address.http_url) == (url, http_url)


@pytest.mark.parametrize("host", ["0", "", "localhost", "::2", "10.0.0.1"])
def test_only_wildcards_are_replaced(host: str) -> None:
    """Other hosts are used as they are."""
    assert connectable(host) == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.255.0.1", "::1", "localhost", "LocalHost"])
def test_loopback(host: str) -> None:
    """Only this machine reaches these."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["::", "10.0.0.1", "localhost.example", "127.0.0.1.example", "", "128.0.0.1"])
def test_not_loopback(host: str) -> None:
    """Wildcards, other addresses and names that merely begin like loopback names."""
    assert not is_loopback(host)
