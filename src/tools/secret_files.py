"""Which files look like secrets: by their names, and by how they begin. Pure."""

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
"""Of files, in lower case."""
_EXAMPLES: Final = ("*.example", "*.sample", "*.template", "*.dist")
"""What shows others which secrets there are, and holds none."""
_DIRECTORIES: Final = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".password-store"})
"""Whatever lies in them."""

_PRIVATE_KEY: Final = re.compile(rb"\s*-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")


def named_like_a_secret(name: str) -> bool:
    """Whether a file of this path, with ``/`` between its parts, would hold keys, passwords or tokens by its name."""
    *directories, file = PurePosixPath(name.lower()).parts or ("",)
    if not _DIRECTORIES.isdisjoint(directories):
        return True
    return _matches(file, _NAMES) and not _matches(file, _EXAMPLES)


def begins_like_a_key(data: bytes) -> bool:
    """Whether a file is a private key, whatever it is called."""
    return _PRIVATE_KEY.match(data) is not None


def allowed(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern such as ``.env.test`` or ``certs/*.pem`` fits the end of the path."""
    return any(PurePosixPath(name).match(pattern) for pattern in patterns)


def _matches(file: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(file, pattern) for pattern in patterns)
