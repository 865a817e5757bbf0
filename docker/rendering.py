"""Derives the container's configuration from its environment. Pure; entrypoint.py and health.py access the files."""

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
"""Secrets, each of which may be in a file named by the variable with the suffix ``_FILE``."""

FALSE = frozenset({"0", "false", "no", "off", "f", "n"})


class ContainerError(Exception):
    """The environment is invalid; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Container:
    """The configuration of this container."""

    run: str
    """The directory of files that each start writes."""
    public_port: int
    port: int
    http_port: int
    stop_wait_s: int
    """The time for a program to exit: longer than the daemon's grace period."""
    start_retries: int
    """The number of retries of a failed start, after 1 s, 2 s, 3 s …"""
    certificate: tuple[str, str] | None
    """The PEM files of the certificate chain and key for the public port."""
    pages_user: str
    pages_password: str | None = field(repr=False)
    """The password for ``/``, ``/readyz`` and ``/metrics``; without it they are closed."""
    daemon: Mapping[str, str] = field(repr=False)
    """The daemon's environment."""

    @property
    def url(self) -> str:
        """The public URL, for clients in this container."""
        return f"{'wss' if self.certificate else 'ws'}://127.0.0.1:{self.public_port}/ws"


def with_secrets(env: Mapping[str, str], read: Callable[[str], str]) -> dict[str, str]:
    """The environment with the secrets from the files that it names; ``read`` returns a file's text.

    Raises:
        ContainerError: a file is unreadable or empty, or a secret is set twice.
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
    """The container's configuration, from its environment including the secrets.

    Raises:
        ContainerError: the environment is invalid.
    """
    if env.get("TOOLD_AUTH", "true").strip().lower() in FALSE:
        raise ContainerError("TOOLD_AUTH is false, but this container's port is public: unset it")
    certificate, key = env.get("TOOLD_TLS_CERT", ""), env.get("TOOLD_TLS_KEY", "")
    if bool(certificate) != bool(key):
        raise ContainerError("TOOLD_TLS_CERT and TOOLD_TLS_KEY belong together; set both or neither")
    user = env.get("TOOLD_PAGES_USER") or "operator"
    if ":" in user or not user.isprintable():
        raise ContainerError("TOOLD_PAGES_USER must have no colon and no control characters")
    port, http_port = _port(env, "TOOLD_PORT", 8079), _port(env, "TOOLD_HTTP_PORT", 8081)
    public = _port(env, "TOOLD_PUBLIC_PORT", 8080)
    if len({port, http_port, public}) < 3:
        raise ContainerError("TOOLD_PUBLIC_PORT, TOOLD_PORT and TOOLD_HTTP_PORT must differ")
    # The daemon is behind nginx, which terminates TLS; its ports are not reachable from outside.
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


def listen_conf(this: Container, *, ipv6: bool) -> str:
    """nginx's configuration of the public port. Without IPv6 in the kernel, nginx would refuse to start with it."""
    addresses = [f"{this.public_port}", *([f"[::]:{this.public_port}"] if ipv6 else [])]
    if this.certificate is None:
        return "".join(f"listen {address};\n" for address in addresses)
    certificate, key = this.certificate
    lines = [f"listen {address} ssl;" for address in addresses]
    lines += [f'ssl_certificate "{certificate}";', f'ssl_certificate_key "{key}";', "ssl_protocols TLSv1.2 TLSv1.3;"]
    return "\n".join(lines) + "\n"


def state_problem(path: str, *, user: int, owner: int, reason: str) -> str:
    """Why the daemon cannot keep its state: the directory, its owner, and what to do on the host."""
    belongs = f"it belongs to user {owner}, this container runs as {user}" if owner != user else reason
    return (
        f"the state directory {path} cannot be written: {belongs}. A folder of the host must belong to the container's "
        f"user: run `chown -R {user} FOLDER` on the host, or mount a named volume"
    )


def pages_conf(this: Container) -> str:
    """nginx's access configuration of the pages."""
    if this.pages_password is None:
        return 'return 403 "closed: set TOOLD_PAGES_PASSWORD_FILE for this container\\n";\n'
    return f'auth_basic "toold";\nauth_basic_user_file {this.run}/htpasswd;\n'


def htpasswd(user: str, password: str, salt: bytes) -> str:
    """The line of nginx's password file, with a salted hash."""
    digest = hashlib.sha1(password.encode() + salt).digest()  # noqa: S324 - a format that nginx supports everywhere
    return f"{user}:{{SSHA}}{base64.b64encode(digest + salt).decode()}\n"


def fill_in(template: str, values: Mapping[str, str]) -> str:
    """The template with ``@name@`` replaced.

    Raises:
        KeyError: the template has an unknown name.
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
