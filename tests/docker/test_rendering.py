"""The container's configuration from its environment."""

import base64
import hashlib
import re
from pathlib import Path

import pytest
from rendering import (
    ContainerError,
    container,
    fill_in,
    htpasswd,
    listen_conf,
    pages_conf,
    state_problem,
    with_secrets,
)

DOCKER = Path(__file__).parents[2] / "docker"


FILES = {"/run/secrets/token": "a token of a file\n", "/run/secrets/empty": "\n"}


def read(path: str) -> str:
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


def test_a_secret_may_be_given_in_a_file() -> None:
    """``TOOLD_TOKEN_FILE`` becomes ``TOOLD_TOKEN``, without the line end; other variables are unchanged."""
    env = {"TOOLD_TOKEN_FILE": "/run/secrets/token", "SSL_CERT_FILE": "/etc/ca.pem"}
    assert with_secrets(env, read) == {"TOOLD_TOKEN": "a token of a file", "SSL_CERT_FILE": "/etc/ca.pem"}


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"KIMI_API_KEY_FILE": "/nowhere"}, "KIMI_API_KEY_FILE names /nowhere, which cannot be read"),
        ({"GLM_API_KEY_FILE": "/run/secrets/empty"}, "which is empty"),
        ({"TOOLD_TOKEN_FILE": "/run/secrets/token", "TOOLD_TOKEN": "x"}, "are both set"),
    ],
)
def test_a_missing_secret_file_prevents_the_start(env: dict[str, str], said: str) -> None:
    """A file that is missing or empty, and a secret given twice, are refused with the variable's name."""
    with pytest.raises(ContainerError, match=said):
        with_secrets(env, read)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"TOOLD_AUTH": "False"}, "port is public"),
        ({"TOOLD_TLS_CERT": "/c.pem"}, "belong together"),
        ({"TOOLD_PUBLIC_PORT": "http"}, "TOOLD_PUBLIC_PORT must be a port"),
        ({"TOOLD_PORT": "70000"}, "TOOLD_PORT must be a port"),
        ({"TOOLD_PORT": "8081"}, "must differ"),
        ({"TOOLD_PAGES_USER": "a:b"}, "no colon"),
        ({"TOOLD_GRACE_PERIOD_S": "long"}, "must be a number of seconds"),
        ({"TOOLD_START_RETRIES": "-1"}, "must be a number from 0"),
    ],
)
def test_an_invalid_environment_is_refused(env: dict[str, str], said: str) -> None:
    """Each setting that would leave the daemon open, or nginx without a place, is named."""
    with pytest.raises(ContainerError, match=said):
        container(env)


def test_the_daemon_is_reachable_only_through_nginx() -> None:
    """Whatever the environment says, the daemon listens on loopback and asks for its token; TLS is nginx's."""
    env = {"TOOLD_HOST": "0.0.0.0", "TOOLD_TLS_CERT": "/c.pem", "TOOLD_TLS_KEY": "/k.pem", "KIMI_API_KEY": "k"}  # noqa: S104
    this = container(env)
    assert this.daemon == {
        "KIMI_API_KEY": "k",
        "TOOLD_HOST": "127.0.0.1",
        "TOOLD_PORT": "8079",
        "TOOLD_HTTP_PORT": "8081",
        "TOOLD_AUTH": "true",
    }
    assert this.url == "wss://127.0.0.1:8080/ws"


def test_the_daemon_does_not_get_the_pages_password() -> None:
    """It is in neither the daemon's environment nor what is printed of the container."""
    this = container({"TOOLD_PAGES_PASSWORD": "open sesame"})
    assert this.pages_password == "open sesame"
    assert "open sesame" not in str(this.daemon) + repr(this)


def test_the_port_uses_tls_with_a_certificate() -> None:
    """Both families listen; with a certificate they speak TLS, without one they do not."""
    assert listen_conf(container({}), ipv6=True) == "listen 8080;\nlisten [::]:8080;\n"
    conf = listen_conf(container({"TOOLD_TLS_CERT": "/c d.pem", "TOOLD_TLS_KEY": "/k.pem"}), ipv6=True)
    assert "listen 8080 ssl;\nlisten [::]:8080 ssl;\n" in conf
    assert 'ssl_certificate "/c d.pem";\nssl_certificate_key "/k.pem";\n' in conf


def test_without_ipv6_the_port_is_opened_for_ipv4_only() -> None:
    """nginx does not start if its configuration names an address family that the kernel lacks."""
    assert listen_conf(container({}), ipv6=False) == "listen 8080;\n"


@pytest.mark.parametrize(
    ("owner", "said"),
    [(1000, "it belongs to user 1000, this container runs as 10001"), (10001, "Read-only file system")],
)
def test_an_unwritable_state_directory_is_explained(owner: int, said: str) -> None:
    """The message names the owner, or else the reason, and the command for the host."""
    problem = state_problem("/var/lib/toold", user=10001, owner=owner, reason="Read-only file system")
    assert problem.startswith(f"the state directory /var/lib/toold cannot be written: {said}. ")
    assert "`chown -R 10001 FOLDER` on the host" in problem


def test_without_a_password_the_pages_are_closed() -> None:
    """They say what to do; with a password they ask for it."""
    assert pages_conf(container({})).startswith('return 403 "closed: set TOOLD_PAGES_PASSWORD_FILE')
    assert "auth_basic_user_file /run/toold/htpasswd;" in pages_conf(container({"TOOLD_PAGES_PASSWORD": "x"}))


def test_the_passwords_file_has_a_salted_hash() -> None:
    """It is what nginx takes as {SSHA}: the hash of password and salt, then the salt."""
    user, _, hashed = htpasswd("operator", "open sesame", b"0123456789abcdef").strip().partition(":")
    scheme, raw = hashed[:6], base64.b64decode(hashed[6:])
    assert (user, scheme) == ("operator", "{SSHA}")
    assert raw == hashlib.sha1(b"open sesame" + raw[20:]).digest() + b"0123456789abcdef"  # noqa: S324


def test_every_name_in_the_shipped_configuration_is_filled_in() -> None:
    """The templates have no names that entrypoint.py does not provide; an unknown name is an error."""
    template = (DOCKER / "nginx.conf").read_text("utf-8")
    values = {"user": "", "run": "/r", "container": "/c", "port": "1", "http_port": "2"}
    assert not re.search(r"@[a-z_]+@", fill_in(template, values))
    with pytest.raises(KeyError):
        fill_in(template, {})
