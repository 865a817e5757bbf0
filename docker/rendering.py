"""What the container's environment comes to: pure, without files. entrypoint.py and health.py read and write them."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

SECRETS = (
    "TOOLD_TOKEN",
    "TOOLD_PAGES_PASSWORD",
    "KIMI_API_KEY",
    "GLM_API_KEY",
    "SUPABASE_SERVICE_ROLE_KEY",
)
"""Each may be given in a file instead, named by the variable with ``_FILE`` at its end."""

FALSE = frozenset({"0", "false", "no", "off", "f", "n"})


class ContainerError(Exception):
    """The container cannot run with this environment; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Container:
    """How this container runs."""

    run: str
    """Directory of what is made at each start."""
    public_port: int
    port: int
    http_port: int
    stop_wait_s: int
    """How long a program has to end; the daemon's grace period and some."""
    start_retries: int
    """How often what cannot be started is tried again, after a second, two, three …"""
    certificate: tuple[str, str] | None
    """Certificate chain and key for the public port, PEM files."""
    pages_user: str
    pages_password: str | None = field(repr=False)
    """For ``/``, ``/readyz`` and ``/metrics``; without it they are closed."""
    daemon: Mapping[str, str] = field(repr=False)
    """The daemon's environment."""

    @property
    def url(self) -> str:
        """Where clients in this container reach the daemon as those outside do."""
        return f"{'wss' if self.certificate else 'ws'}://127.0.0.1:{self.public_port}/ws"


def with_secrets(env: Mapping[str, str], read: Callable[[str], str]) -> dict[str, str]:
    """The environment with the secrets that it names files of; ``read`` gives a file's text.

    Raises:
        ContainerError: a file cannot be read or is empty, or a secret is given twice.
    """
    filled = dict(env)
    for name in SECRETS:
        path = filled.pop(f"{name}_FILE", "")
        if not path:
            continue
        if env.get(name):
            raise ContainerError(f"{name} and {name}_FILE are both set; unset one")
        try:
            filled[name] = read(path).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ContainerError(f"{name}_FILE names {path}, which cannot be read: {error}") from error
        if not filled[name]:
            raise ContainerError(f"{name}_FILE names {path}, which is empty")
    return filled


def container(env: Mapping[str, str]) -> Container:
    """How the container runs, from its environment with the secrets in it.

    Raises:
        ContainerError: it cannot.
    """
    if env.get("TOOLD_AUTH", "true").strip().lower() in FALSE:
        raise ContainerError("TOOLD_AUTH is false, and this container's port is public: unset it")
    certificate, key = env.get("TOOLD_TLS_CERT", ""), env.get("TOOLD_TLS_KEY", "")
    if bool(certificate) != bool(key):
        raise ContainerError("TOOLD_TLS_CERT and TOOLD_TLS_KEY belong together; set both or none")
    user = env.get("TOOLD_PAGES_USER") or "operator"
    if ":" in user or not user.isprintable():
        raise ContainerError("TOOLD_PAGES_USER must have no colon and no control characters")
    port, http_port = _port(env, "TOOLD_PORT", 8079), _port(env, "TOOLD_HTTP_PORT", 8081)
    public = _port(env, "TOOLD_PUBLIC_PORT", 8080)
    if len({port, http_port, public}) < 3:
        raise ContainerError("TOOLD_PUBLIC_PORT, TOOLD_PORT and TOOLD_HTTP_PORT must be three ports")
    # The daemon is behind nginx: TLS ends there, and nobody else may reach its ports.
    ours = {"TOOLD_TLS_CERT", "TOOLD_TLS_KEY", "TOOLD_PAGES_USER", "TOOLD_PAGES_PASSWORD"}
    ours |= {"TOOLD_PUBLIC_PORT", "TOOLD_START_RETRIES", "TOOLD_RUN_DIR"}
    daemon = {name: value for name, value in env.items() if name not in ours}
    daemon |= {
        "TOOLD_HOST": "127.0.0.1",
        "TOOLD_PORT": str(port),
        "TOOLD_HTTP_PORT": str(http_port),
        "TOOLD_AUTH": "true",
    }
    return Container(
        run=env.get("TOOLD_RUN_DIR") or "/run/toold",
        public_port=public,
        port=port,
        http_port=http_port,
        stop_wait_s=round(_seconds(env, "TOOLD_GRACE_PERIOD_S", 10)) + 20,
        start_retries=_number(env, "TOOLD_START_RETRIES", 3),
        certificate=(certificate, key) if certificate else None,
        pages_user=user,
        pages_password=env.get("TOOLD_PAGES_PASSWORD") or None,
        daemon=daemon,
    )


def listen_conf(this: Container) -> str:
    """The public port's part of nginx's configuration."""
    addresses = (f"{this.public_port}", f"[::]:{this.public_port}")
    if this.certificate is None:
        return "".join(f"listen {address};\n" for address in addresses)
    certificate, key = this.certificate
    lines = [f"listen {address} ssl;" for address in addresses]
    lines += [f'ssl_certificate "{certificate}";', f'ssl_certificate_key "{key}";', "ssl_protocols TLSv1.2 TLSv1.3;"]
    return "\n".join(lines) + "\n"


def pages_conf(this: Container) -> str:
    """Who may see the pages for people."""
    if this.pages_password is None:
        return 'return 403 "closed: give the container TOOLD_PAGES_PASSWORD_FILE\\n";\n'
    return f'auth_basic "toold";\nauth_basic_user_file {this.run}/htpasswd;\n'


def htpasswd(user: str, password: str, salt: bytes) -> str:
    """The line that nginx checks basic auth against: salted, so that the password does not stand on a second disk."""
    digest = hashlib.sha1(password.encode() + salt).digest()  # noqa: S324 - what nginx can check without a library
    return f"{user}:{{SSHA}}{base64.b64encode(digest + salt).decode()}\n"


def fill_in(template: str, values: Mapping[str, str]) -> str:
    """The template with ``@name@`` replaced.

    Raises:
        KeyError: the template has a name that is not among the values.
    """
    return re.sub(r"@([a-z_]+)@", lambda found: values[found[1]], template)


def _port(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise ContainerError(f"{name} must be a port between 1 and 65535, not {text!r}")
    return int(text)


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 4):
        raise ContainerError(f"{name} must be a number from 0 to 999, not {text!r}")
    return int(text)


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name) or str(default)
    try:
        return max(0.0, float(text))
    except ValueError as error:
        raise ContainerError(f"{name} must be a number of seconds, not {text!r}") from error
