"""Where a client connects to, decided from what the caller, the environment and the state directory say."""

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.client.daemon_endpoint import (
    Announcement,
    DaemonEndpoint,
    EndpointRequest,
    local_token,
    read_announcement,
    resolve,
)
from toold.protocol.daemon_address import DaemonAddress, encode_address

HERE = DaemonAddress(pid=1, host="127.0.0.1", port=4711, http_port=4712, tls=False, auth=True, version="1")
ANNOUNCED = Announcement(HERE, "token of the state directory")


@pytest.mark.parametrize(
    ("wanted", "env", "announced", "expected"),
    [
        (EndpointRequest(), {}, Announcement(), ("127.0.0.1", 8079, False, None)),
        (EndpointRequest(), {}, ANNOUNCED, ("127.0.0.1", 4711, False, "token of the state directory")),
        (EndpointRequest(), {"EXAI_WS_HOST": "old.example"}, Announcement(), ("old.example", 8079, False, None)),
        (
            EndpointRequest(),
            {"TOOLD_HOST": "new.example", "EXAI_WS_HOST": "old.example", "TOOLD_PORT": "1", "EXAI_WS_PORT": "2"},
            ANNOUNCED,
            ("new.example", 1, False, None),
        ),
        (EndpointRequest(token="mine"), {"TOOLD_TOKEN": "env"}, ANNOUNCED, ("127.0.0.1", 4711, False, "mine")),
        (EndpointRequest(), {"EXAI_WS_TOKEN": "old"}, ANNOUNCED, ("127.0.0.1", 4711, False, "old")),
        (
            EndpointRequest(),
            {"TOOLD_TOKEN": "new", "EXAI_WS_TOKEN": "old"},
            ANNOUNCED,
            ("127.0.0.1", 4711, False, "new"),
        ),
        (EndpointRequest("localhost"), {}, ANNOUNCED, ("localhost", 4711, False, "token of the state directory")),
        (
            EndpointRequest(port=9),
            {"TOOLD_PORT": "8"},
            ANNOUNCED,
            ("127.0.0.1", 9, False, "token of the state directory"),
        ),
        (EndpointRequest(), {"TOOLD_PORT": "0"}, ANNOUNCED, ("127.0.0.1", 4711, False, "token of the state directory")),
        (EndpointRequest(), {"TOOLD_HOST": ""}, Announcement(), ("127.0.0.1", 8079, False, None)),
        (EndpointRequest("0.0.0.0"), {}, Announcement(), ("127.0.0.1", 8079, False, None)),  # noqa: S104 - nothing is bound
        (EndpointRequest("::"), {}, Announcement(), ("::1", 8079, False, None)),
        (EndpointRequest("[::1]"), {}, Announcement(), ("::1", 8079, False, None)),
        (EndpointRequest("wss://tools.example:8443/"), {}, ANNOUNCED, ("tools.example", 8443, True, None)),
        (EndpointRequest("wss://tools.example"), {}, ANNOUNCED, ("tools.example", 443, True, None)),
        (EndpointRequest("ws://tools.example"), {}, ANNOUNCED, ("tools.example", 80, False, None)),
        (EndpointRequest("ws://[::1]:5/"), {}, Announcement(), ("::1", 5, False, None)),
        (EndpointRequest(tls=True), {}, Announcement(), ("127.0.0.1", 8079, True, None)),
        (
            EndpointRequest(tls=False),
            {"TOOLD_HOST": "wss://tools.example"},
            Announcement(),
            ("tools.example", 443, False, None),
        ),
    ],
)
def test_explicit_before_environment_before_announcement_before_default(
    wanted: EndpointRequest, env: dict[str, str], announced: Announcement, expected: tuple[str, int, bool, str | None]
) -> None:
    """What the caller says counts first, then TOOLD_…, then EXAI_WS_…, then the state directory, then the default."""
    assert resolve(wanted, env, announced) == DaemonEndpoint(*expected)


@pytest.mark.parametrize(
    ("wanted", "env", "token", "unannounced"),
    [
        (EndpointRequest(), {}, None, True),
        (EndpointRequest(token="mine"), {}, "mine", False),
        (EndpointRequest(), {"TOOLD_TOKEN": "env"}, "env", False),
        (EndpointRequest("127.0.0.1"), {}, "of the directory", False),
        (EndpointRequest(), {"TOOLD_PORT": "8079"}, "of the directory", False),
    ],
)
def test_the_state_directories_token_goes_to_no_address_that_nobody_named(
    wanted: EndpointRequest, env: dict[str, str], token: str | None, unannounced: bool
) -> None:
    """Where a token lies in the state directory and no daemon announces itself, 8079 may be anybody's."""
    endpoint = resolve(wanted, env, Announcement(None, "of the directory"))
    assert (endpoint.token, endpoint.unannounced) == (token, unannounced)


@pytest.mark.parametrize(
    ("wanted", "env", "announced", "said"),
    [
        (EndpointRequest(token="mine"), {"TOOLD_TOKEN": "env"}, ANNOUNCED, "passed as token="),
        (
            EndpointRequest(),
            {"TOOLD_TOKEN": "env"},
            ANNOUNCED,
            "TOOLD_TOKEN was sent; unset it to use the state directory's",
        ),
        (EndpointRequest(), {"EXAI_WS_TOKEN": "env"}, Announcement(), "EXAI_WS_TOKEN was sent; correct it"),
        (EndpointRequest("tools.example"), {"TOOLD_TOKEN": "env"}, ANNOUNCED, "TOOLD_TOKEN was sent; correct it"),
        (EndpointRequest(), {}, ANNOUNCED, "the state directory was sent"),
        (EndpointRequest(), {}, Announcement(), "No token was sent"),
    ],
)
def test_where_the_token_came_from_is_known(
    wanted: EndpointRequest, env: dict[str, str], announced: Announcement, said: str
) -> None:
    """Where it is refused, one has to know which of the places to mend; the token itself is not told."""
    endpoint = resolve(wanted, env, announced)
    assert said in endpoint.token_source
    assert endpoint.token is None or endpoint.token not in endpoint.token_source


@given(host=st.from_regex(r"[a-z]{3,10}\.example", fullmatch=True), port=st.none() | st.integers(1, 65535))
def test_the_local_token_goes_to_no_other_machine(host: str, port: int | None) -> None:
    """The state directory's token is for this machine's daemon; another host that is named never gets it."""
    assert resolve(EndpointRequest(host, port), {}, ANNOUNCED).token is None


def test_the_token_goes_to_the_announced_address_even_if_it_is_not_loopback() -> None:
    """A daemon that listens on the machine's network address is this machine's daemon all the same."""
    lan = DaemonAddress(pid=1, host="192.0.2.7", port=1, http_port=2, tls=True, auth=True, version="1")
    assert resolve(EndpointRequest(), {}, Announcement(lan, "t")) == DaemonEndpoint("192.0.2.7", 1, True, "t")


def test_an_address_may_have_a_path() -> None:
    """Behind a proxy the daemon may be at ``/ws``, and that is where the client connects."""
    endpoint = resolve(EndpointRequest("wss://tools.example/ws"), {}, ANNOUNCED)
    assert endpoint.url == "wss://tools.example:443/ws"
    assert resolve(EndpointRequest(), {}, ANNOUNCED).url == "ws://127.0.0.1:4711/"


def test_an_announced_wildcard_is_reached_by_loopback() -> None:
    """Where the daemon listens on all addresses, the client connects to this machine's own."""
    wildcard = "0.0.0.0"  # noqa: S104 - nothing is bound
    everywhere = DaemonAddress(pid=1, host=wildcard, port=1, http_port=2, tls=False, auth=True, version="1")
    assert resolve(EndpointRequest(), {}, Announcement(everywhere)).host == "127.0.0.1"


@pytest.mark.parametrize(
    ("wanted", "env", "named"),
    [
        (EndpointRequest(port=0), {}, "port"),
        (EndpointRequest(port=65536), {}, "port"),
        (EndpointRequest(), {"TOOLD_PORT": "http"}, "TOOLD_PORT"),
        (EndpointRequest(), {"TOOLD_PORT": "70000"}, "TOOLD_PORT"),
        (EndpointRequest(), {"EXAI_WS_PORT": "-1"}, "EXAI_WS_PORT"),
        (EndpointRequest("http://tools.example"), {}, "http://tools.example"),
        (EndpointRequest("ws://tools.example/a b"), {}, "ws://tools.example/a b"),
        (EndpointRequest("ws://tools.example/?token=x"), {}, "is not an address"),
        (EndpointRequest("ws://tools.example:99999"), {}, "99999"),
        (EndpointRequest("ws://"), {}, "ws://"),
        (EndpointRequest("127.0.0.1:8079"), {}, "port separately"),
        (EndpointRequest("two words"), {}, "two words"),
        (EndpointRequest(), {"TOOLD_HOST": "a/b"}, "a/b"),
        (EndpointRequest("user@host"), {}, "user@host"),
    ],
)
def test_what_cannot_be_an_address_is_named(wanted: EndpointRequest, env: dict[str, str], named: str) -> None:
    """A wrong host or port is refused with the place where it came from."""
    with pytest.raises(ValueError, match=named):
        resolve(wanted, env, Announcement())


def test_the_state_directory_is_read(tmp_path: Path) -> None:
    """Address and token come from the two files of the state directory, the token without its line's end."""
    (tmp_path / "daemon.json").write_bytes(encode_address(HERE))
    (tmp_path / "token").write_text("secret token\n")
    assert read_announcement(tmp_path) == Announcement(HERE, "secret token")


def test_a_state_directory_that_is_not_there_announces_nothing(tmp_path: Path) -> None:
    """No directory, no files and no error."""
    assert read_announcement(tmp_path / "nowhere") == Announcement()


def test_unreadable_files_are_ignored_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A broken address file and a token that is a directory count as missing, and the log names both."""
    (tmp_path / "daemon.json").write_text('{"pid": ')
    (tmp_path / "token").mkdir()
    with caplog.at_level(logging.WARNING, "toold.client"):
        assert read_announcement(tmp_path) == Announcement()
    assert [record.getMessage().split(" is ignored")[0] for record in caplog.records] == [
        str(tmp_path / "daemon.json"),
        str(tmp_path / "token"),
    ]


def test_the_local_token_is_the_environments_else_the_directories(tmp_path: Path) -> None:
    """``TOOLD_TOKEN`` counts before the file, and the file where it is not set."""
    env = {"TOOLD_STATE_DIR": str(tmp_path)}
    assert local_token(env) is None
    (tmp_path / "token").write_text("from the file")
    assert local_token(env) == "from the file"
    assert local_token(env | {"TOOLD_TOKEN": "from the environment"}) == "from the environment"


def test_no_repr_shows_a_token() -> None:
    """Tokens are left out of what is printed and logged."""
    wanted = EndpointRequest(token="geheim")
    shown = repr((wanted, Announcement(token="geheim"), resolve(wanted, {}, Announcement())))
    assert "geheim" not in shown
