"""Detects files that look like secrets, by their names and first bytes. Pure."""

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

_NAMES: Final = (
    ".env", ".env.*", "*.env", ".envrc",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_*_sk",
    ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".dockercfg",
    "credentials", "*credentials.json", "client_secret*.json", "secrets.toml", "secrets.yaml", "secrets.yml",
    "secrets.json", "service-account*.json", "*.tfstate", "*.tfvars", "toold.toml",
)  # fmt: skip
"""File names in lower case."""
_EXAMPLES: Final = ("*.example", "*.sample", "*.template", "*.dist")
"""Files that document secrets and contain none."""
_DIRECTORIES: Final = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".password-store"})
"""All files in these directories match."""

_PRIVATE_KEY: Final = re.compile(rb"\s*-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")


def named_like_a_secret(name: str) -> bool:
    """Whether a file with this path (parts separated by ``/``) likely contains keys, passwords or tokens."""
    *directories, file = PurePosixPath(name.lower()).parts or ("",)
    if not _DIRECTORIES.isdisjoint(directories):
        return True
    return _matches(file, _NAMES) and not _matches(file, _EXAMPLES)


def begins_like_a_key(data: bytes) -> bool:
    """Whether the file's content starts like a private key."""
    return _PRIVATE_KEY.match(data) is not None


def allowed(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern such as ``.env.test`` or ``certs/*.pem`` matches the end of the path."""
    return any(PurePosixPath(name).match(pattern) for pattern in patterns)


def _matches(file: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(file, pattern) for pattern in patterns)
