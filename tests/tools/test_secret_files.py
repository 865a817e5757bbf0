"""Detection of files that are likely to contain secrets."""

import pytest
from toold.tools.secret_files import allowed, begins_like_a_key, named_like_a_secret


@pytest.mark.parametrize(
    "name",
    [
        ".env", "app/.env", ".env.production", "prod.env", ".ENV", ".envrc", "tls/server.key", "cert.PEM", "id_rsa",
        "keys/id_ed25519", "id_ecdsa_sk", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".aws/config",
        "home/.ssh/known_hosts", ".kube/config", "config/credentials", "secrets.yaml", "service-account-prod.json",
        "vault.kdbx", "terraform.tfstate", "prod.tfvars", "gcloud/application_default_credentials.json",
        "client_secret_12.apps.json", "other/toold.toml",
    ],
)  # fmt: skip
def test_secret_files_are_detected_by_name(name: str) -> None:
    """The directory and the letter case do not matter."""
    assert named_like_a_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "README.md", "src/secrets.py", ".env.example", "prod.env.sample", "id_rsa.pub", "keyboard.py", "key.md",
        "environment.yml", "src/credentials.py", "docs/ssh.md", "env/main.py", "tokens.json",
    ],
)  # fmt: skip
def test_other_files_are_not_detected_as_secret(name: str) -> None:
    """Code about secrets, public keys and example files are not detected."""
    assert not named_like_a_secret(name)


@pytest.mark.parametrize(
    ("data", "is_key"),
    [
        (b"-----BEGIN PRIVATE KEY-----\nMIIE", True),
        (b"\n -----BEGIN RSA PRIVATE KEY-----", True),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----", True),
        (b"-----BEGIN PGP PRIVATE KEY BLOCK-----", True),
        (b"-----BEGIN CERTIFICATE-----", False),
        (b"x = '-----BEGIN PRIVATE KEY-----'", False),
        (b"", False),
    ],
)
def test_a_private_key_is_detected_by_its_first_bytes(data: bytes, is_key: bool) -> None:
    """The file name does not matter; text that merely mentions a private key is not detected."""
    assert begins_like_a_key(data) is is_key


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        (".env.test", ".env.test", True),
        ("app/.env.test", ".env.test", True),
        ("app/certs/a.pem", "certs/*.pem", True),
        ("certs/sub/a.pem", "certs/*.pem", False),
        (".env", ".env.test", False),
    ],
)
def test_allowed_secret_files_are_matched_by_pattern(name: str, pattern: str, fits: bool) -> None:
    """The pattern matches the end of the path."""
    assert allowed(name, (pattern,)) is fits
