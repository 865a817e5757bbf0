"""The endpoint is resolved from the caller, the environment and the state directory."""

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
    ("requested", "env", "announced", "expected"),
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
    requested: EndpointRequest,
    env: dict[str, str],
    announced: Announcement,
    expected: tuple[str, int, bool, str | None],
) -> None:
    """The caller, then TOOLD_…, then EXAI_WS_…, then the state directory, then the default."""
    assert resolve(requested, env, announced) == DaemonEndpoint(*expected)


@pytest.mark.parametrize(
    ("requested", "env", "token", "unannounced"),
    [
        (EndpointRequest(), {}, None, True),
        (EndpointRequest(token="mine"), {}, "mine", False),
        (EndpointRequest(), {"TOOLD_TOKEN": "env"}, "env", False),
        (EndpointRequest("127.0.0.1"), {}, "of the directory", False),
        (EndpointRequest(), {"TOOLD_PORT": "8079"}, "of the directory", False),
    ],
)
def test_the_state_directorys_token_is_not_sent_to_the_default_address(
    requested: EndpointRequest, env: dict[str, str], token: str | None, unannounced: bool
) -> None:
    """Without an announcement any program may listen on 8079."""
    endpoint = resolve(requested, env, Announcement(None, "of the directory"))
    assert (endpoint.token, endpoint.unannounced) == (token, unannounced)


@pytest.mark.parametrize(
    ("requested", "env", "announced", "message"),
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
def test_the_source_of_the_token_is_named(
    requested: EndpointRequest, env: dict[str, str], announced: Announcement, message: str
) -> None:
    """For the error if it is rejected; the token itself is not shown."""
    endpoint = resolve(requested, env, announced)
    assert message in endpoint.token_source
    assert endpoint.token is None or endpoint.token not in endpoint.token_source


@given(host=st.from_regex(r"[a-z]{3,10}\.example", fullmatch=True), port=st.none() | st.integers(1, 65535))
def test_the_local_token_goes_to_no_other_machine(host: str, port: int | None) -> None:
    """The state directory's token is only for this machine's daemon."""
    assert resolve(EndpointRequest(host, port), {}, ANNOUNCED).token is None


def test_the_token_goes_to_the_announced_address_even_if_it_is_not_loopback() -> None:
    """A daemon that listens on the machine's network address is still this machine's daemon."""
    lan = DaemonAddress(pid=1, host="192.0.2.7", port=1, http_port=2, tls=True, auth=True, version="1")
    assert resolve(EndpointRequest(), {}, Announcement(lan, "t")) == DaemonEndpoint("192.0.2.7", 1, True, "t")


def test_a_url_may_have_a_path() -> None:
    """Behind a proxy the daemon may be at ``/ws``."""
    endpoint = resolve(EndpointRequest("wss://tools.example/ws"), {}, ANNOUNCED)
    assert endpoint.url == "wss://tools.example:443/ws"
    assert resolve(EndpointRequest(), {}, ANNOUNCED).url == "ws://127.0.0.1:4711/"


def test_an_announced_wildcard_is_reached_by_loopback() -> None:
    """If the daemon listens on all addresses, the client connects to loopback."""
    wildcard = "0.0.0.0"  # noqa: S104 - nothing is bound
    everywhere = DaemonAddress(pid=1, host=wildcard, port=1, http_port=2, tls=False, auth=True, version="1")
    assert resolve(EndpointRequest(), {}, Announcement(everywhere)).host == "127.0.0.1"


@pytest.mark.parametrize(
    ("requested", "env", "named"),
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
def test_an_invalid_address_is_refused(requested: EndpointRequest, env: dict[str, str], named: str) -> None:
    """The error names its origin."""
    with pytest.raises(ValueError, match=named):
        resolve(requested, env, Announcement())


def test_the_state_directory_is_read(tmp_path: Path) -> None:
    """Address and token come from its two files; the token without a line end."""
    (tmp_path / "daemon.json").write_bytes(encode_address(HERE))
    (tmp_path / "token").write_text("secret token\n")
    assert read_announcement(tmp_path) == Announcement(HERE, "secret token")


def test_a_missing_state_directory_announces_nothing(tmp_path: Path) -> None:
    """Without a state directory there is no address, and no error."""
    assert read_announcement(tmp_path / "nowhere") == Announcement()


def test_unreadable_files_are_ignored_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A broken address file, and a token that is a directory."""
    (tmp_path / "daemon.json").write_text('{"pid": ')
    (tmp_path / "token").mkdir()
    with caplog.at_level(logging.WARNING, "toold.client"):
        assert read_announcement(tmp_path) == Announcement()
    assert [record.getMessage().split(" is ignored")[0] for record in caplog.records] == [
        str(tmp_path / "daemon.json"),
        str(tmp_path / "token"),
    ]


def test_the_local_token_is_from_the_environment_or_the_state_directory(tmp_path: Path) -> None:
    """``TOOLD_TOKEN`` takes precedence over the file."""
    env = {"TOOLD_STATE_DIR": str(tmp_path)}
    assert local_token(env) is None
    (tmp_path / "token").write_text("from the file")
    assert local_token(env) == "from the file"
    assert local_token(env | {"TOOLD_TOKEN": "from the environment"}) == "from the environment"


def test_no_repr_shows_a_token() -> None:
    """Tokens are hidden, so that they are not printed or logged."""
    requested = EndpointRequest(token="geheim")
    shown = repr((requested, Announcement(token="geheim"), resolve(requested, {}, Announcement())))
    assert "geheim" not in shown
