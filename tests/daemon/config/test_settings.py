"""Settings: defaults, consistency, and hidden secrets."""

import shutil
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError
from toold.daemon.config.settings import Settings

from .loaded_settings import load, refusal

SECRET = "sk-verysecretverysecretverysecret"
DOCS = Path(__file__).parents[3] / "docs" / "configuration.md"


@pytest.fixture
def certificate(starts_processes: None, tmp_path: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate with")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-days", "2", "-out", str(cert), "-keyout", str(key)]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(["openssl", "req", "-x509", *curve, *subject], check=True, capture_output=True)
    return cert, key


def test_defaults(tmp_path: Path) -> None:
    """By default the daemon listens on loopback, requires a token, simulates, and may read its working directory."""
    settings = load(cwd=tmp_path)
    assert (settings.host, settings.port, settings.http_port, settings.auth) == ("127.0.0.1", 8079, 8080, True)
    assert settings.simulated
    assert settings.workspace == (tmp_path,)


@pytest.mark.parametrize(
    ("env", "simulated"),
    [
        ({}, True),
        ({"GLM_API_KEY": SECRET}, False),
        ({"GLM_API_KEY": SECRET, "TOOLD_SIMULATE": "true"}, True),
        ({"TOOLD_SIMULATE": "0"}, False),
    ],
)
def test_the_simulator_is_used_without_keys(tmp_path: Path, env: dict[str, str], simulated: bool) -> None:
    """Without any vendor's key the simulator answers, unless the operator configures otherwise."""
    assert load(cwd=tmp_path, **env).simulated is simulated


def test_settings_do_not_change(tmp_path: Path) -> None:
    """Settings are immutable."""
    with pytest.raises(ValidationError):
        load(cwd=tmp_path).port = 1  # type: ignore[misc] # the point of the test


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"TOOLD_HTTP_PORT": "8079"}, "http_port (TOOLD_HTTP_PORT): must differ from port"),
        ({"TOOLD_MAX_TIMEOUT_S": "10"}, "default_timeout_s (default): must be at most max_timeout_s, 10"),
        ({"TOOLD_TLS_CERT": "/x.pem"}, "tls_cert (TOOLD_TLS_CERT): also needs tls_key"),
        ({"TOOLD_TLS_KEY": "/x.pem"}, "tls_key (TOOLD_TLS_KEY): also needs tls_cert"),
        ({"TOOLD_TLS_CERT": "/x.pem", "TOOLD_TLS_KEY": "/y.pem"}, "tls_cert (TOOLD_TLS_CERT): must be a readable"),
        (
            {"TOOLD_DEFAULT_TOOLSET": "laen"},
            "default_toolset (TOOLD_DEFAULT_TOOLSET): must be one of lean, standard, full, code, hybrid; did",
        ),
        (
            {"TOOLD_TOOLSETS": "lean"},
            "toolsets (TOOLD_TOOLSETS): must be set in toold.toml, as tables [toolsets.NAME] with",
        ),
        ({"TOOLD_HOST": "::", "TOOLD_AUTH": "no"}, "auth (TOOLD_AUTH): may be off only if host is loopback"),
        (
            {"TOOLD_HOST": "::", "TOOLD_CLIENT_WORKSPACES": "yes"},
            "client_workspaces (TOOLD_CLIENT_WORKSPACES): may be on only if auth is on and host is loopback",
        ),
        ({"TOOLD_AUTH": "no", "TOOLD_CLIENT_WORKSPACES": "yes"}, "client_workspaces (TOOLD_CLIENT_WORKSPACES): may be"),
    ],
)
def test_settings_must_be_consistent(tmp_path: Path, env: dict[str, str], words: str) -> None:
    """Conflicting values are reported as an error of one setting that names the other."""
    assert words in refusal(cwd=tmp_path, **env)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_auth_may_be_off_on_loopback(tmp_path: Path, host: str) -> None:
    """Where only this machine can connect, the token may be waived."""
    assert load({"host": host, "auth": False}, cwd=tmp_path).auth is False


def test_tls_files_must_load(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """A certificate with its key is taken; a key in the certificate's place, or a locked key, is refused at once."""
    cert, key = certificate
    settings = load(cwd=tmp_path, TOOLD_TLS_CERT=str(cert), TOOLD_TLS_KEY=str(key))
    assert (settings.tls_cert, settings.tls_key) == (cert, key)
    assert "tls_cert" in refusal(cwd=tmp_path, TOOLD_TLS_CERT=str(key), TOOLD_TLS_KEY=str(cert))
    locked = tmp_path / "locked.pem"
    lock = ["openssl", "pkcs8", "-topk8", "-in", str(key), "-out", str(locked), "-passout", "pass:abcdefgh"]
    subprocess.run(lock, check=True, capture_output=True)
    assert "unencrypted key" in refusal(cwd=tmp_path, TOOLD_TLS_CERT=str(cert), TOOLD_TLS_KEY=str(locked))


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    """Settings can be printed and dumped without giving a key away."""
    settings = load(
        cwd=tmp_path, TOOLD_TOKEN=SECRET, KIMI_API_KEY=SECRET, GLM_API_KEY=SECRET, SUPABASE_SERVICE_ROLE_KEY=SECRET
    )
    for shown in (repr(settings), str(settings), repr(settings.model_dump()), settings.model_dump_json()):
        assert SECRET not in shown


@pytest.mark.parametrize("setting", sorted(Settings.model_fields))
def test_each_setting_is_documented(setting: str) -> None:
    """docs/configuration.md has a row for each setting, with its variable."""
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith(f"| `{setting}` |")]
    assert len(rows) == 1
    assert f"`TOOLD_{setting.upper()}`" in rows[0]
